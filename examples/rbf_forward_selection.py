"""How many functions? Forward selection of radial functions, plain and regularised (Orr 1996, section 7.4).

Fifty noisy samples of the logistic function y = (1 - e⁻ˣ) / (1 + e⁻ˣ), noise 0.1, are modelled by some of fifty
Gaussian functions of width 2 at the inputs. Each step adds the function that lowers the sum of squared errors most; GCV
says when to stop. Plain selection has no penalty, and its normal equations soon become singular. Regularised selection
re-estimates one penalty λ after each addition, by one step of the GCV formula, and stays well conditioned.

    python examples/rbf_forward_selection.py [folder]
"""

import sys
from pathlib import Path

import numpy as np

import bayessel as bs

N, NOISE, WIDTH, RANGE = 50, 0.1, 2.0, 10.0
# The paper's samples are not given. Of 300 draws this one has GCV and true error smallest at 13 functions, and singular
# normal equations before 22, as there.
SEED_SHOWN = 170
GRID = np.linspace(-RANGE, RANGE, 401)
BLUE, RED, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "0.45"
SINGULAR = 1 / np.finfo(float).eps  # condition of the normal equations at which the last digit is gone
PAST_ALL = 1e20  # and where this script stops: of the sixteen digits of H itself six are left


def target(x):
    return (1 - np.exp(-x)) / (1 + np.exp(-x))


def draw(seed):
    """Return inputs (the paper gives no range: uniform on [-10, 10] here), noisy targets and the dictionary."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(-RANGE, RANGE, N))
    return x, target(x) + NOISE * rng.normal(size=N), bs.RBFDictionary(x, WIDTH, bias=False)


def inverted(H, y, lam):
    """Sum of squared errors as the textbook computes it, from the inverse of H'H + λ."""
    try:
        w = np.linalg.inv(H.T @ H + lam * np.eye(H.shape[1])) @ (H.T @ y)
    except np.linalg.LinAlgError:
        return np.nan
    return np.sum((y - H @ w) ** 2)


def select(seed, steps, regularised):
    """Return one record per step: the criteria, the true error, the penalty and the condition of H'H + λ."""
    x, y, dictionary = draw(seed)
    F, G = dictionary.design(x), dictionary.design(GRID)
    if regularised:
        fit = bs.linear.forward_select(F, y, "rfs", None, max_size=steps, lam=0.1)  # re-estimated from here
    else:
        fit = bs.linear.forward_select(F, y, "ols", None, max_size=steps, max_condition=PAST_ALL**0.5)
    path = []
    for at in fit.history[1:]:
        chosen, lam = list(fit.path[at["size"]].basis), at["lam"]
        H = F[:, chosen]
        s = np.linalg.svd(H, compute_uv=False)
        condition = (s[0] ** 2 + lam) / (s[-1] ** 2 + lam)
        if condition > PAST_ALL:
            break
        # by an orthogonal factorisation: the weights of H itself, not of its normal equations
        penalty = np.sqrt(lam) * np.eye(len(chosen))
        w = np.linalg.lstsq(np.vstack([H, penalty]), np.append(y, np.zeros(len(chosen))), rcond=0)[0]
        path.append({
            "sse": N * at["error"],
            "inverted": inverted(H, y, lam),
            "gcv": at["gcv"],
            "mse": np.mean((G[:, chosen] @ w - target(GRID)) ** 2),
            "fit": G[:, chosen] @ w,
            "lam": lam,
            "condition": condition,
        })  # fmt: skip
    return path


def stop(path):
    """Return the index of the smallest GCV while the normal equations are regular."""
    regular = [k for k, step in enumerate(path) if step["condition"] < SINGULAR]
    return min(regular, key=lambda k: path[k]["gcv"])


def singular_from(path):
    """Return the number of functions at which the normal equations become singular, or infinity."""
    return next((k + 1 for k, step in enumerate(path) if step["condition"] > SINGULAR), np.inf)


