"""Which search finds the small model? Evidence against size on the toy problem of Barrio, Romero and Belanche (2010).

Two hundred inputs, uniformly distributed; the target is a sum of 20 gaussians exp(-0.5 (x - c)²) at some of the inputs,
with weights from N(0, 1/0.4), and noise of variance 0.05. All 200 gaussians are on offer, so the true model is among
those that could be found. The paper's searches end at 23 functions (plus 1, forward selection), 15 (plus 2 take
away 1) and 9 (floating), on one draw, and it gives no range of the inputs. [-8, 8] here, because of five that were
tried, [-4, 4] to [-12, 12], its sizes are nearest to the paper's.

The picture is of one draw, the table of 20. Every curve of evidence against size is flat for long: among gaussians that
overlap, many more than are needed do no harm, to the evidence or to the error. A search returns the smallest model
within a nat of the best (`within=0` here, to show what the strategies end with, as in the paper): medians of 20, 15 and
8 functions (13, 11 and 5 on [-4, 4]; 23, 19 and 10 on [-12, 12]), which the models of highest evidence exceed by far.
Beside the searches stand the relevance vector machine, forward selection by the squared error, all functions together
(lowest evidence, lowest error), and the few functions that predict most nearly as all of them do (`bs.linear.project`):
at one nat from them they are about 15, with their error.

    python examples/basis_search_toy.py [folder] [number of draws]
"""

import sys
from pathlib import Path

import numpy as np

import bayessel as bs

N, TRUE, RANGE, NOISE = 200, 20, 8.0, np.sqrt(0.05)
WIDTH = bs.width(omega=1.0)  # exp(-0.5 d²)
#: strategy: name, functions in the paper, colour (Okabe and Ito's)
SEARCHES = {
    "pta(1,0)": ("PTA(1,0)", "23", "#0072B2"),
    "pta(2,1)": ("PTA(2,1)", "15", "#E69F00"),
    "sffs": ("SFFS", "9", "#D55E00"),
    "oscil(5)": ("Oscil(5)", "", "#009E73"),
}
GRID = np.linspace(-RANGE, RANGE, 1001)


