"""What functions does a network believe in before data? Neal's limit: 1, 10, 100, 1000 hidden units (Neal 1996, ch. 2).

With the precision of the hidden-to-output weights ∝ H the prior of f keeps its variance whatever H is, and the sum over
H independent units becomes a Gaussian process. Its covariance is the same for every H: only the form of the
distribution changes. One hidden unit makes one step per function, and most pairs of neighbouring inputs see none of it:
their difference has heavy tails. With v_h normal and d = z(x) - z(x') for one unit, its excess kurtosis is
3 (E d⁴/(E d²)² - 1)/H exactly, and that is what the table compares with the draws.

For hidden units erf(z) the limit's covariance is closed, an arcsine (`bayessel.covariance.Arcsin`, Williams 1998, eq.
11); for tanh, which the network has, it is not and is integrated here. The two are alike once erf is given the slope of
tanh: erf(λz) with λ = 0.831 is never further from tanh z than 0.019, so the arcsine with variances λ² times as large
stands for the tanh network. With λ = √π/2 = 0.886, the same slope at zero, erf saturates too early and is 0.035 off.

    python examples/mlp_prior_limit.py [folder]
"""

import sys
from pathlib import Path

import numpy as np

from bayessel.covariance import Arcsin
from bayessel.mlp import Architecture, NetworkPrior, forward
from bayessel.mlp.prior import Precisions

HIDDEN = (1, 10, 100, 1000)
#: standard deviations: of f but for the bias, of hidden biases, of input-to-hidden weights, of the bias
SIGNAL, HIDDEN_BIAS, INPUT, BIAS = 1.0, 4.0, 4.0, 0.3
#: erf(LIKE_TANH z) is as near to tanh z as it gets
LIKE_TANH = 0.831
PAIR = (-0.25, 0.25)


def prior(H):
    """A network of one input and its precisions, held, without direct connections to speak of."""
    belief = NetworkPrior(Architecture(1, H), bias_sd=BIAS)
    one = np.ones(1)
    scaled = np.asarray(H / SIGNAL**2)  # the precision of the output weights, ∝ H
    return belief, Precisions(one, np.asarray(HIDDEN_BIAS**-2.0), scaled, one * INPUT**-2.0, one[0], one * 1e12, one[0])


