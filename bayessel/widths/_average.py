r"""The widths of a comparison averaged instead of one picked.

The prior over widths is uniform in :math:`\log r` between the narrowest and the widest, the same for every kind: a
width stands for half of the way to its neighbours.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from bayessel import work
from bayessel._check import FloatArray
from bayessel.criteria.evidence import EVIDENCE, MODEL_EVIDENCE
from bayessel.errors import NumericalWarning
from bayessel.estimators.averaged_regressor import AveragedRegressor
from bayessel.estimators.averaging import average
from bayessel.fit import Fit
from bayessel.widths._problem import Candidate, WidthProblem
from bayessel.widths.arguments import MODELS
from bayessel.widths.curves import Label, width_of
from bayessel.work.jobs import check_jobs

if TYPE_CHECKING:
    from bayessel.widths._comparison import WidthComparison


def averaged(
    comparison: WidthComparison, weights: str | Mapping[Label, float], n_jobs: int | None, progressbar: bool
) -> AveragedRegressor:
    """Fit at every width and average the fits."""
    labels: list[Label] = list(comparison.table.index)
    by_name = {name_of(label): label for label in labels}
    prior = dict(zip(by_name, log_volumes(labels), strict=True))
    given: str | dict[str, float] = (
        {name_of(label): value for label, value in weights.items()} if isinstance(weights, Mapping) else weights
    )
    fits = _fits(comparison, by_name, n_jobs, progressbar)
    if given in (EVIDENCE.name, MODEL_EVIDENCE.name):
        of_kind = {
            name: fit.model_evidence if given == MODEL_EVIDENCE.name else fit.evidence  # type: ignore[attr-defined]
            for name, fit in fits.items()
        }
        known = [name for name, one in of_kind.items() if one is not None and np.isfinite(float(one))]
        if not known:
            raise ValueError(f"no width has a finite {given}: take weights='stacking'")
        fits = {name: fits[name] for name in known}
        return average(fits, given, prior={name: prior[name] for name in known})
    return average(fits, given)


def _fits(
    comparison: WidthComparison, by_name: Mapping[str, Label], n_jobs: int | None, progressbar: bool
) -> dict[str, Fit]:
    """The fits, each from the engine's own starts."""
    problem = WidthProblem(comparison.X, comparison.y, comparison.centers, comparison.bias, ())
    fit = MODELS[comparison.model].fit
    places = {
        name: Candidate(label[0] if isinstance(label, tuple) else comparison.kinds[0], width_of(label))
        for name, label in by_name.items()
    }
    units = [
        work.WorkUnit(name, fit, (problem, place), f"fitting r = {place.width:.3g}") for name, place in places.items()
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)
        report = work.run(units, None, check_jobs(n_jobs), None, progressbar, what="fitting widths")
    if report.interrupted:
        raise KeyboardInterrupt
    if report.lost:
        name, why = next(iter(report.lost.items()))
        raise RuntimeError(f"the width {name} could not be fitted: {why}")
    return {name: report.values[name] for name in by_name}


def name_of(label: Label) -> str:
    """What a width is called among the members of an average."""
    return f"{label[0]} {float(label[1])!r}" if isinstance(label, tuple) else repr(float(label))


def log_volumes(labels: list[Label]) -> FloatArray:
    """Prior probability of each width: its share of the range in log r; kinds are equally probable."""
    kinds = [label[0] if isinstance(label, tuple) else "" for label in labels]
    logs = np.log([width_of(label) for label in labels])
    volumes = np.ones(len(labels))
    for kind in set(kinds):
        mine = np.flatnonzero([one == kind for one in kinds])
        order = mine[np.argsort(logs[mine])]
        if len(order) > 1:
            gaps = np.diff(logs[order])
            volumes[order] = 0.5 * (np.append(gaps, 0.0) + np.append(0.0, gaps))
        volumes[mine] /= volumes[mine].sum()
    return volumes / volumes.sum()