def draw(seed):
    """Inputs, targets, the dictionary, the true function on the grid and the true centres."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(-RANGE, RANGE, N))
    dictionary = bs.RBFDictionary(x[:, None], WIDTH, bias=False)
    some = rng.choice(N, TRUE, replace=False)
    weights = rng.normal(size=TRUE) / np.sqrt(0.4)
    t = dictionary.design(x[:, None])[:, some] @ weights + NOISE * rng.normal(size=N)
    return x, t, dictionary, dictionary.design(GRID[:, None])[:, some] @ weights, x[some]


def fits(seed, quick=False):
    """Every method on one draw.

    Name -> (size, model evidence, error to the true function, mean on the grid, fit, error of the smallest model near).
    """
    x, t, dictionary, truth, _ = draw(seed)
    F, new = dictionary.design(x[:, None]), dictionary.design(GRID[:, None])
    found = {}

    def error(mean):
        return float(np.sqrt(np.mean((mean - truth) ** 2)))

    def note(name, size, evidence, mean, fit, near=np.nan):
        found[name] = (size, evidence, error(mean), mean, fit, near)

    for strategy, (name, _, _) in SEARCHES.items():
        short = "oscil(1)" if quick and strategy == "oscil(5)" else strategy
        fit = bs.linear.search(F, t, short, within=0.0)  # the strategy's own; `smallest` looks for what is near it
        columns = list(fit.path[smallest(fit)].basis)
        near = error(bs.linear.fit_evidence(F[:, columns], t).predict(new[:, columns]).mean)
        note(name, fit.n_basis, fit.model_evidence, fit.mean(new), fit, near)
    rvm = bs.linear.fit_rvm(F, t)
    note("RVM", rvm.n_basis, np.nan, rvm.mean(new), rvm)
    for name, method in (("OLS, stopped by GCV", "ols"), ("RFS, stopped by GCV", "rfs")):
        forward = bs.linear.forward_select(F, t, method)
        note(name, len(forward.basis), np.nan, forward.mean(new), forward)
    full = bs.linear.fit_evidence(F, t)
    note("all functions", N, full.model_evidence, new @ full.coef, full)
    ridge = full.alpha / full.beta
    covariance = F @ np.linalg.solve(F.T @ F + ridge * np.eye(N), F.T) / full.beta
    covariance = (covariance + covariance.T) / 2
    for name, size in (("projection to 1 nat", None), ("projection, size of SFFS", found["SFFS"][0])):
        few = bs.linear.project(F, F @ full.coef, full.beta**-0.5, covariance, size=size)
        note(name, few.n_basis, np.nan, few.predict(new).mean, few)
    return found


def smallest(fit, within=1.0):
    """Size of the smallest model of the path within a nat of the best."""
    top = max(point.value for point in fit.path.values())
    return min(size for size, point in fit.path.items() if point.value >= top - within)


def spread(sizes):
    return f"{np.median(sizes):.0f} ({min(sizes)}…{max(sizes)})"


def report(every):
    """Print sizes, evidences and errors: medians and ranges over the draws, means."""
    count = len(every)
    print(f"20 true gaussians among 200, noise {NOISE:.3f}; {count} draw{'s' if count > 1 else ''}\n")
    print(f"{'':26}{'paper':>6}{'functions':>15}{'within a nat':>15}{'evidence':>10}{'RMSE':>9}{'RMSE':>9}{'steps':>7}")
    papers = {name: paper for name, paper, _ in SEARCHES.values()} | {"RVM": "8"}
    best = [max(one[name][1] for name, _, _ in SEARCHES.values()) for one in every]
    for name in every[0]:
        evidence = np.mean([one[name][1] - top for one, top in zip(every, best, strict=True)])
        line = f"{name:26}{papers.get(name, ''):>6}{spread([one[name][0] for one in every]):>15}"
        models = [one[name][4] for one in every]
        searched = name in papers and name != "RVM"
        line += f"{spread([smallest(fit) for fit in models]) if searched else '':>15}"
        line += f"{'' if np.isnan(evidence) else f'{evidence:+.1f}':>10}"
        line += f"{np.mean([one[name][2] for one in every]):>9.4f}"
        line += f"{np.mean([one[name][5] for one in every]):>9.4f}" if searched else f"{'':>9}"
        print(line + (f"{np.mean([fit.n_added + fit.n_removed for fit in models]):>7.0f}" if searched else ""))
    print("\nfunctions: median (range); within a nat: smallest model of the path whose evidence is that near the best")
    print(
        "evidence: nats to the best search of the draw; RMSE to the true function, of that model and of the smallest "
        "within a nat; steps: functions added and removed"
    )


def picture(seed, found, path):
    import matplotlib.pyplot as plt

    x, t, _, truth, centres = draw(seed)
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.8), layout="constrained")
    values = [point.value for name, _, _ in SEARCHES.values() for point in found[name][4].path.values()]
    for name, _, colour in SEARCHES.values():
        fit = found[name][4]
        sizes = sorted(fit.path)
        style = "--" if name.startswith("Oscil") else "-"  # it begins as PTA(1,0) does
        curve = [fit.path[k].value for k in sizes]
        left.plot(sizes, curve, style, color=colour, lw=2, label=f"{name}: {fit.n_basis}")
        left.plot(fit.n_basis, fit.path[fit.n_basis].value, "o", ms=8, color=colour, mec="white", mew=1, zorder=5)
    top = max(values)
    left.set(
        xlabel="functions",
        ylabel="log model evidence, best seen of that size",
        title="Evidence against size (dots: the model returned)",
        ylim=(top - 32, top + 2),
    )
    left.legend(frameon=False, loc="lower right", title="functions chosen", alignment="left")
    right.plot(x, t, ".", ms=3, color="0.7")
    right.plot(GRID, truth, "--", color="black", lw=1, label="true function")
    mean, colour = found["SFFS"][3], SEARCHES["sffs"][2]
    right.plot(GRID, mean, color=colour, lw=1.8, label=f"SFFS, RMSE {found['SFFS'][2]:.3f}")
    low, high = min(t.min(), truth.min()), max(t.max(), truth.max())
    step = 0.07 * (high - low)
    rows = [("true", centres, "0.3")]
    rows += [(name, x[found[name][4].basis], colour) for name, _, colour in SEARCHES.values()]
    for row, (name, places, colour) in enumerate(rows):
        at = low - (row + 1.5) * step
        right.plot(places, np.full(len(places), at), "x", ms=5.5, mew=1.5, color=colour)
        right.text(RANGE * 1.06, at, f"{name}: {len(places)}", color=colour, va="center", fontsize=9)
    right.set(xlabel="x", title="Centres, true and selected", xticks=range(-8, 9, 4))
    right.set_xlim(-RANGE * 1.03, RANGE * 1.4)
    right.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(0.0, 1.0))
    right.set_ylim(low - (len(rows) + 1.2) * step, high + 3.0 * step)
    for one in (left, right):
        one.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main(quick: bool = False, folder: str | Path = "examples/output", draws: int = 20) -> Path:
    """Print the table, save the figure in `folder` and return its path. ``quick``: one draw, short oscillations."""
    path = Path(folder) / "basis_search_toy.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    every = [fits(seed, quick) for seed in range(1 if quick else draws)]
    report(every)
    picture(0, every[0], path)
    print(f"figure: {path}")
    return path


if __name__ == "__main__":
    main(
        folder=sys.argv[1] if len(sys.argv) > 1 else "examples/output",
        draws=int(sys.argv[2]) if len(sys.argv) > 2 else 20,
    )
