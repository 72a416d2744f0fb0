"""Two time scales in one series: a description length with two minima, and the fit at each of them.

In the second experiment of Anguita and Gagliolo, a day of traffic on a highway, the description length of a relevance
vector machine has two local minima over the kernel width: the lower at ρ = 50 samples with 11 functions, which follows
passing disturbances, another at ρ = 200 with 5, the day as a whole. Both fits say something about the traffic.

The same is asked here of the carbon dioxide on Mauna Loa, monthly means from 1985 to 2001 (204 rows): a rise over the
years with the seasons on top. Widths are r of exp(-d²/r²) in years. Minima count where a rise of some nats parts them.

What is seen: narrow functions that follow the seasons (r near 2/3 of a year, about one function for every nine months)
and a few wide ones that follow the rise make messages of almost the same length, with a wall of 200 nats between them,
at widths too wide for the seasons and too narrow for the rise. The wall is steep: one step of the grid away from the
minimum of the seasons, at r = 0.84, the length is at its highest. Which of the two is the lower hangs on δ, the
precision to which weights are sent: the paper's claim that δ does not matter does not hold here. The evidence sides
with the seasons, by hundreds of nats, and with still narrower functions. In the wide valley the curves are rough, by
ten nats or more from one width to the next: the fits are local optima, and further minima there (r = 3, r = 30) mean
little.

Sunspots, the other series everybody has, show less: the minimum that resolves the eleven-year cycle (r = 4 years, 56
functions) is 230 nats above a slow drift of two functions: so many spikes cost much, and no function has a period.

The paper's own kind of series: with a table of traffic as a second argument (columns date, minute_of_day, flow, as the
Californian PeMS data have them) the minima of MDL-w are printed for its first ten days.

    python examples/two_time_scales.py [folder [traffic.csv]]
"""

import sys
from pathlib import Path

import numpy as np

import bayessel as bs

JUDGES = {"mdl-w": ("MDL-w", "#D55E00"), "mdl-alpha": ("MDL-α", "#0072B2"), "evidence": ("-log evidence", "#009E73")}
DELTAS = (0.01, 0.1, 1.0)


def load():
    """Return decimal years and carbon dioxide in ppm, monthly means from 1985 on."""
    try:
        from statsmodels.datasets import co2
    except ImportError:
        raise SystemExit("the series comes with: pip install 'bayessel[examples]'") from None
    monthly = co2.load_pandas().data["co2"].resample("MS").mean().dropna()["1985":]
    return (monthly.index.year + (monthly.index.month - 0.5) / 12).to_numpy(), monthly.to_numpy()


def two_minima(comparison, name):
    """The lowest minimum and the best of those that lie at least a factor of three from it."""
    found = comparison.scales(name)
    apart = [one for one in found[1:] if abs(np.log(one.width / found[0].width)) > np.log(3)]
    return found[:1] + tuple(apart[:1])


def report(comparison):
    table = comparison.table
    print(comparison.facts(), end="\n\n")
    print(
        f"{'local minima of':18}{'r in years':>11}{'functions':>11}{'noise, ppm':>12}"
        f"{'nats above the lowest':>23}{'wall':>8}"
    )
    for name, (label, _) in JUDGES.items():
        for one in comparison.scales(name):
            row, above = table.loc[one.width], abs(one.value - comparison.scales(name)[0].value)
            wall = f"{one.depth:.0f}" if np.isfinite(one.depth) else ""
            k, noise = int(row["n_basis"]), row["noise_std"]
            print(f"{label:18}{one.width:>11.2f}{k:>11}{noise:>12.2f}{above:>23.0f}{wall:>8}")
            label = ""
    print("\n'wall': by how much the curve rises between this minimum and every lower one.")
    print("In the paper (traffic): minima at ρ = 50 with 11 functions and at ρ = 200 with 5; δ does not matter.")
    chosen = comparison.deltas("mdl-w", DELTAS)
    picks = ", ".join(f"δ = {delta:g}: r = {row['width']:.2f}" for delta, row in chosen.iterrows())
    print(f"Here MDL-w prefers, with {picks}.")


