"""From a choice of columns to a result, computed afresh from the columns themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg as sl

from bayessel._check import FloatArray, IntArray
from bayessel.criteria.evidence import EVIDENCE
from bayessel.fit import Status, worst
from bayessel.linear.columns.dictionary import Columns
from bayessel.linear.columns.fit import ColumnChoice, evidence_of
from bayessel.linear.forward.result import ForwardFit
from bayessel.linear.forward.settings import ForwardSettings
from bayessel.linear.spectrum import Spectrum
from bayessel.linear.weight_posterior import Posterior


def finish(
    columns: Columns,
    t: FloatArray,
    settings: ForwardSettings,
    order: IntArray,
    lam: float,
    *,
    value: float,
    history: tuple[dict[str, Any], ...],
    models: list[tuple[int, ...]],
    stopped: str,
    notes: list[Status],
    name: str,
    triangle: FloatArray | None = None,
    coordinates: FloatArray | None = None,
) -> ForwardFit:
    """Fit the chosen columns, `order` in the order of selection, with the penalty `lam`."""
    k, n = len(order), len(t)
    sign = -1.0 if settings.stop == EVIDENCE.name else 1.0  # the searches make everything small
    by_number = np.argsort(order)
    basis = order[by_number]
    design = columns.raw(basis) if k else np.zeros((n, 0))
    evidence_fit = evidence_of(design, t, settings.centre, settings.weights)
    U = orthogonal = turn = None
    spectrum = evidence_fit.spectrum
    if triangle is not None and coordinates is not None and k:
        diagonal = np.diag(triangle)
        U = triangle / diagonal[:, None]
        orthogonal = coordinates * diagonal / (diagonal**2 + lam)
        if settings.method == "rols":
            # rows of the dictionary times the inverse of U, whose rows are in the order of selection
            turn = np.empty((k, k))
            turn[np.argsort(by_number)] = sl.solve_triangular(U, np.eye(k), check_finite=False)
            spectrum = Spectrum.of(design @ turn, t, centre=settings.centre, rows=True, weights=settings.weights)
    if lam == 0.0 and turn is None and k and _differ(columns.lengths[basis]):
        squares = columns.lengths[basis] ** 2
        spectrum = Spectrum.weighed(design, t, squares, centre=settings.centre, rows=True, weights=settings.weights)
    posterior = Posterior.of(spectrum, lam, evidence_fit.beta)
    coef = posterior.coef if turn is None else turn @ posterior.coef
    path = {
        entry["size"]: ColumnChoice(sign * float(entry["value"]), model)
        for entry, model in zip(history, models, strict=True)
    }
    notes = [*notes, *(note for note in evidence_fit.notes if note in _PASSED_ON and note not in notes)]
    return ForwardFit(
        evidence=evidence_fit.evidence,
        basis=basis,
        coef=coef[:k],
        order=order,
        lam=lam,
        gamma=posterior.gamma,
        method=settings.method,
        stop=settings.stop,
        value=sign * value,
        path=path,
        optima=(path[k],) if k in path else (),
        history=history,
        stopped=stopped,
        status=worst(notes),
        notes=tuple(notes),
        n_candidates=columns.shape[1],
        seconds=np.nan,
        fingerprint=name,
        evidence_fit=evidence_fit,
        posterior=posterior,
        turn=turn,
        design=design,
        target=t,
        U=U,
        orthogonal_coef=orthogonal,
    )


def _differ(lengths: FloatArray) -> bool:
    """Whether columns differ so much in length that weights without a penalty lose digits unless they are scaled."""
    return bool(lengths.max() > UNEQUAL * lengths.min())


#: ratio of the lengths of columns that costs three digits
UNEQUAL = 1e3
#: remarks of the evidence fit that concern the data, or the digits of the evidence, and not its own search
_PASSED_ON = (Status.TOO_FEW_ROWS, Status.CONSTANT_TARGET, Status.NOISE_AT_FLOOR, Status.ILL_CONDITIONED)
