"""Which ridge penalty? Five selection criteria against the true error (Orr 1996, section 5.3).

Fifty noisy samples of y = (1 + x - 2x²) exp(-x²), noise 0.2, are fitted by fifty Gaussian functions of width 0.5 at the
inputs and one penalty λ on their weights. None of the criteria sees the target function, yet each has its minimum close
to that of the true error, near λ = 1. The paper shows one draw; here stand one draw and the spread over many.

With as many functions as samples a second candidate lurks at λ → 0, where the fit interpolates: the residual vanishes
faster than the degrees of freedom, so UEV, FPE and BIC fall to nothing there, and GCV sometimes follows. The paper's
figure does not reach that far, and the table says how often each criterion would have gone there. LOO is immune.

    python examples/rbf_ridge_criteria.py [folder]
"""

import sys
from pathlib import Path

import numpy as np

import bayessel as bs

N, NOISE, WIDTH, RANGE = 50, 0.2, 0.5, 4.0
CRITERIA = ("loo", "gcv", "uev", "fpe", "bic")
SEED_SHOWN = 19  # one of the draws in which, as in the paper, all minima lie within a factor of 5 of 1
LOWEST, HIGHEST = 1e-4, 1e4  # penalties below would have the fit run through the samples
# Okabe and Ito's colours, told apart by every kind of colour vision
COLOURS = {"loo": "#D55E00", "gcv": "#0072B2", "uev": "#E69F00", "fpe": "#56B4E9", "bic": "#009E73", "true": "black"}


def target(x):
    return (1 + x - 2 * x**2) * np.exp(-(x**2))


