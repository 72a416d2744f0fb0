"""The evidence of a sampled Gaussian process: its draws and its model, judged as any PyMC model is."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayessel._check import chosen_seed
from bayessel._types import Seed
from bayessel.errors import SamplingWarning
from bayessel.estimators._sampled_process import SampledProcess
from bayessel.estimators.base import HERE
from bayessel.fit import Evidence

if TYPE_CHECKING:
    from bayessel.marginal_likelihood.model_evidence import ModelEvidence

#: hyperparameters for which a grid is cheap
MOST_ON_GRID = 2


def process_evidence(
    self: Any,
    routes: Sequence[str] | None = None,
    effort: float = 1.0,
    random_state: Seed = None,
) -> ModelEvidence:
    """Log p(y) with the hyperparameters integrated out, by routes that audit each other; kept for comparisons.

    The draws of ``inference="mc"`` are those of the bridge, and of annealing back to the prior. It becomes what
    `model_evidence_`, `model_evidence_se_` and ``bs.diagnostics.compare(…, by="model-evidence")`` show.

    Parameters
    ----------
    routes : sequence of str, optional
        As of `bayessel.evidence`. None: "laplace" and "bridge", and up to two hyperparameters go onto a grid
        ("quadrature"; with three it takes a third of a million likelihoods, "annealing" two thirds of that).
    effort : float
        How many times the usual particles and points of the prior.
    random_state : int, Generator, RandomState or None
        Seed; None: that of the fit.

    Returns
    -------
    bayessel.marginal_likelihood.model_evidence.ModelEvidence
        In nats and in units of y; `print` it for one line per route.

    Warns
    -----
    SamplingWarning
        The number is not reliable.

    Notes
    -----
    Some forty thousand likelihoods of n³ operations: seconds up to two hundred rows, about as long as sampling takes.
    The prior is that of `bayessel.models.gp` in standardised units, which were read off the data.
    """
    from bayessel.marginal_likelihood.audit import evidence

    check_is_fitted(self)
    if not isinstance(self.fit_.inner, SampledProcess):
        raise ValueError(
            "evidence() takes draws of the hyperparameters, and this fit has none: use inference='mc', with time for "
            "draws (of the mode, model_evidence_ is by Laplace's approximation)"
        )
    if routes is None:
        few = len(self.fit_.mode.names) <= MOST_ON_GRID
        routes = ("quadrature", "laplace", "bridge") if few else ("laplace", "bridge")
    seed = self._seed if random_state is None else chosen_seed(random_state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplingWarning)
        found = evidence(
            self.to_pymc(), self._run.trace, routes=routes, effort=effort, random_seed=seed, quiet=True
        ).without_trace()
    of_mode = replace(self.fit_.inner, audited=Evidence(found.value, "sampled", found.error, self.fit_.mode.names))
    self.fit_ = replace(self.fit_, inner=of_mode)
    if not found.reliable:
        warnings.warn(f"UNSURE_EVIDENCE: {found.doubt}", SamplingWarning, skip_file_prefixes=HERE)
    return found.in_units(self.fit_.log_units, self.fit_.fingerprint, self.fit_.target_fingerprint)


def error(self: Any) -> float:
    """Monte Carlo error of `model_evidence_` in nats; NaN where nothing is random."""
    check_is_fitted(self)
    found = self.fit_.model_evidence.error
    return np.nan if found is None else float(found)
