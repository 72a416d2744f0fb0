"""Carbon dioxide on Mauna Loa, sixteen years ahead: a covariance says what may be carried on.

Monthly means from 1958 on; the years up to 1984 are for learning, the others for looking. Two Gaussian processes:

standard
    The thesis' covariance: a plane, one squared exponential, noise. Its one length becomes a fifth of a year to follow
    the seasons, and soon beyond the data all but the plane is forgotten.
a sum of parts
    A slow squared exponential (the rise), a squared exponential times a periodic of one year (seasons that may change
    their shape over decades), a rational quadratic (what wanders over months and years), and noise. Every part has its
    own parameters, found by maximum likelihood; the period is given.

What is seen: the evidence prefers the sum by more than two hundred nats, and its forecast for 1985 to 2001 misses by
about 1 ppm while its error bars grow to 4 ppm, honestly. The same data can be told apart into rise, season and wander:
the expectation of each term given the data is a sum over its own covariances with the same weights Q⁻¹t.

    python examples/gp_co2.py [folder]
"""

import sys
from pathlib import Path

import numpy as np

from bayessel.covariance import Noise, Periodic, RationalQuadratic, SquaredExponential, Standard
from bayessel.gp import Marginal, fit_map

LEARN_UNTIL = 1985.0
COLOURS = {"standard": "#0072B2", "a sum of parts": "#D55E00"}
PARTS = ("rise", "season", "wander")


def load():
    """Return decimal years and carbon dioxide in ppm, monthly means."""
    try:
        from statsmodels.datasets import co2
    except ImportError:
        raise SystemExit("the series comes with: pip install 'bayessel[examples]'") from None
    monthly = co2.load_pandas().data["co2"].resample("MS").mean().dropna()
    return (monthly.index.year + (monthly.index.month - 0.5) / 12).to_numpy(), monthly.to_numpy()


def covariances():
    """{name: (covariance, parameters that are given)}."""
    rise, season = SquaredExponential(), SquaredExponential() * Periodic(amplitude=False)
    parts = rise + season + RationalQuadratic() + Noise()
    return {"standard": (Standard(), {}), "a sum of parts": (parts, {"log p[0]": 0.0})}


def terms(fit, X):
    """Expected values of the function's terms at X, (terms, n): each has its own k(X, data), all share Q⁻¹t."""
    a = Marginal(fit.X, fit.t, fit.covariance).factor(fit.theta).a
    found, first = [], 0
    for term in fit.covariance.terms:
        share = fit.theta[first : first + term.size(1)]
        first += len(share)
        if not term.noisy:
            found.append(term.matrix(share, X, fit.X) @ a)
    return np.array(found)


def learn(x, y, quick):
    """Fits, and what they say of all months: {name: (fit, mean, standard deviation, terms)}; ppm."""
    early = x < LEARN_UNTIL
    shift, scale = y[early].mean(), y[early].std()
    X, t = (x - 1970.0)[:, None], (y - shift) / scale
    found = {}
    for name, (covariance, given) in covariances().items():
        fit = fit_map(X[early], t[early], covariance, prior=None, fixed=given, starts=2 if quick else 8)
        ahead = fit.predict(X).scaled(shift, scale)
        parts = terms(fit, X) * scale if name == "a sum of parts" else None
        found[name] = (fit, ahead.mean, ahead.std, parts)
    return found


def report(x, y, found):
    ahead = x >= LEARN_UNTIL
    print(f"{'':16}{'log evidence':>14}{'error ahead':>13}{'largest':>9}{'its own deviation, first and last':>38}")
    for name, (fit, mean, sd, _) in found.items():
        error = (y - mean)[ahead]
        print(
            f"{name:16}{fit.log_evidence:>14.1f}{np.sqrt(np.mean(error**2)):>9.2f} ppm{np.abs(error).max():>9.2f}"
            f"{sd[ahead][0]:>22.2f} to {sd[ahead][-1]:.2f} ppm"
        )
    fit = found["a sum of parts"][0]
    print("\nparameters of the sum (natural scale):")
    print(
        ", ".join(
            f"{name.replace('log ', '')} = {np.exp(value):.3g}"
            for name, value in zip(fit.names, fit.theta, strict=True)
        )
    )
    print(f"status: {fit.status.name}")


def picture(x, y, found, path):
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(11, 8.5), layout="constrained")
    grid = figure.add_gridspec(2, 3, height_ratios=[1.5, 1])
    top = figure.add_subplot(grid[0, :])
    for name, (_, mean, sd, _) in found.items():
        late = x >= LEARN_UNTIL - 2
        top.fill_between(x[late], (mean - 2 * sd)[late], (mean + 2 * sd)[late], color=COLOURS[name], alpha=0.18, lw=0)
        top.plot(x[late], mean[late], color=COLOURS[name], lw=1.6, label=f"{name} (± 2 standard deviations)")
    top.plot(x, y, ".", ms=2.5, color="black", label="monthly means")
    top.axvline(LEARN_UNTIL, color="0.5", ls=":")
    top.set(
        ylabel="CO₂ (ppm)", xlim=(1975, x[-1] + 0.3), ylim=(325, 385), title="Learnt up to 1984, forecast from there"
    )
    top.legend(frameon=False, loc="upper left")
    parts = found["a sum of parts"][3]
    early = x < LEARN_UNTIL
    for column, (name, values) in enumerate(zip(PARTS, parts, strict=True)):
        axes = figure.add_subplot(grid[1, column])
        shown = early & (x > 1978) if name == "season" else early
        axes.plot(x[shown], values[shown], color=COLOURS["a sum of parts"], lw=1.5)
        axes.set(title=f"Learnt: {name}", xlabel="year", ylabel="ppm")
        axes.spines[["top", "right"]].set_visible(False)
    top.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main(quick: bool = False, folder: str | Path = "examples/output") -> Path:
    """Print the errors, save the figure in `folder` and return its path. ``quick`` tries fewer starts."""
    path = Path(folder) / "gp_co2.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    x, y = load()
    found = learn(x, y, quick)
    report(x, y, found)
    picture(x, y, found, path)
    print(f"figure: {path}")
    return path


if __name__ == "__main__":
    main(folder=sys.argv[1] if len(sys.argv) > 1 else "examples/output")
