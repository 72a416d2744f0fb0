"""Traces, PyMC models and their evidences as fits that can be compared with others."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import numpy as np
import pymc as pm
import xarray as xr

from bayessel._check import FloatArray
from bayessel._fingerprint import fingerprint
from bayessel.chains.verdict import USABLE, judged
from bayessel.criteria.capabilities import Message
from bayessel.diagnostics._trace import run_attributes, statistics, times
from bayessel.diagnostics.sampled_linear import SentDraws, has_weights, sent_draws
from bayessel.fit import Evidence, Fit, LeaveOneOut, Status
from bayessel.marginal_likelihood.audit import draws_of
from bayessel.marginal_likelihood.audit import evidence as audited
from bayessel.marginal_likelihood.model_evidence import ModelEvidence


@dataclass(frozen=True, eq=False)
class SampledFit(Fit):
    """What a trace, or the evidence of a model, says of a model: its evidence, and rows left out.

    Attributes
    ----------
    terms : (N,) array or None
        Log densities of the rows left out, by importance sampling from the draws (`arviz.loo`).
    """

    status: Status
    n_rows: int
    target_fingerprint: str
    evidence: Evidence | None
    seconds: float
    terms: FloatArray | None = field(repr=False)
    notes: tuple[Status, ...] = ()
    fingerprint: str = ""
    optima: tuple[Any, ...] = ()
    history: tuple[Mapping[str, Any], ...] = ()

    def predict(self, rows: Any) -> NoReturn:
        """A trace has no predictions at other rows."""
        raise TypeError("a trace predicts nothing by itself; use pm.sample_posterior_predictive with its model")

    def leave_one_out(self) -> LeaveOneOut:
        """Log densities of the rows left out; errors and variances are not known."""
        if self.terms is None:
            raise ValueError(
                "the trace has no pointwise log likelihood; sample with it, or use pm.compute_log_likelihood"
            )
        unknown = np.full(len(self.terms), np.nan)
        return LeaveOneOut(unknown, unknown, self.terms)

    @property
    def leaves_rows_out(self) -> bool:
        """Whether there is a pointwise log likelihood."""
        return self.terms is not None


@dataclass(frozen=True, eq=False)
class SampledLinearFit(SampledFit):
    """The same of a linear model, whose weights and precisions a message can send.

    Attributes
    ----------
    parts : SentDraws
        Weights and precisions that stand for all draws, and what they are of.
    """

    parts: SentDraws | None = field(default=None, repr=False)

    def message(self) -> Message:
        """What a description length sends."""
        return self._parts.message

    @property
    def design(self) -> FloatArray:
        """Columns of all functions, (N, M)."""
        return self._parts.design

    @property
    def target(self) -> FloatArray:
        """What was observed, (N,)."""
        return self._parts.target

    @property
    def _parts(self) -> SentDraws:
        assert self.parts is not None
        return self.parts

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise."""
        return float(self.message().beta ** -0.5)


def sampled_fit(given: Any) -> SampledFit | None:
    """A PyMC model (whose evidence is computed here), its evidence, or a trace, as a fit; None of anything else."""
    if isinstance(given, pm.Model):
        model, given = given, audited(given, quiet=True)
        if given.trace is None and has_weights(model.named_vars):
            # its evidence needed no draws, its description lengths and rows left out do
            given = replace(given, trace=draws_of(model, given.random_seed))
    if isinstance(given, ModelEvidence):
        seconds = sum(one.seconds for one in given.routes)
        parts = None if given.trace is None else sent_draws(given.trace)
        terms, n_rows = (None, 0) if given.trace is None else _terms(given.trace)
        found = _comparable(given.value, given.error, not given.comparable)
        return _fit(parts, given.status, n_rows or given.n_rows, given.target_fingerprint, found, seconds, terms)
    if not isinstance(given, xr.DataTree) or "posterior" not in given:
        return None
    terms, n_rows = _terms(given)
    attributes, found, sure = run_attributes(given), None, True
    if "evidence" in given:
        of = given["evidence"].attrs
        sure = bool(of["reliable"])
        found = _comparable(float(of["value"]), float(of["error"]), "not_comparable" not in of)
    # a run knows which variables need not agree, such as weights of hidden units
    verdict = str(attributes.get("verdict", "")) or judged(given["posterior"], statistics(given)).verdict
    status = Status.CONVERGED if sure else Status.UNSURE_EVIDENCE
    status = status if verdict == USABLE else Status.CHAINS_DISAGREE
    target = str(attributes.get("target_fingerprint", "")) or _target(given)
    return _fit(sent_draws(given), status, n_rows, target, found, times(given)[0] or np.nan, terms)


def _fit(
    parts: SentDraws | None,
    status: Status,
    n_rows: int,
    target: str,
    found: Evidence | None,
    seconds: float,
    terms: FloatArray | None,
) -> SampledFit:
    if parts is None:
        return SampledFit(status, n_rows, target, found, seconds, terms)
    return SampledLinearFit(status, n_rows, target, found, seconds, terms, parts=parts)


def _comparable(value: float, error: float, is_normalised: bool) -> Evidence | None:
    """The evidence, unless the priors leave it without a meaning."""
    return Evidence(value, "sampled", error) if is_normalised and np.isfinite(value) else None


def _terms(trace: xr.DataTree) -> tuple[FloatArray | None, int]:
    """Log densities of rows left out, over all observed variables, and the number of rows observed."""
    import arviz as az

    observed = trace["observed_data"] if "observed_data" in trace else None
    n_rows = 0 if observed is None else sum(int(one.size) for one in observed.data_vars.values())
    if "log_likelihood" not in trace:
        return None, n_rows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # what Pareto shapes say is a status of the caller's
        found = [
            np.ravel(az.loo(trace, var_name=str(name), pointwise=True).elpd_i.values)
            for name in trace["log_likelihood"].data_vars
        ]
    terms = np.concatenate(found)
    return terms, len(terms)


def _target(trace: xr.DataTree) -> str:
    """The name of what a trace observed."""
    if "observed_data" not in trace:
        return ""
    values = [np.asarray(one.values, dtype=float) for one in trace["observed_data"].data_vars.values()]
    return fingerprint(*values) if values else ""
