"""Nested sampling of a model by the package nautilus, where it is installed: an independent voice.

Tempering does not lead from one phase to another where the two have the same density at some temperature and nothing
lies between; nested sampling compresses the prior itself and does not care.
"""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np

from bayessel._check import FloatArray
from bayessel.marginal_likelihood.density_rows import log_densities
from bayessel.marginal_likelihood.route import Route
from bayessel.marginal_likelihood.target_density import TargetDensity

#: live points, and effective draws that end the run
LIVE, ENOUGH = 1_500, 10_000
#: evaluations at most
MOST_CALLS = 400_000
NAME = "nested"


def nested_route(target: TargetDensity, rng: np.random.Generator) -> Route:
    """Nested sampling over the unit cube that the prior's quantiles map to the coordinates."""
    if find_spec("nautilus") is None:
        return Route.missing(NAME, 'needs the package nautilus: pip install "bayessel[nested]"')
    if target.no_prior:
        return Route.missing(NAME, target.no_prior)
    quantiles, reason = target.prior_quantiles()
    if quantiles is None:
        return Route.missing(NAME, reason)
    from nautilus import Sampler

    calls = 0

    def log_likelihood(rows: FloatArray) -> FloatArray:
        nonlocal calls
        calls += len(rows)
        logs = target.logs(rows) - log_densities(target.prior, rows)[0]
        return np.where(np.isnan(logs), -np.inf, np.maximum(logs, -1e100))

    sampler = Sampler(
        quantiles,
        log_likelihood,
        target.size,
        n_live=LIVE,
        vectorized=True,
        pass_dict=False,
        seed=int(rng.integers(2**31)),
    )
    complete = bool(sampler.run(n_eff=ENOUGH, n_like_max=MOST_CALLS, discard_exploration=True, verbose=False))
    effective = float(sampler.n_eff)
    error = float(1.0 / np.sqrt(max(effective, 1.0)))
    said = f"{effective:.0f} effective draws, {LIVE} live points"
    reliable = complete and effective > 1000.0
    return Route(
        NAME,
        float(sampler.log_z),
        error,
        reliable,
        said if reliable else f"{said}: stopped at {MOST_CALLS} evaluations",
        calls,
    )
