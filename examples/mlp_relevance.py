"""Which inputs matter to a network? Relevance of ten inputs, of which five do something (Friedman 1991).

y = 10 sin(π x₁x₂) + 20 (x₃ - ½)² + 10 x₄ + 5 x₅ + noise of standard deviation 1; x₆ to x₁₀ do nothing. 200 cases, all
inputs uniform.

Each input has a precision for its weights into the hidden units and one for its direct connection to the output. Given
a mean that they share, and that is inferred too, the precision of an input that does nothing grows and its weights
vanish: automatic relevance determination, after MacKay and Neal. The left picture has the posterior of the standard
deviations 1/√τ. It says more than which inputs matter: x₁, x₂ and x₃ act through hidden units, x₄ and x₅, whose effects
are lines, through direct connections.

Standard deviations of weights are not effects. The right picture has the root mean square change of the function when
the column of one input is shuffled among the cases, for each draw: in units of y, with all that is not known in it. Its
truth is known here.

    python examples/mlp_relevance.py [folder]
"""

import sys
from pathlib import Path

import numpy as np

import bayessel as bs
from bayessel.mlp import Weights, forward

LABELS = [f"$x_{{{i}}}$" for i in range(1, 11)]


def friedman(X):
    return 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]


def sample(X, y, quick):
    """Draws of the network and its precisions, for standardised data."""
    model = bs.models.mlp((X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std(), hidden=8)
    size = {"draws": 60, "tune": 40, "chains": 2} if quick else {"draws": 800, "tune": 400, "chains": 4}
    return bs.sample(model, **size, cores=1, random_seed=1, progressbar=False)


def deviations(trace):
    """1/√τ of the weights of each input, (draws, 10): into the hidden units, and direct."""
    names = ("tau_input_hidden", "tau_input_output")
    return [trace.posterior[name].values.reshape(-1, 10) ** -0.5 for name in names]


def effects(function, X, rng):
    """Root mean square changes when one column is shuffled, (…, 10); `function` maps inputs to (…, n)."""
    at, found = function(X), []
    for i in range(X.shape[1]):
        other = X.copy()
        other[:, i] = rng.permutation(X[:, i])
        found.append(np.sqrt(np.mean((function(other) - at) ** 2, axis=-1)))
    return np.stack(found, axis=-1)


def drawn_function(trace, X, y):
    """The function of every tenth draw, in the units of the data."""
    posterior = trace.posterior
    weights = [posterior[name].values[:, ::10] for name in Weights._fields]
    weights = Weights(*(w.reshape(-1, *w.shape[2:]) for w in weights))
    return lambda new: y.mean() + y.std() * forward(weights, (new - X.mean(axis=0)) / X.std(axis=0))[0][..., 0]


def report(hidden, direct, effect, true):
    print("medians and 90 % intervals")
    print(f"{'':6}{'sd of weights, hidden':>26}{'sd of weights, direct':>26}{'effect':>22}{'true effect':>14}")
    for i in range(10):
        cells = []
        for values, digits in ((hidden, 3), (direct, 3), (effect, 2)):
            low, middle, high = np.quantile(values[:, i], [0.05, 0.5, 0.95])
            cells.append(f"{middle:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})")
        print(f"x{i + 1:<5}{cells[0]:>26}{cells[1]:>26}{cells[2]:>22}{true[i]:>14.2f}")


def picture(hidden, direct, effect, true, path):
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.6), layout="constrained")
    place = np.arange(10)
    blue, red, green = "#0072B2", "#D55E00", "#009E73"
    for shift, values, colour, label in ((-0.14, hidden, blue, "into hidden units"), (0.14, direct, red, "direct")):
        low, middle, high = np.quantile(values, [0.05, 0.5, 0.95], axis=0)
        left.errorbar(
            place + shift, middle, yerr=[middle - low, high - middle], fmt="o", ms=5, color=colour, label=label
        )
    left.set(yscale="log", ylabel=r"standard deviation of weights, $\tau_i^{-1/2}$", title="Relevance, 90 % intervals")
    left.legend(frameon=False)
    boxes = right.boxplot(effect, positions=place, whis=(5, 95), showfliers=False, widths=0.5, patch_artist=True)
    for box in boxes["boxes"]:
        box.set(facecolor="#d5eee5", edgecolor=green)
    for line in (*boxes["medians"], *boxes["whiskers"], *boxes["caps"]):
        line.set_color(green)
    right.plot(place, true, "k_", ms=22, mew=2, label="true")
    right.set(ylabel="change of f, units of y", title="Effect of shuffling one input, posterior")
    right.legend(frameon=False)
    for one in (left, right):
        one.set_xticks(place, LABELS)
        one.spines[["top", "right"]].set_visible(False)
        one.grid(axis="y", color="0.92")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(quick: bool = False, folder: str | Path = "examples/output") -> Path:
    """Print relevances, save the figure in `folder` and return its path. ``quick``: few draws."""
    path = Path(folder) / "mlp_relevance.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(200, 10))
    y = friedman(X) + rng.standard_normal(200)
    trace = sample(X, y, quick)
    hidden, direct = deviations(trace)
    # the same shuffles for all
    effect = effects(drawn_function(trace, X, y), X, np.random.default_rng(2))
    true = effects(friedman, X, np.random.default_rng(2))
    report(hidden, direct, effect, true)
    noise = trace.posterior["tau_noise"].values ** -0.5 * y.std()
    print(f"noise: {noise.mean():.2f} (1 was put in); sampling took {trace.attrs['sampling_time']:.0f} s")
    picture(hidden, direct, effect, true, path)
    print(f"figure: {path}")
    return path


if __name__ == "__main__":
    main(folder=sys.argv[1] if len(sys.argv) > 1 else "examples/output")
