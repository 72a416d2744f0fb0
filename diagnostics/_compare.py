"""One table for several fits of the same data, whatever they were fitted with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bayessel._check import as_flag, as_positive, one_of
from bayessel._formulas import FLAGS
from bayessel.criteria import CRITERIA
from bayessel.criteria.capabilities import Sendable
from bayessel.criteria.description_length import (
    DELTAS,
    MDL_ALPHA,
    MDL_W,
    PRECISION_DELTA,
    WEIGHT_DELTA,
    precisions_sent,
    weights_sent,
)
from bayessel.criteria.error_estimates import BIC, GCV
from bayessel.criteria.evidence import EVIDENCE, MODEL_EVIDENCE
from bayessel.criteria.leave_one_out import ELPD_LOO, LOO
from bayessel.diagnostics.comparable_fits import (
    kind_of_evidence,
    refuse_different_data,
    refuse_mixed_kinds,
    third_level,
)
from bayessel.diagnostics.fit_reader import Reading, read
from bayessel.fit import Fit

if TYPE_CHECKING:
    import pymc as pm
    import xarray as xr
    from sklearn.base import BaseEstimator

    from bayessel.marginal_likelihood.model_evidence import ModelEvidence

#: the criteria of the table
COLUMNS = tuple(one.name for one in (EVIDENCE, MODEL_EVIDENCE, MDL_W, MDL_ALPHA, LOO, ELPD_LOO, GCV, BIC))
#: numbers that describe a fit rather than judge it; ranked by one of them, the smallest comes first
DESCRIPTIONS = ("gamma", "n_basis", "noise_std")
#: of fits without functions to count: the Monte Carlo error of a sampled evidence, and what sort it is
_OF_THIRD_LEVEL = (f"{MODEL_EVIDENCE.name}_se", f"{MODEL_EVIDENCE.name}_kind")
_ORDER = (
    EVIDENCE.name,
    "kind",
    MODEL_EVIDENCE.name,
    *_OF_THIRD_LEVEL,
    *COLUMNS[2:],
    *DESCRIPTIONS,
    "status",
    "seconds",
)
#: what sort has a Monte Carlo error
_SAMPLED = "sampled"
#: what a kind of evidence decides
_OF_EVIDENCE = (EVIDENCE.name, MODEL_EVIDENCE.name, MDL_ALPHA.name)


def compare(
    fits: Mapping[str, Fit | BaseEstimator | pm.Model | ModelEvidence | xr.DataTree],
    by: str = EVIDENCE.name,
    allow_mixed: bool = False,
    *,
    delta_w: float = WEIGHT_DELTA,
    delta_alpha: float = PRECISION_DELTA,
    flags: str = FLAGS[0],
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
        Name -> fit: results of engines (`bayessel.fit.Fit`: of `fit_rvm`, `fit_evidence`, `fit_ridge`, `fit_map`,
        `fit_network_evidence` and others), or fitted estimators, alone or in a pipeline; PyMC models, whose evidence is
        computed (`bayessel.evidence`, which you may also call before and pass what it returns); and traces, with
        ``elpd-loo`` where they have a pointwise log likelihood, and an evidence where one is attached
        (`ModelEvidence.attach`). Those of `bayessel.models.linear` and `rvm` on a design have ``mdl-w`` and
        ``mdl-alpha``, at mean weights and geometric mean precisions, weights integrated out or not.
    by
        Column to rank by: ``"evidence"`` (the model evidence where no fit has another), ``"model-evidence"``,
        ``"elpd-loo"`` (higher is better), ``"mdl-w"``,
        ``"mdl-alpha"``, ``"loo"``, ``"gcv"``, ``"bic"``, ``"gamma"``, ``"n_basis"``, ``"noise_std"`` (lower is better).
    allow_mixed
        Rank evidences of different kinds all the same (``"type2"``: at the best precisions; ``"plug-in"``: at those
        that another criterion chose, which is never more; ``"bound"``, of inducing inputs, which is less;
        ``"type2-vecchia"``, an approximation of type2;
        ``"laplace"``, of networks at the best precisions, their weights integrated out by Laplace's method). The column
        ``kind`` tells them apart. Model evidences are ``"third-level"`` (of linear models: without constants that all
        of them share), ``"laplace"``, ``"laplace-bound"``, ``"laplace-vecchia"`` or ``"sampled"`` (of Gaussian
        processes and of networks, with proper priors).
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
    readings = {str(name): read(fit, f"{name!r}") for name, fit in fits.items()}
    refuse_different_data(readings)
    if by == EVIDENCE.name and not any(EVIDENCE.applies(at.fit) for at in readings.values()):
        by = MODEL_EVIDENCE.name
    if by in _OF_EVIDENCE and not as_flag(allow_mixed, "allow_mixed"):
        refuse_mixed_kinds(
            readings,
            by,
            "rank them by a column that means the same for all, such as by='elpd-loo', "
            f"or by={by!r} with allow_mixed=True",
        )
    rows = [_row(at, *settings) for at in readings.values()]
    table = pd.DataFrame(rows, index=pd.Index(list(readings), name="fit"))
    if "seconds" in table and table["seconds"].isna().all():
        table = table.drop(columns="seconds")
    table = table[[name for name in _ORDER if name in table]]
    height = table[by] * (CRITERIA[by].sign if by in CRITERIA else -1.0)
    if height.isna().all():
        raise ValueError(f"no fit has a value of {by!r}: rank by another column")
    with np.errstate(invalid="ignore"):
        table["difference"] = np.where(height == height.max(), 0.0, height.max() - height)
    best_first = height.sort_values(ascending=False, kind="stable", na_position="last").index
    return table.loc[best_first]


def _row(at: Reading, delta_w: float, delta_alpha: float, flags: str) -> dict[str, Any]:
    """Every number of one fit."""
    fit = at.fit
    row: dict[str, Any] = dict.fromkeys(COLUMNS, np.nan)
    for criterion in (CRITERIA[name] for name in COLUMNS if name not in DELTAS):
        if criterion.applies(fit):
            row[criterion.name] = criterion.value(fit)
    row |= {"kind": kind_of_evidence(at, EVIDENCE.name), "noise_std": at.noise_std, "n_basis": np.nan}
    row["gamma"] = float(getattr(fit, "effective_parameters", np.nan))
    if isinstance(fit, Sendable):
        row[MDL_W.name] = weights_sent(fit, delta_w, flags)
        row[MDL_ALPHA.name] = precisions_sent(fit, delta_alpha, flags)
        row["n_basis"] = fit.message().n_basis
    third = third_level(at)
    if not isinstance(fit, Sendable) or (third is not None and third.kind == _SAMPLED):
        row[_OF_THIRD_LEVEL[0]] = np.nan if third is None else third.error or 0.0
        row[_OF_THIRD_LEVEL[1]] = "" if third is None else third.kind
    return row | {"status": at.status.name, "seconds": float(fit.seconds)}