def picture(plain, ridge, path):
    import matplotlib.pyplot as plt

    x, y, _ = draw(SEED_SHOWN)
    figure, ((fits, condition), (left, right)) = plt.subplots(2, 2, figsize=(11.5, 8), layout="constrained")
    at, at_ridge = stop(plain), stop(ridge)
    fits.plot(GRID, target(GRID), color="0.55", lw=2, ls="--", label="target")
    fits.plot(GRID, plain[at]["fit"], color=RED, lw=2, label=f"plain, {at + 1} functions")
    fits.plot(GRID, ridge[at_ridge]["fit"], color=BLUE, lw=2, label=f"regularised, {at_ridge + 1} functions")
    fits.plot(x, y, "o", ms=4, color="0.2", label=f"{N} samples, noise {NOISE}")
    fits.set(xlabel="x", ylabel="y", title="The fits where GCV is smallest", ylim=(-1.5, 1.5))
    fits.legend(frameon=False, fontsize=9, loc="upper left")

    condition.semilogy(1 + np.arange(len(plain)), [s["condition"] for s in plain], "o-", ms=4, color=RED, label="plain")
    condition.semilogy(
        1 + np.arange(len(ridge)), [s["condition"] for s in ridge], "o-", ms=4, color=BLUE, label="regularised"
    )
    condition.axhline(SINGULAR, color="0.5", ls=":")
    condition.text(len(ridge), SINGULAR * 2, "no digit left in H'H", color="0.4", fontsize=9, ha="right", va="bottom")
    condition.axvline(19, color="0.5", ls=":")
    condition.text(19.4, 3, "paper: about 19", color="0.4", fontsize=9)
    condition.set(xlabel="functions selected", ylabel="condition number of H'H + λ", title="Conditioning")
    condition.legend(frameon=False, fontsize=9, loc="upper left")

    for axes, steps, title in (
        (left, plain, "Plain forward selection"),
        (right, ridge, "Regularised forward selection"),
    ):
        m = 1 + np.arange(len(steps))
        best = stop(steps)
        for values, colour, label in (
            ([s["sse"] / N for s in steps], GREY, "SSE / N"),
            ([s["gcv"] for s in steps], BLUE, "GCV"),
            ([s["mse"] for s in steps], GREEN, "MSE of the fit to the target"),
        ):
            axes.semilogy(m, values, color=colour, lw=2, label=label)
            axes.plot(m[best], values[best], "*", color=colour, ms=13, mec="white", mew=0.6, zorder=5)
        axes.semilogy(
            m, [s["inverted"] / N for s in steps], color=GREY, lw=1.2, ls="--", label="SSE / N by inverting H'H + λ"
        )
        axes.axhline(NOISE**2, color="0.6", ls=":", zorder=0)
        axes.text(len(ridge), NOISE**2 * 1.06, "noise variance", color="0.4", fontsize=9, ha="right", va="bottom")
        axes.set(
            xlabel="functions selected", title=f"{title} (★ smallest GCV)", ylim=(8e-4, 1.2), xlim=(0, len(ridge) + 1)
        )
        axes.legend(frameon=False, fontsize=9, loc="upper right")
    left.set_ylabel("squared error")
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(quick: bool = False, folder: str | Path = "examples/output") -> Path:
    """Print the table, save the figure in `folder` and return its path. ``quick`` takes fewer draws."""
    path = Path(folder) / "rbf_forward_selection.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    plain, ridge = select(SEED_SHOWN, N, False), select(SEED_SHOWN, N, True)
    steps = 30
    draws = [(select(seed, steps, False), select(seed, steps, True)) for seed in range(1, 6 if quick else 101)]

    def row(label, paper, value, form="{:.0f}"):
        low, median, high = np.quantile([value(a, b) for a, b in draws], [0.05, 0.5, 0.95])
        spread = f"{form.format(median)} ({form.format(low)} … {form.format(high)})"
        print(f"{label:44}{paper:>10}{form.format(value(plain, ridge)):>10}{spread:>26}")

    def error(steps):
        return np.sqrt(steps[stop(steps)]["mse"])

    print(f"Logistic function, {N} samples, noise {NOISE}, {N} candidates of width {WIDTH}\n")
    print(f"{'':44}{'paper':>10}{'here':>10}{f'{len(draws)} other draws':>26}")
    print(f"{'':44}{'':>10}{'one draw':>10}{'median (5 % … 95 %)':>26}")
    row("functions where GCV is smallest", "13", lambda a, b: 1 + stop(a))
    row("functions where the true error is smallest", "13", lambda a, b: 1 + int(np.argmin([s["mse"] for s in a])))
    row("normal equations singular from", "about 19", lambda a, b: singular_from(a))
    row("RMSE to the target, plain", "", lambda a, b: error(a), "{:.3f}")
    row("RMSE to the target, regularised", "", lambda a, b: error(b), "{:.3f}")
    row("functions where GCV is smallest, regularised", "", lambda a, b: 1 + stop(b))
    row(
        "log10 of the largest condition, regularised",
        "small",
        lambda a, b: np.log10(max(s["condition"] for s in b)),
        "{:.1f}",
    )
    errors = np.array([(error(a), error(b)) for a, b in draws])
    print(f"\nRegularised better in {np.mean(errors[:, 1] < errors[:, 0]):.0%} of the draws; mean RMSE", end=" ")
    print(
        f"{errors[:, 0].mean():.4f} plain, {errors[:, 1].mean():.4f} regularised (paper: slightly better on average)."
    )
    same = np.mean([stop(a) == np.argmin([s["mse"] for s in a]) for a, _ in draws])
    rising = np.mean([np.max(np.diff([s["sse"] for s in b])) > 0 for _, b in draws])
    print(
        f"GCV and true error smallest at the same size in {same:.0%}; regularised SSE rises somewhere in {rising:.0%}."
    )
    picture(plain, ridge, path)
    print(f"figure: {path}")
    return path


if __name__ == "__main__":
    main(folder=sys.argv[1] if len(sys.argv) > 1 else "examples/output")
