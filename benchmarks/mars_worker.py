# pyright: reportMissingImports=false
"""A peer's regression splines: run by the interpreter that has it (Python 3.6 or later), talks in JSON.

    python mars_worker.py data.npz

The file holds X (sets, N, D), y (sets, N), X_test (n, D), functions, degree, penalty and linear (whether an input may
enter without a knot); the answer has, for each set, predictions of the test rows, seconds, and the part of the sum of
squares that is left after each step of the first pass.
"""

import json
import sys
import time
import warnings

import numpy as np


def estimator(setting):
    """An estimator of py-earth, or of its pure Python successor; None where neither is there."""
    common = {
        "max_terms": setting["functions"] + 1,
        "max_degree": setting["degree"],
        "penalty": float(setting["penalty"]),
        "minspan_alpha": 0.05,
        "endspan_alpha": 0.05,
        "allow_linear": setting["linear"] > 0,
    }
    try:
        from pyearth import Earth

        return "py-earth", Earth(thresh=0.0, **common)
    except ImportError:
        pass
    try:
        from pymars import Earth

        return "mars-earth", Earth(**common)
    except ImportError:
        return None, None


def main():
    """Read, fit, answer."""
    warnings.simplefilter("ignore")
    with np.load(sys.argv[1]) as data:
        X, y, X_test = data["X"], data["y"], data["X_test"]
        setting = {name: float(data[name]) for name in ("functions", "degree", "penalty", "linear")}
    setting["functions"], setting["degree"] = int(setting["functions"]), int(setting["degree"])
    answer = {"prediction": [], "seconds": [], "left": []}
    for rows, targets in zip(X, y):  # noqa: B905 (an old interpreter may run this)
        name, model = estimator(setting)
        if model is None:
            print(json.dumps({"why": "neither py-earth nor mars-earth is installed"}))
            return
        start = time.perf_counter()
        model.fit(rows, targets)
        answer["seconds"].append(time.perf_counter() - start)
        answer["prediction"].append(np.ravel(model.predict(X_test)).tolist())
        if name == "py-earth":
            steps = model.forward_pass_record_
            total = float(np.sum((targets - targets.mean()) ** 2))
            answer["left"].append([float(steps[i].get_mse()) * len(targets) / total for i in range(1, len(steps))])
    print(json.dumps(dict(answer, name=name)))


if __name__ == "__main__":
    main()
