"""The evidence of a sampled network's model: annealing that begins about where the chains are."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from bayessel._check import FloatArray, as_seconds, chosen_seed
from bayessel._numerics import few_threads
from bayessel._types import Seed
from bayessel.errors import SamplingWarning
from bayessel.estimators._data_units import FitInDataUnits
from bayessel.estimators._network import NetworkRun
from bayessel.estimators._sampled_networks import SampledNetworks
from bayessel.estimators.base import HERE
from bayessel.fit import Evidence, Status
from bayessel.mlp.prior import PRECISION_NAMES
from bayessel.work.progress import LONG, progress_of

#: draws of the chains below which annealing looks for a beginning by itself
FEWEST_DRAWS = 50
#: nats by which another beginning must lead to more than the chains' for them to be called stuck; pilots are rough
MISSED = 10.0


def annealed(
    run: NetworkRun, fit: FitInDataUnits, time_budget: Any, random_state: Seed, **options: Any
) -> tuple[Any, FitInDataUnits]:
    """What `MLPRegressor.evidence` returns, and the fit with its evidence; options as of `anneal_network`."""
    from bayessel.samplers.network.annealing import anneal_network

    if not isinstance(fit.inner, SampledNetworks):
        raise ValueError(
            "evidence() integrates over the priors of sampled networks; this fit has others, or none: use "
            "inference='mc' (with 'evidence' see log_evidence_)"
        )
    draws = log_hyperparameters(fit.inner)
    seed = np.random.SeedSequence([run.seed, 1]) if random_state is None else chosen_seed(random_state)
    with few_threads(0), progress_of(run.settings["progressbar"], 100, LONG, "annealing") as tell:
        found = anneal_network(
            *run.rows,
            hidden=run.hidden,
            kind=run.kind,
            draws=draws,
            time_budget=as_seconds(time_budget),
            random_state=np.random.default_rng(seed),
            progress=None if tell is None else lambda done, runs: tell(100 * done // runs, 100),
            **options,
        )
    fit = replace(fit, inner=replace(fit.inner, evidence=found.evidence))
    found = found.in_units(fit.log_units, fit.fingerprint)
    if Status.UNSURE_EVIDENCE in found.notes:
        warnings.warn(f"UNSURE_EVIDENCE: {Status.UNSURE_EVIDENCE.value}", SamplingWarning, skip_file_prefixes=HERE)
    if draws is not None and found.pilots[0] < found.pilots.max() - MISSED:
        warnings.warn(
            f"annealing has found networks that the chains have not: from the chains' draws it comes to "
            f"{found.pilots[0]:.1f} nats, from another start to {found.pilots.max():.1f}; the chains are stuck at "
            "a poor explanation of the data: fit again with another random_state, or with more hidden units",
            SamplingWarning,
            skip_file_prefixes=HERE,
        )
    return found, fit


def sampled_evidence(fit: FitInDataUnits) -> tuple[float, float]:
    """(evidence by annealing, its standard error); NaN where there is none."""
    found: Evidence | None = fit.evidence
    if found is None or found.kind != "sampled":
        return np.nan, np.nan
    return found.value, np.nan if found.error is None else found.error


def log_hyperparameters(sampled: SampledNetworks) -> FloatArray | None:
    """Logarithms of the hyperparameters drawn, (draws, ·) as in `Precisions`; None where there are few."""
    posterior, parts = sampled.posterior, []
    if posterior is None:
        return None
    for name in PRECISION_NAMES:
        if name in posterior:
            values = np.asarray(posterior[name].values)[:, sampled.discarded :]
            logs = np.log(np.maximum(values, np.finfo(np.float64).tiny))
            parts.append(logs.reshape(values.shape[0] * values.shape[1], -1))
    draws = len(parts[0])
    if PRECISION_NAMES[0] not in posterior:  # classes have no noise: places without a meaning
        parts.insert(0, np.zeros((draws, sampled.networks.architecture.outputs)))
    return np.concatenate(parts, axis=1) if draws >= FEWEST_DRAWS else None
