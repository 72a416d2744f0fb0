"""The picture of the README: a function with its error bars, the inputs that matter, the width that the data prefer.

python examples/overview_picture.py [file]
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

import bayessel as bs
from bayessel.diagnostics import FitDisplay, RelevanceDisplay


def rows():
    """A wave over the first of three inputs, with a gap, a bow along the second; the third does nothing."""
    rng = np.random.default_rng(2)
    time = np.concatenate([rng.uniform(0, 3.4, 40), rng.uniform(5, 7, 30)])
    table = pd.DataFrame({"time": time, "load": rng.normal(size=70), "a third": rng.normal(size=70)})
    wave = np.sin(2 * time) + 0.15 * rng.normal(size=70)
    return table, wave, wave + np.cos(1.5 * table["load"])


def main(quick=False, path="examples/output/overview.png"):
    """Draw it and return the path. ``quick`` tries fewer widths."""
    import matplotlib

    matplotlib.rcParams["font.size"] = 11
    from matplotlib.figure import Figure

    X, wave, y = rows()
    figure = Figure(figsize=(12, 3.6), layout="constrained")
    first, second, third = figure.subplots(1, 3, width_ratios=(1.5, 1, 1.2))
    process = bs.GPRegressor(inference="map")
    FitDisplay.from_estimator(process.fit(X[["time"]], wave), X[["time"]], wave, ax=first)
    first.set(title="Error bars widen where there are no rows", xlabel="time", ylabel="target", ylim=(-2.6, 1.9))
    first.legend(loc="lower center", ncols=2, frameon=False, fontsize=8.5)
    RelevanceDisplay.from_estimator(process.fit(X, y), ax=second)
    second.set_title("Which inputs matter")
    widths = np.geomspace(0.2, 12, 5 if quick else 21)
    found = bs.compare_widths(X["time"], wave, widths, criteria=("evidence",), progressbar=False)
    third.semilogx(found.table.index, found.table["evidence"], ".-", color="#2f6690")
    best = found.best("evidence")
    third.plot(best, found.table["evidence"].max(), "o", color="#c8553d")
    third.axvline(best, color="#c8553d", lw=0.8, ls=":")
    third.set(title="Which kernel width the data prefer", xlabel="width", ylabel="log evidence, nats", ylim=(-58, 9))
    third.annotate(f"{best:.2g}", (best, 3.6), ha="center", color="#c8553d")
    third.spines[["top", "right"]].set_visible(False)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=90)
    return path


if __name__ == "__main__":
    print(main(path=sys.argv[1] if len(sys.argv) > 1 else "examples/output/overview.png"))
