"""Gaussian processes before and after data: conditioning, and what functions a covariance means (Rasmussen 1996).

The thesis' figures 4.1, 4.2 and 4.4. A Gaussian process says that any targets are jointly normal, so predicting is
conditioning: seeing one target turns the wide marginal of another, correlated with it, into a narrow conditional.
What is believed of the function is in the covariance: with one weight w_i for each input (ARD) it changes over
the length w_i^-1/2 along input i, and a sum of terms that look at one input each means additive functions.

Two things can be checked in the draws. A smooth process with covariance exp(-w d²/2) crosses zero upwards √w/2π times
per unit of length (Rice 1944), so the weights can be read off the surfaces. And in an additive function the effect of
one input does not depend on the other: f(a, b) - f(a', b) - f(a, b') + f(a', b') is nil.

    python examples/gp_priors.py [folder]
"""

import sys
from pathlib import Path

import numpy as np

from bayessel.covariance import SquaredExponential
from bayessel.gp import Predictor

WEIGHTS = ((10.0, 0.5), (10.0, 10.0))
SIDE = 4.0


def mesh(n):
    """Points of an n×n grid over a square, (n², 2)."""
    axis = np.linspace(-SIDE / 2, SIDE / 2, n)
    return axis, np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)


def covariances(weights):
    """The ARD covariance and the additive one with the same weights, v0 = 1, each with its θ."""
    w = np.log(weights)
    additive = SquaredExponential().on([0]) + SquaredExponential().on([1])
    return {"ARD": (SquaredExponential(), np.r_[0.0, w]), "additive": (additive, np.array([0.0, w[0], 0.0, w[1]]))}


def draws(covariance, theta, X, rng, count):
    """Functions from the prior at X, (count, len(X)): normal numbers times a Cholesky factor."""
    K = covariance.matrix(theta, X)
    K[np.diag_indices(len(X))] += 1e-8 * K[0, 0]  # neighbours are nearly the same: the rounding of K must not show
    return rng.standard_normal((count, len(X))) @ np.linalg.cholesky(K).T


def crossings(surfaces, axis, along):
    """Upward crossings of zero per unit of length along one input, over all lines and draws."""
    up = (np.diff(np.sign(surfaces), axis=along + 1) > 0).mean()
    return up / (axis[1] - axis[0])


def interaction(surfaces):
    """Root mean square of f(a, b) - f(a', b) - f(a, b') + f(a', b'), the ends of the square taken."""
    corners = surfaces[:, 0, 0] - surfaces[:, -1, 0] - surfaces[:, 0, -1] + surfaces[:, -1, -1]
    return float(np.sqrt(np.mean(corners**2)))


def surfaces(n, count, rng):
    """{(kind, weights): (count, n, n) functions}."""
    _, X = mesh(n)
    found = {}
    for weights in WEIGHTS:
        for kind, (covariance, theta) in covariances(weights).items():
            found[kind, weights] = draws(covariance, theta, X, rng, count).reshape(count, n, n)
    return found


def report(found, axis):
    print("draws from the prior: crossings of zero per unit of length, and interactions")
    print(f"{'':10}{'w1':>6}{'w2':>6}{'along x1':>11}{'Rice':>7}{'along x2':>11}{'Rice':>7}{'interaction':>14}")
    for (kind, weights), f in found.items():
        rice = np.sqrt(weights) / (2 * np.pi)
        if kind == "additive":  # the other term does not move along this line: the slope's variance halves
            rice = rice / np.sqrt(2)
        seen = [crossings(f, axis, i) for i in (0, 1)]
        print(
            f"{kind:10}{weights[0]:>6.1f}{weights[1]:>6.1f}{seen[0]:>11.3f}{rice[0]:>7.3f}{seen[1]:>11.3f}"
            f"{rice[1]:>7.3f}{interaction(f):>14.1e}"
        )


def conditioning(axes):
    """Figure 4.1: the joint normal of a training and a test target, and the test target given the other."""
    theta, X, t = np.log([1.0, 1.0]), np.array([[0.0], [0.9]]), 1.1
    C = SquaredExponential().matrix(theta, X)
    angle = np.linspace(0, 2 * np.pi, 200)
    ring = np.linalg.cholesky(C) @ np.vstack([np.cos(angle), np.sin(angle)])
    mean, sd = C[1, 0] / C[0, 0] * t, np.sqrt(C[1, 1] - C[1, 0] ** 2 / C[0, 0])
    left, right = axes
    left.plot(*ring, color="black", lw=1.5)
    left.axvline(t, color="#D55E00", ls=":", lw=2)
    left.set(xlabel="$t^{(1)}$, observed", ylabel="$y^{(2)}$, to be predicted", aspect="equal")
    left.set_title(f"Joint: one standard deviation, correlation {C[0, 1]:.2f}")
    y = np.linspace(-2.4, 2.4, 400)
    prior, posterior = (np.exp(-0.5 * ((y - m) / s) ** 2) / (s * np.sqrt(2 * np.pi)) for m, s in ((0, 1), (mean, sd)))
    right.plot(prior, y, color="black", lw=1.5, label="before")
    right.plot(posterior, y, color="#D55E00", lw=2, label=f"after $t^{{(1)}}$ = {t}")
    right.set(xlabel="density", title="Conditional: the prediction")
    right.legend(frameon=False)
    for one in axes:
        one.set_ylim(-2.4, 2.4)
        one.spines[["top", "right"]].set_visible(False)
    # the same numbers from the machinery that predicts with any number of rows (a tiny noise stands for none)
    from bayessel.covariance import Noise

    known = Predictor(X[:1], [t], SquaredExponential() + Noise(), np.r_[theta, -25.0])(X[1:]).function
    assert np.allclose([known.mean[0], np.sqrt(known.variance[0])], [mean, sd], atol=1e-6)
    return mean, sd


def picture(found, axis, path):
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(10.5, 13.5), layout="constrained")
    grid = figure.add_gridspec(3, 2, height_ratios=[0.8, 1, 1])
    mean, sd = conditioning([figure.add_subplot(grid[0, 0]), figure.add_subplot(grid[0, 1])])
    x1, x2 = np.meshgrid(axis, axis, indexing="ij")
    for row, kind in enumerate(("ARD", "additive"), start=1):
        for column, weights in enumerate(WEIGHTS):
            axes = figure.add_subplot(grid[row, column], projection="3d")
            axes.plot_surface(x1, x2, found[kind, weights][0], cmap="viridis", rstride=1, cstride=1, lw=0.1, ec="0.3")
            axes.set(xlabel="$x_1$", ylabel="$x_2$")
            axes.set_title(f"{kind}: $w_1$ = {weights[0]:g}, $w_2$ = {weights[1]:g}", y=1.03)
            axes.view_init(elev=35, azim=-60)
    figure.savefig(path, dpi=110)
    plt.close(figure)
    print(f"given t = 1.1, the test target is {mean:.2f} with standard deviation {sd:.2f}; before: 0 with 1")


def main(quick: bool = False, folder: str | Path = "examples/output") -> Path:
    """Print the checks, save the figure in `folder` and return its path. ``quick`` takes a coarser grid."""
    path = Path(folder) / "gp_priors.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    n = 20 if quick else 50
    axis, _ = mesh(n)
    found = surfaces(n, 20 if quick else 400, np.random.default_rng(3))
    report(found, axis)
    picture(found, axis, path)
    print(f"figure: {path}")
    return path


if __name__ == "__main__":
    main(folder=sys.argv[1] if len(sys.argv) > 1 else "examples/output")