def draw(seed):
    """Return inputs (the paper gives no range: uniform on [-4, 4] here), noisy targets and the dictionary."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(-RANGE, RANGE, N))
    return x, target(x) + NOISE * rng.normal(size=N), bs.RBFDictionary(x, WIDTH, bias=False)


def true_errors(fits, dictionary):
    """Mean squared distance between each fit and the noise-free target, on a fine grid of the range."""
    grid = np.linspace(-RANGE, RANGE, 401)
    return np.array([np.mean((dictionary.design(grid) @ w - target(grid)) ** 2) for w in fits])


def ridge_path(spectrum, lams):
    """Weights for every penalty, from one decomposition."""
    return [spectrum.Vt.T @ (spectrum.s / (spectrum.s**2 + lam) * spectrum.z) for lam in lams]


def best_in_range(fit):
    """Return (λ, value) of the lowest minimum in the range looked at; `fit.optima` lists all of them, best first."""
    return next(((lam, value) for lam, value in fit.optima if LOWEST < lam < HIGHEST), (np.nan, np.nan))


def best_of_draw(seed, lams):
    """Return the best penalties, the true error each costs relative to the best, and who prefers to interpolate."""
    x, y, dictionary = draw(seed)
    spectrum = bs.linear.Spectrum.of(dictionary.design(x), y, rows=True)
    fits = {name: bs.linear.fit_ridge(spectrum, criterion=name) for name in CRITERIA}
    best = {name: best_in_range(fit)[0] for name, fit in fits.items()}
    errors = true_errors(ridge_path(spectrum, [*lams, *best.values()]), dictionary)
    lowest = errors[: len(lams)].min()
    price = dict(zip(CRITERIA, errors[len(lams) :] / lowest, strict=True)) | {"true": 1.0}
    interpolates = {name: min(fit.optima, key=lambda one: one[1])[0] < LOWEST for name, fit in fits.items()}
    return best | {"true": lams[errors[: len(lams)].argmin()]}, price, interpolates


def picture(lams, curves, minima, spreads, path):
    import matplotlib.pyplot as plt

    x, y, dictionary = draw(SEED_SHOWN)
    grid = np.linspace(-RANGE, RANGE, 401)
    figure, (left, middle, right) = plt.subplots(
        1, 3, figsize=(13.5, 4.2), width_ratios=[1.1, 1.25, 1], layout="constrained"
    )
    left.plot(grid, target(grid), color="0.55", lw=2, ls="--", label="target")
    lam = minima["gcv"][0]
    (w,) = ridge_path(bs.linear.Spectrum.of(dictionary.design(x), y), [lam])
    left.plot(grid, dictionary.design(grid) @ w, color=COLOURS["gcv"], lw=2, label=f"fit, λ = {lam:.2g} by GCV")
    left.plot(x, y, "o", ms=4, color="0.2", label=f"{N} samples, noise {NOISE}")
    left.set(xlabel="x", ylabel="y", title="One draw and its fit")
    left.set_ylim(top=2.1)
    left.legend(frameon=False, loc="upper left", fontsize=9)

    for name in (*CRITERIA, "true"):
        label = "true error + σ²" if name == "true" else name.upper()
        middle.loglog(lams, curves[name], color=COLOURS[name], lw=2, ls="--" if name == "true" else "-", label=label)
        middle.plot(minima[name][0], minima[name][1], "*", ms=11, color=COLOURS[name], mec="white", mew=0.6, zorder=5)
    middle.set(xlabel="penalty λ", ylabel="predicted squared error", title="What the criteria predict (★ minimum)")
    middle.set_ylim(bottom=0.04)
    ticks = [0.04, 0.05, 0.07, 0.1, 0.2, 0.3]
    middle.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    middle.yaxis.set_minor_formatter(lambda *_: "")
    middle.legend(frameon=False, ncols=2, fontsize=9)

    names = (*CRITERIA, "true")
    for row, name in enumerate(names):
        q = np.nanquantile(spreads[name], [0.05, 0.25, 0.5, 0.75, 0.95])
        right.plot(q[[0, 4]], [row, row], color=COLOURS[name], lw=1.5)
        right.plot(q[[1, 3]], [row, row], color=COLOURS[name], lw=7, alpha=0.45, solid_capstyle="butt")
        right.plot(q[2], row, "o", color=COLOURS[name], ms=6)
    right.axvline(1.0, color="0.6", ls=":", zorder=0)
    right.text(1.0, -0.75, " paper", color="0.4", fontsize=9, va="center")
    right.set_yticks(range(len(names)), [*(name.upper() for name in CRITERIA), "true error"])
    right.set(xscale="log", xlabel="best λ", title=f"Best λ over {len(spreads['true'])} draws")
    right.text(0.02, 0.015, "median, quartiles, 5 % and 95 %", transform=right.transAxes, fontsize=9, color="0.4")
    right.set_ylim(len(names) - 0.3, -1.1)
    for axes in (left, middle, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main(quick: bool = False, folder: str | Path = "examples/output") -> Path:
    """Print the table, save the figure in `folder` and return its path. ``quick`` takes fewer draws."""
    path = Path(folder) / "rbf_ridge_criteria.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    x, y, dictionary = draw(SEED_SHOWN)
    Phi = dictionary.design(x)
    spectrum = bs.linear.Spectrum.of(Phi, y, rows=True)
    lams = np.geomspace(LOWEST, HIGHEST, 41 if quick else 161)
    at = [bs.linear.criteria(Phi, y, lam) for lam in lams]
    curves = {name: np.array([values[name] for values in at]) for name in CRITERIA}
    # a criterion predicts the error against new noisy targets, so the noise variance is added to the error of the fit
    curves["true"] = true_errors(ridge_path(spectrum, lams), dictionary) + NOISE**2
    fits = {name: bs.linear.fit_ridge(spectrum, criterion=name) for name in CRITERIA}
    minima = {name: best_in_range(fit) for name, fit in fits.items()}
    minima["true"] = (lams[curves["true"].argmin()], curves["true"].min())

    draws = [best_of_draw(seed, lams) for seed in range(10 if quick else 200)]
    spreads = {name: np.array([best[name] for best, *_ in draws]) for name in (*CRITERIA, "true")}
    print(f"Best λ of y = (1 + x - 2x²) exp(-x²), {N} samples, noise {NOISE}, width {WIDTH}\n")
    print(
        f"{'':12}{'paper':>8}{'here':>10}{f'over {len(draws)} draws':>26}{'true error of it':>20}{'would rather':>15}"
    )
    print(f"{'':12}{'':>8}{'one draw':>10}{'median (5 % … 95 %)':>26}{'over the best':>20}{'interpolate':>15}")
    for name in (*CRITERIA, "true"):
        low, median, high = np.nanquantile(spreads[name], [0.05, 0.5, 0.95])
        label = "true error" if name == "true" else name.upper()
        spread = f"{median:.2g} ({low:.2g} … {high:.2g})"
        price = np.nanmedian([price[name] for _, price, _ in draws])
        lost = "" if name == "true" else f"{np.mean([lost[name] for *_, lost in draws]):.0%}"
        print(f"{label:12}{'near 1':>8}{minima[name][0]:>10.2g}{spread:>26}{price:>20.2f}{lost:>15}")
    together = [all(0.2 < lam < 5 for lam in best.values()) for best, *_ in draws]
    print(f"\nAll five and the true error between 0.2 and 5, as in the paper: {np.mean(together):.0%} of the draws.")
    picture(lams, curves, minima, spreads, path)
    print(f"figure: {path}")
    return path


if __name__ == "__main__":
    main(folder=sys.argv[1] if len(sys.argv) > 1 else "examples/output")
