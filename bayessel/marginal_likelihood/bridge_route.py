"""Bridge sampling of a model from draws of its posterior, with a normal proposal and with the mirrored density."""

from __future__ import annotations

import numpy as np

from bayessel._check import FloatArray
from bayessel.marginal_likelihood.bridge import bridge, effective_draws
from bayessel.marginal_likelihood.route import Route
from bayessel.marginal_likelihood.target_density import TargetDensity

#: draws per coordinate below which their covariance means little
LEAST_DRAWS = 10
#: R-hat beyond which chains have seen different parts of the posterior
LARGEST_R_HAT = 1.03


def bridge_routes(target: TargetDensity, draws: FloatArray, rng: np.random.Generator) -> list[Route]:
    """Both bridges, from draws (chains, draws, d) in the target's coordinates."""
    import arviz as az

    chains, count, d = draws.shape
    names = ("bridge", "bridge, mirrored")
    if chains * count < LEAST_DRAWS * (d + 1):
        reason = f"{chains * count} draws are too few for {d} coordinates; {LEAST_DRAWS * (d + 1)} are needed"
        return [Route.missing(name, reason) for name in names]
    values = target.logs(draws.reshape(-1, d)).reshape(chains, count)
    r_hat = max(float(np.nan_to_num(az.rhat(draws[:, :, i]), nan=np.inf)) for i in range(d)) if chains > 1 else np.nan
    least = min(effective_draws(draws[:, :, i]) for i in range(d))
    routes = []
    for name, mirrored in zip(names, (False, True), strict=True):
        found = bridge(target.logs, draws, values, chains * count, rng, mirrored=mirrored)
        calls = (1 + mirrored) * (found.n_draws + found.n_proposals)
        said = f"{chains} chains, R-hat {r_hat:.3f}, {least:.0f} effective draws"
        if not np.isfinite(found.log_evidence):
            routes.append(Route.missing(name, "no chain moved in some direction, or normal and posterior do not meet", calls))
            continue
        doubts = [
            "the chains disagree" if not r_hat <= LARGEST_R_HAT else "",
            "too few effective draws" if least < 100.0 else "",
            "" if found.reliable else "the normal and the posterior hardly overlap",
        ]
        doubt = next((one for one in doubts if one), "")
        reason = f"{said}: {doubt}" if doubt else said
        routes.append(Route(name, found.log_evidence, found.error, not doubt, reason, calls))
    return routes
