"""Our estimators as a user calls them who says nothing, networks with a time budget."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import bayessel as bs
from bayessel.prediction import Prediction
from benchmarks.field.mixtures import Array, Mixture
from benchmarks.field.peers import Entrant, Predictor

#: seconds of processor of a network for a training row, and least
PER_ROW, LEAST = 1.0 / 64.0, 2.0


def seconds(rows: int) -> float:
    """Time of a network for a training set of so many rows."""
    return max(LEAST, PER_ROW * rows)


def mixture(there: Prediction) -> Mixture:
    """A prediction of ours as the scores take it."""
    return Mixture(there.means, np.sqrt(there.variances), there.log_weights)


def prepared(model: Any, seed: int) -> Any:
    """The estimator with its seed, on one core, without a progress bar."""
    fixed = {"random_state": seed, "cores": 1, "n_jobs": 1, "progressbar": False}
    known = model.get_params(deep=True)
    return model.set_params(**{name: fixed[last] for name in known if (last := name.rpartition("__")[2]) in fixed})


def _ours(make: Callable[[int], Any], most_rows: int = 1024) -> Entrant:
    def fit(X: Array, y: Array, seed: int) -> Predictor:
        model = prepared(make(len(y)), seed).fit(X, y)

        def predict(rows: Array) -> Mixture:
            return mixture(model.predictive(rows))

        predict.status = getattr(getattr(model, "status_", None), "name", "")  # type: ignore[attr-defined]
        return predict

    return Entrant(("bayessel",), fit, most_rows)


OURS: dict[str, Entrant] = {
    "EvidenceRegressor": _ours(lambda n: bs.EvidenceRegressor()),
    "RVMRegressor": _ours(lambda n: bs.RVMRegressor()),
    "BasisSearchRegressor": _ours(lambda n: bs.BasisSearchRegressor()),
    "ForwardSelectionRegressor": _ours(lambda n: bs.ForwardSelectionRegressor()),
    "RidgeRBFRegressor": _ours(lambda n: bs.RidgeRBFRegressor()),
    "GPRegressor": _ours(lambda n: bs.GPRegressor()),
    'GPRegressor(inference="mc")': _ours(lambda n: bs.GPRegressor(inference="mc"), most_rows=256),
    "average": _ours(lambda n: bs.average()),
    "MLPRegressor": _ours(lambda n: bs.MLPRegressor(time_budget=seconds(n))),
}
