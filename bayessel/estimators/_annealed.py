"""The evidence of a sampled network's model: annealing that begins about where the chains are."""

from __future__ import annotations

import warnings
from dataclasses import replace
from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np

from bayessel._check import FloatArray, as_count, as_positive, as_seconds, chosen_seed
from bayessel._numerics import few_threads
from bayessel._types import Seed
from bayessel.errors import SamplingWarning
from bayessel.estimators._data_units import FitInDataUnits
from bayessel.estimators._network import NetworkRun
from bayessel.estimators._sampled_networks import SampledNetworks
from bayessel.estimators.base import HERE
from bayessel.fit import Evidence, Status
from bayessel.marginal_likelihood.model_evidence import ModelEvidence
from bayessel.mlp.prior import PRECISION_NAMES
from bayessel.work.progress import LONG, progress_of

if TYPE_CHECKING:
    from bayessel.marginal_likelihood.route import Route
    from bayessel.samplers.annealing import AnnealedEvidence

#: draws of the chains below which annealing looks for a beginning by itself
FEWEST_DRAWS = 50
#: nats by which another beginning must lead to more than the chains' for them to be called stuck; pilots are rough
MISSED = 10.0
#: draws of the chains that each run back begins with, at least
FEWEST_DOWN = 10
#: spread of runs back that confirm runs up, in nats: they begin at few draws, and what they add to the error is seen
WIDEST_DOWN = 1.0


def annealed(
    run: NetworkRun,
    fit: FitInDataUnits,
    time_budget: Any,
    random_state: Seed,
    n_particles: int,
    n_runs: int,
    effort: float,
    **options: Any,
) -> tuple[ModelEvidence, FitInDataUnits]:
    """What `MLPRegressor.evidence` returns, and the fit with its evidence; options as of `anneal_network`."""
    from bayessel.marginal_likelihood.verdict import judge_routes
    from bayessel.samplers.network.annealing import anneal_network

    if not isinstance(fit.inner, SampledNetworks):
        raise ValueError(
            "evidence() integrates over the priors of sampled networks; this fit has others, or none: use "
            "inference='mc' (with 'evidence' see log_evidence_)"
        )
    draws = log_hyperparameters(fit.inner)
    n_runs = as_count(n_runs, "n_runs")
    n_particles = max(2, round(as_positive(effort, "effort") * as_count(n_particles, "n_particles", 2)))
    back = draws is not None and len(draws) >= FEWEST_DOWN * n_runs
    given = run.seed if random_state is None else chosen_seed(random_state)
    seed = np.random.SeedSequence([run.seed, 1]) if random_state is None else given
    clock = process_time()
    with few_threads(0), progress_of(run.settings["progressbar"], 100, LONG, "annealing") as tell:
        found = anneal_network(
            *run.rows,
            hidden=run.hidden,
            kind=run.kind,
            draws=draws,
            n_particles=n_particles,
            n_runs=n_runs,
            bracket=back,
            ends=(fit.inner.every[0].packed, draws) if draws is not None and back else None,
            time_budget=as_seconds(time_budget),
            random_state=np.random.default_rng(seed),
            progress=None if tell is None else lambda done, runs: tell(100 * done // runs, 100),
            **options,
        )
    routes = _routes(found, fit.inner, process_time() - clock)
    verdict = judge_routes(routes)
    trace = None if run.chains is None else run.chains.trace
    result = ModelEvidence(
        *verdict[:4],
        routes=routes,
        used=verdict.used,
        comparable="",
        n_rows=int(np.size(run.rows[1])),
        n_coordinates=fit.inner.networks.packed.shape[1] + _hyperparameters(fit.inner),
        integrated=(),
        model_fingerprint="" if trace is None else str(trace.attrs["model_fingerprint"]),
        data_fingerprint=fit.fingerprint,
        target_fingerprint=fit.target_fingerprint,
        random_seed=given,
        remarks=tuple(note for note in found.notes if note is not Status.UNSURE_EVIDENCE),
        engine=found.in_units(fit.log_units, fit.fingerprint),
    )
    result = result.in_units(fit.log_units, fit.fingerprint, fit.target_fingerprint)
    error = result.error if np.isfinite(result.error) else np.nan
    of_engine = replace(found.evidence, value=result.value - fit.log_units, error=error)
    fit = replace(fit, inner=replace(fit.inner, evidence=of_engine))
    if not result.reliable:
        warnings.warn(f"UNSURE_EVIDENCE: {result.doubt}", SamplingWarning, skip_file_prefixes=HERE)
    if draws is not None and _are_stuck(found):
        warnings.warn(
            f"annealing has found networks that the chains have not: from the chains' draws it comes to "
            f"{found.pilots[0]:.1f} nats, from another start to {found.pilots.max():.1f}; the chains are stuck at "
            "a poor explanation of the data: fit again with another random_state, or with more hidden units",
            SamplingWarning,
            skip_file_prefixes=HERE,
        )
    return result, fit


def _routes(found: AnnealedEvidence, sampled: SampledNetworks, seconds: float) -> tuple[Route, Route]:
    """Up from a reference, and down from the draws of the chains, as the routes of other models are judged."""
    from bayessel.marginal_likelihood.annealing_route import DOWN, NAME, route_of_runs
    from bayessel.marginal_likelihood.route import Route

    half = 0.5 * seconds if len(found.log_downs) else seconds
    calls, temperatures = int(half / seconds * found.n_gradients), len(found.temperatures)
    up = route_of_runs(NAME, found.log_weights, calls, temperatures, 1.0, "").timed(half)
    if not len(found.log_downs):
        return up, Route.missing(DOWN, "there are too few draws to begin with")
    doubt = "the chains disagree" if Status.CHAINS_DISAGREE in sampled.notes else ""
    doubt = "the chains are stuck at a poor explanation of the data" if _are_stuck(found) else doubt
    return up, route_of_runs(DOWN, found.log_downs, calls, temperatures, -1.0, doubt, WIDEST_DOWN).timed(half)


def _are_stuck(found: AnnealedEvidence) -> bool:
    """Whether another beginning leads to much more than the draws, where these were given."""
    return bool(found.pilots[0] < found.pilots.max() - MISSED)


def _hyperparameters(sampled: SampledNetworks) -> int:
    """Numbers of precisions that were integrated over."""
    posterior = sampled.posterior
    sizes = posterior.sizes if posterior is not None else {"chain": 1, "draw": 1}
    each = sizes["chain"] * sizes["draw"]
    return sum(posterior[name].size // each for name in PRECISION_NAMES if posterior is not None and name in posterior)


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
