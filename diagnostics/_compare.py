"""One table for several fits of the same data, whatever they were fitted with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from bayessel._check import FloatArray, as_flag, as_positive, one_of
from bayessel._formulas import FLAGS, flag_code_length, log_normal, precision_code_length, weight_code_length
from bayessel.criteria import CRITERIA, from_sums
from bayessel.diagnostics._network import NetworkReading, is_network, read_network
from bayessel.diagnostics._process import ProcessReading, is_process, read_process
from bayessel.diagnostics._reading import Reading, read, unwrap
from bayessel.errors import DataMismatchError
from bayessel.fit import LeaveOneOut

COLUMNS = ("evidence", "model-evidence", "mdl-w", "mdl-alpha", "loo", "elpd-loo", "gcv", "bic")
#: numbers that describe a fit rather than judge it; ranked by one of them, the smallest comes first
DESCRIPTIONS = ("gamma", "n_basis", "noise_std")
#: columns of Gaussian processes and networks alone: the Monte Carlo error of a sampled evidence, and what sort it is
_ORDER = (
    "evidence",
    "kind",
    "model-evidence",
    "model-evidence_se",
    "model-evidence_kind",
    *COLUMNS[2:],
    *DESCRIPTIONS,
    "status",
    "seconds",
)
#: what a kind of evidence decides
_OF_EVIDENCE = ("evidence", "model-evidence", "mdl-alpha")


def compare(
    fits: Mapping[str, Any],
    by: str = "evidence",
    allow_mixed: bool = False,
    *,
    delta_w: float = 0.1,
    delta_alpha: float = 1.0,
    flags: str = "index",
) -> pd.DataFrame:
    r"""Rank fits of the same data, best first.

    Made for fits of one kind, such as widths or kernels under one model. Between a sparse and a dense fit distrust
    every column: the sparse one chose its columns, and a precision for each, with the rows it is judged by, and
    evidence, MDL and leave-one-out (at those columns and precisions) all flatter it. The third-level evidence, which
    pays for every precision, does so least; rows held out, with both fitted anew, decide. The same holds between a
    Gaussian process, which chose a length for every input, and a linear model.

    Parameters
    ----------
    fits
        Name -> fit: results of `fit_rvm`, `fit_evidence`, `fit_ridge`, `fit_map`, `fit_network_evidence`, or fitted
        estimators, alone or in a pipeline.
    by
        Column to rank by: ``"evidence"``, ``"model-evidence"``, ``"elpd-loo"`` (higher is better), ``"mdl-w"``,
        ``"mdl-alpha"``, ``"loo"``, ``"gcv"``, ``"bic"``, ``"gamma"``, ``"n_basis"``, ``"noise_std"`` (lower is better).
    allow_mixed
        Rank evidences of different kinds all the same (``"type2"``: at the best precisions; ``"plug-in"``: at those
        that another criterion chose, which is never more; ``"bound"``, of inducing inputs, which is less;
        ``"laplace"``, of networks at the best precisions, their weights integrated out by Laplace's method). The column
        ``kind`` tells them apart. Model evidences are ``"third-level"`` (of linear models: without constants that all
        of them share), ``"laplace"``, ``"laplace-bound"`` or ``"sampled"`` (of Gaussian processes and of networks, with
        proper priors).
    delta_w, delta_alpha, flags
        Settings of `mdl_w` and `mdl_alpha`. ``flags="index"`` charges a fit that leaves no column out as if every
        column had been named; ``"bernoulli"`` hardly charges it.

    Returns
    -------
    pandas.DataFrame
        One row per fit (index ``fit``): the columns named above (NaN where a fit does not have one), ``kind``,
        ``status``, ``seconds`` (where a result knows how long it took), and ``difference``: by how much the fit is
        worse than the best, in the units of `by`. ``gamma`` and ``n_basis`` count the bias; ``loo`` and ``elpd-loo``
        leave rows out at the precisions and columns of all rows.
        A Gaussian process has no functions to count (``n_basis``, ``mdl-w``, ``mdl-alpha`` NaN). Its
        ``model-evidence`` is Laplace's (two gradients for each hyperparameter, computed here), or with
        ``inference="mc"`` by `bridge_sampling` from the draws (one likelihood for each draw, and as many again); then
        ``model-evidence_se`` is the Monte Carlo error, and ``model-evidence_kind`` says which it is. ``gamma``,
        ``gcv`` and ``bic`` are then those of the mode; ``loo``, ``elpd-loo`` and ``noise_std`` of all draws.
        A network has ``evidence`` with ``inference="evidence"`` alone, a ``model-evidence`` once its ``evidence()`` was
        called, and ``loo`` and ``elpd-loo`` as its
        ``leave_one_out`` says; rank networks of other kinds by these.

    Raises
    ------
    DataMismatchError
        A ``ValueError``: the fits are of different data; both fingerprints are named.

    Examples
    --------
    >>> import numpy as np
    >>> from bayessel.linear import fit_evidence
    >>> x = np.linspace(-1, 1, 40)[:, None]
    >>> t = x[:, 0] - 2 * x[:, 0] ** 3 + 0.1 * np.random.default_rng(0).normal(size=40)
    >>> table = compare({f"degree {d}": fit_evidence(x ** np.arange(d + 1), t) for d in (1, 3, 9)})
    >>> list(table.index)
    ['degree 3', 'degree 9', 'degree 1']
    """
    if not isinstance(fits, Mapping):
        raise TypeError(
            f"compare needs a dict of name -> fit, got {type(fits).__name__}; try {{'a': fit_a, 'b': fit_b}}"
        )
    if not fits:
        raise ValueError("compare needs at least one fit, got an empty dict")
    if isinstance(by, str) and by not in DESCRIPTIONS:
        by = by.replace("_", "-")
    one_of(by, "by", COLUMNS + DESCRIPTIONS)
    settings = (as_positive(delta_w, "delta_w"), as_positive(delta_alpha, "delta_alpha"), one_of(flags, "flags", FLAGS))
    readings = {str(name): _read(fit, f"{name!r}") for name, fit in fits.items()}
    _refuse_different_data(readings)
    if by in _OF_EVIDENCE and not as_flag(allow_mixed, "allow_mixed"):
        _refuse_mixed_kinds(readings, by)
    rows = [
        at.row() if isinstance(at, ProcessReading | NetworkReading) else _row(at, unwrap(fit)[0], *settings)
        for at, fit in zip(readings.values(), fits.values(), strict=True)
    ]
    table = pd.DataFrame(rows, index=pd.Index(list(readings), name="fit"))
    if "seconds" in table and table["seconds"].isna().all():
        table = table.drop(columns="seconds")
    table = table[[name for name in _ORDER if name in table]]
    height = table[by] if by in CRITERIA and CRITERIA[by].higher_is_better else -table[by]
    if height.isna().all():
        raise ValueError(f"no fit has a value of {by!r}: rank by another column")
    with np.errstate(invalid="ignore"):
        table["difference"] = np.where(height == height.max(), 0.0, height.max() - height)
    best_first = height.sort_values(ascending=False, kind="stable", na_position="last").index
    return table.loc[best_first]


def _read(fit: Any, name: str) -> Reading | ProcessReading | NetworkReading:
    inner, piped = unwrap(fit)
    if is_network(inner):
        return read_network(inner, piped)
    return read_process(inner, piped) if is_process(inner) else read(fit, name)


def _row(at: Reading, fitted: Any, delta_w: float, delta_alpha: float, flags: str) -> dict[str, Any]:
    """Every number of one fit."""
    which = flag_code_length(len(at.weights), at.n_candidates, flags)
    left_out = _leave_one_out(at, fitted)
    residuals, variances = left_out if left_out is not None else (np.full(1, np.nan), np.ones(1))
    misfit = at.sum_squares
    third = float(getattr(at.result, "model_evidence", np.nan))
    trace_p = at.n_rows - at.gamma
    return {
        "evidence": at.log_evidence,
        "kind": at.kind,
        "model-evidence": third if np.isfinite(third) else np.nan,
        "mdl-w": weight_code_length(misfit, at.beta, at.weights, at.n_rows, delta_w, which),
        "mdl-alpha": precision_code_length(at.log_evidence, at.n_rows, at.n_precisions, delta_alpha, which),
        "loo": float(np.mean(residuals**2)),
        "elpd-loo": float(log_normal(residuals, variances).sum()),
        "gcv": float(from_sums("gcv", at.n_rows, misfit, trace_p)),
        "bic": float(from_sums("bic", at.n_rows, misfit, trace_p)),
        "gamma": at.gamma,
        "n_basis": at.n_basis,
        "noise_std": at.beta**-0.5,
        "status": at.status.name,
        "seconds": float(getattr(at.result, "seconds", np.nan)),
    }


def _leave_one_out(at: Reading, fitted: Any) -> tuple[FloatArray, FloatArray] | None:
    """Leave-one-out residuals and variances; None where the result let go of its rows (large designs, streams)."""
    spectrum = getattr(at.result, "spectrum", None)
    if spectrum is not None and spectrum.given is None:
        return None
    found = (fitted if hasattr(fitted, "leave_one_out") else at.result).leave_one_out()
    return (found.errors, found.variances) if isinstance(found, LeaveOneOut) else found


def _refuse_different_data(readings: Mapping[str, Reading | ProcessReading | NetworkReading]) -> None:
    """Targets must be the same, and so must the inputs wherever two fits know theirs."""
    for attribute, what in (("target_fingerprint", "targets"), ("data_fingerprint", "data")):
        known = [(name, getattr(at, attribute)) for name, at in readings.items() if getattr(at, attribute) is not None]
        for name, fingerprint in known[1:]:
            first, other = known[0]
            if fingerprint != other:
                raise DataMismatchError(
                    f"{first!r} and {name!r} were fitted to different {what} (fingerprints {other} and {fingerprint}): "
                    "their numbers cannot be compared; fit both to the same rows, in the same order and units"
                )
    sizes = {at.n_rows for at in readings.values()}
    if len(sizes) > 1:  # a result without a fingerprint comes from a stream
        raise DataMismatchError(f"the fits have different numbers of rows: {sorted(sizes)}")


def _refuse_mixed_kinds(readings: Mapping[str, Reading | ProcessReading | NetworkReading], by: str) -> None:
    kinds: dict[str, str] = {}
    for name, at in readings.items():
        if kind := _kind(at, by):  # empty: there is no number to rank
            kinds.setdefault(kind, name)
    if len(kinds) > 1:
        said = ", ".join(f"{name!r} has {kind}" for kind, name in kinds.items())
        raise ValueError(
            f"the fits have different kinds of evidence ({said}): rank them by a column that means the same for all, "
            f"such as by='elpd-loo', or by={by!r} with allow_mixed=True"
        )


def _kind(at: Reading | ProcessReading | NetworkReading, by: str) -> str:
    """What sort of number a fit has in column `by`."""
    if by != "model-evidence":
        return at.kind
    if isinstance(at, ProcessReading | NetworkReading):
        return at.third_kind
    # of a linear model: flat priors over logarithms, whose widths are left out
    return "third-level" if at.kind == "type2" else at.kind