def picture(comparison, path):
    import matplotlib.pyplot as plt

    table, (x, y) = comparison.table, (comparison.X[:, 0], comparison.y)
    figure = plt.figure(figsize=(11.5, 8.2), layout="constrained")
    grid = figure.add_gridspec(2, 2, height_ratios=[1, 1.05])
    left, right = figure.add_subplot(grid[0, 0]), figure.add_subplot(grid[0, 1])
    widths = table.index.to_numpy()
    for name, (label, colour) in JUDGES.items():
        if name == "evidence":
            continue
        left.semilogx(widths, table[name], color=colour, lw=2, label=label)
        for one in two_minima(comparison, name):
            left.plot(one.width, one.value, "*", ms=14, color=colour, mec="white", mew=0.7, zorder=5)
    low = np.nanmin(table[["mdl-w", "mdl-alpha"]].to_numpy())
    left.set(ylim=(low - 15, low + 260), xlabel="width r (years)", ylabel="nats")
    left.set_title("Description lengths: two valleys (★ minima)")
    left.legend(frameon=False, loc="upper right")
    for delta, style in zip(DELTAS, (":", "-", "--"), strict=True):
        values = table["mdl-w"] - table["n_basis"] * np.log(delta / 0.1)
        right.semilogx(widths, values, style, color=JUDGES["mdl-w"][1], lw=2, label=f"δ = {delta:g}")
        right.plot(values.idxmin(), values.min(), "*", ms=14, color=JUDGES["mdl-w"][1], mec="white", mew=0.7, zorder=5)
    right.set(ylim=(low - 75, low + 330), xlabel="width r (years)", ylabel="nats")
    right.set_title("MDL-w: δ decides between them (★ lowest)")
    right.legend(frameon=False, loc="upper right")
    for one in (left, right):
        one.set_xticks([0.1, 0.3, 1, 3, 10, 30], ["0.1", "0.3", "1", "3", "10", "30"])
        one.xaxis.set_minor_formatter(lambda *_: "")

    below = figure.add_subplot(grid[1, :])
    fits = sorted(one.width for one in two_minima(comparison, "mdl-w"))
    for shift, width, colour in zip((0.0, -9.0), fits, ("#D55E00", "#0072B2"), strict=False):
        fit = comparison.fits[width]
        below.plot(x, y + shift, ".", ms=4, color="0.65")
        below.plot(fit.grid, fit.grid_mean + shift, color=colour, lw=2)
        centres = comparison.centers[fit.basis[fit.basis < comparison.n_centers], 0]
        below.plot(
            centres, np.interp(centres, fit.grid, fit.grid_mean) + shift, "o", ms=6, mfc="none", mec=colour, mew=1.5
        )
        noise = table.loc[width, "noise_std"]
        text = f"r = {width:.2f} years\n{len(fit.basis)} functions\nnoise {noise:.2f} ppm"
        below.text(x[-1] + 0.4, fit.grid_mean[-1] + shift - 3.0, text, color=colour, va="center", fontsize=10)
    below.set(
        xlabel="year",
        ylabel="CO₂ (ppm)",
        title="The fit at each minimum of MDL-w (the second 9 ppm lower; circles: centres)",
    )
    below.set_xticks(range(1985, 2003, 3))
    below.set_xlim(x[0] - 0.3, x[-1] + 2.6)
    for one in (left, right, below):
        one.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def traffic(file, days=10):
    """Print both scales of each day: ρ in minutes, functions, nats above the lowest, wall."""
    import pandas as pd

    for date, day in list(pd.read_csv(file).groupby("date"))[:days]:
        hours, flow = day["minute_of_day"].to_numpy(float) / 60, day["flow"].to_numpy(float)
        widths = np.geomspace(0.3, 30, 24)
        found = bs.compare_widths(hours, flow, widths, model="rvm", criteria=("mdl-w",), progressbar=False)
        for one in found.scales("mdl-w")[:2]:
            above = one.value - found.scales("mdl-w")[0].value
            k = int(found.table.loc[one.width, "n_basis"])
            rho = 60 * one.width / np.sqrt(2)
            print(f"{date}: ρ = {rho:.0f} minutes, {k} functions, {above:.0f} nats, wall {one.depth:.0f}")


def main(quick: bool = False, folder: str | Path = "examples/output") -> Path:
    """Print the minima, save the figure in `folder` and return its path. ``quick`` tries fewer widths."""
    path = Path(folder) / "two_time_scales.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    x, y = load()
    widths = np.geomspace(0.23, 40, 8) if quick else np.geomspace(0.1, 60, 31)
    criteria = tuple(JUDGES)
    comparison = bs.compare_widths(
        x, y, widths, model="rvm", criteria=criteria, names=("year",), target="co2", progressbar=False
    )
    report(comparison)
    picture(comparison, path)
    print(f"figure: {path}")
    return path


if __name__ == "__main__":
    main(folder=sys.argv[1] if len(sys.argv) > 1 else "examples/output")
    for name in sys.argv[2:]:
        traffic(name)