def networks(H, x, rng, count):
    """Functions of networks from the prior at x, (count, len(x)); in portions, for the memory's sake."""
    belief, precisions = prior(H)
    architecture, scale = belief.architecture, belief.weight_precisions(precisions) ** -0.5
    portion = max(1, min(count, 20_000_000 // (H * len(x))))
    found = []
    for first in range(0, count, portion):
        weights = scale * rng.standard_normal((min(portion, count - first), architecture.size))
        found.append(forward(architecture.split(weights), x[:, None])[0][..., 0])
    return np.concatenate(found)


def by_quadrature(x, other, nodes=200):
    """E[tanh(a + ux) tanh(a + ux')] for a, u normal, of shape (len(x), len(other))."""
    z, weight = np.polynomial.hermite_e.hermegauss(nodes)
    weight = weight / weight.sum()
    a, u = np.meshgrid(HIDDEN_BIAS * z, INPUT * z, indexing="ij")
    share = np.sqrt(np.outer(weight, weight))
    left, right = (np.tanh(a + u * v[:, None, None]) * share for v in (x, other))
    return np.einsum("iab,jab->ij", left, right)


def arcsine(X, slope):
    """The covariance of the limit with hidden units erf(slope · z)."""
    theta = 2.0 * np.log([SIGNAL, slope * HIDDEN_BIAS, slope * INPUT])
    return BIAS**2 + Arcsin().matrix(theta, X[:, None])


def kurtosis(d):
    return float(np.mean(d**4) / np.mean(d**2) ** 2 - 3.0)


def expected_kurtosis(rng, count=1_000_000):
    """3 (E d⁴/(E d²)² - 1) of one hidden unit, for the pair of inputs."""
    a, u = HIDDEN_BIAS * rng.standard_normal(count), INPUT * rng.standard_normal(count)
    d = np.tanh(a + PAIR[1] * u) - np.tanh(a + PAIR[0] * u)
    return 3.0 * (np.mean(d**4) / np.mean(d**2) ** 2 - 1.0)


def report(rng, count):
    """Numbers at the pair of inputs; the draws."""
    pair = np.array(PAIR)
    K = BIAS**2 + SIGNAL**2 * by_quadrature(pair, pair)
    names = ("f(x) f(x)", "f(x) f(x')", "f(x') f(x')")
    print(
        f"covariances at x = {pair[0]:g}, x' = {pair[1]:g} (standard errors), and how unlike a normal f(x') - f(x) is"
    )
    print(f"{'':22}" + "".join(f"{name:>17}" for name in names) + f"{'excess kurtosis':>22}{'expected':>10}")
    for title, matrix in (
        ("tanh, by quadrature", K),
        (f"erf, λ = {LIKE_TANH}", arcsine(pair, LIKE_TANH)),
        ("erf, same slope at 0", arcsine(pair, np.sqrt(np.pi) / 2)),
        ("erf, λ = 1", arcsine(pair, 1.0)),
    ):
        print(f"{title:22}" + "".join(f"{matrix[i]:>17.4f}" for i in ((0, 0), (0, 1), (1, 1))))
    found, single = {}, expected_kurtosis(rng)
    for H in HIDDEN:
        f = networks(H, pair, rng, count)
        found[H] = f
        products = [f[:, i] * f[:, j] for i, j in ((0, 0), (0, 1), (1, 1))]
        cells = "".join(f"{p.mean():>9.4f} ({p.std() / np.sqrt(count):.4f})".rjust(17) for p in products)
        parts = [kurtosis(part) for part in np.split(f[:, 1] - f[:, 0], 10)]
        spread = np.std(parts, ddof=1) / np.sqrt(10)
        print(f"H = {H:<18}{cells}{np.mean(parts):>14.3f} ({spread:.3f}){single / H:>10.3f}")
    return found, K


def picture(pairs, K, rng, path):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 5, figsize=(15, 6), layout="constrained")
    x = np.linspace(-2.0, 2.0, 401)
    blue, red = "#0072B2", "#D55E00"
    process = np.linalg.cholesky(arcsine(x, LIKE_TANH) + 1e-8 * np.eye(len(x)))
    curves = {f"H = {H}": networks(H, x, rng, 6) for H in HIDDEN}
    curves["Gaussian process"] = rng.standard_normal((6, len(x))) @ process.T
    for one, (title, functions) in zip(axes[0], curves.items(), strict=True):
        one.plot(x, functions.T, lw=1.3, color=red if title.startswith("G") else blue, alpha=0.8)
        one.set(title=title, ylim=(-3.4, 3.4), xlabel="x")
    axes[0, 0].set_ylabel("f(x): six draws")
    angle = np.linspace(0, 2 * np.pi, 200)
    ring = np.linalg.cholesky(K) @ np.vstack([np.cos(angle), np.sin(angle)])
    for one, (H, f) in zip(axes[1], pairs.items(), strict=False):
        one.scatter(f[:1500, 0], f[:1500, 1], s=4, color=blue, alpha=0.35, lw=0)
        for r in (1.0, 2.0):
            one.plot(*(r * ring), color=red, lw=1.3)
        one.set(xlim=(-3.4, 3.4), ylim=(-3.4, 3.4), aspect="equal", xlabel=f"f({PAIR[0]})", title=f"H = {H}")
    axes[1, 0].set_ylabel(f"f({PAIR[1]}); rings: the process")
    last, origin = axes[1, 4], np.array([0.5])
    last.plot(x, BIAS**2 + SIGNAL**2 * by_quadrature(origin, x)[0], color="black", lw=2.5, label="tanh")
    for slope, style in ((LIKE_TANH, "-"), (1.0, ":")):
        K_x = arcsine(np.append(x, origin), slope)[-1, :-1]
        last.plot(x, K_x, style, color=red, lw=1.3, label=f"erf, λ = {slope:g}")
    last.set(xlabel="x", title="covariance of f(x) and f(0.5)")
    last.legend(frameon=False)
    for one in axes.ravel():
        one.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main(quick: bool = False, folder: str | Path = "examples/output") -> Path:
    """Print the numbers, save the figure in `folder` and return its path. ``quick`` takes fewer draws."""
    path = Path(folder) / "mlp_prior_limit.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(1)
    found, K = report(rng, 2000 if quick else 40_000)
    picture(found, K, rng, path)
    print(f"figure: {path}")
    return path


if __name__ == "__main__":
    main(folder=sys.argv[1] if len(sys.argv) > 1 else "examples/output")
