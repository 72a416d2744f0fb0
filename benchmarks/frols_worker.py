# pyright: reportMissingImports=false
"""SysIdentPy's FROLS on a dictionary of gaussians: run by the interpreter that has it, talks in JSON.

    python frols_worker.py data.npz

The file holds X, t, widths and terms; the answer has the seconds (dictionary included), and the chosen columns.
"""

import json
import sys
import time

import numpy as np


def main() -> None:
    """Read, select, answer."""
    try:
        from sysidentpy.model_structure_selection import FROLS
    except ImportError:
        print(json.dumps({"why": "sysidentpy is not installed"}))
        return
    with np.load(sys.argv[1]) as data:
        X, t, widths, terms = data["X"], data["t"], data["widths"], int(data["terms"])
    start = time.perf_counter()
    Z = X / widths
    F = np.empty((len(Z), len(Z)))
    for i in range(0, len(Z), 32):
        F[i : i + 32] = ((Z[i : i + 32, None, :] - Z[None, :, :]) ** 2).sum(axis=2)
    np.exp(-F, out=F)
    model = FROLS(n_terms=terms)
    model.max_lag = 0
    _, chosen, _ = model.error_reduction_ratio(F, t[:, None], terms)
    print(json.dumps({"seconds": time.perf_counter() - start, "chosen": np.asarray(chosen)[:terms].tolist()}))


if __name__ == "__main__":
    main()
