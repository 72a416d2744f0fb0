"""Bridge sampling of a model from draws of its posterior, with a normal proposal and with the mirrored density."""

from __future__ import annotations

import numpy as np

from bayessel.marginal_likelihood.bridge import bridge
from bayessel.marginal_likelihood.draws_doubt import JudgedDraws
from bayessel.marginal_likelihood.route import Route
from bayessel.marginal_likelihood.target_density import TargetDensity

#: draws per coordinate below which their covariance means little
LEAST_DRAWS = 10
#: over posteriors that are no normal ones, bridges were off by this times their error (root mean square, known truths)
WIDENING = 1.25
NAME = "bridge"


def bridge_routes(target: TargetDensity, judged: JudgedDraws, rng: np.random.Generator) -> list[Route]:
    """Both bridges, from draws in the target's coordinates."""
    chains, count, d = judged.draws.shape
    names = (NAME, f"{NAME}, mirrored")
    if chains * count < LEAST_DRAWS * (d + 1):
        reason = f"{chains * count} draws are too few for {d} coordinates; {LEAST_DRAWS * (d + 1)} are needed"
        return [Route.missing(name, reason) for name in names]
    values = target.logs(judged.flat).reshape(chains, count)
    routes = []
    for name, mirrored in zip(names, (False, True), strict=True):
        found = bridge(target.logs, judged.draws, values, chains * count, rng, mirrored=mirrored)
        calls = (1 + mirrored) * (found.n_draws + found.n_proposals)
        if not np.isfinite(found.log_evidence):
            reason = "the chains did not move in some direction, or a normal around them does not meet the posterior"
            routes.append(Route.missing(name, reason, calls))
            continue
        doubt = judged.doubt or ("" if found.reliable else "the normal and the posterior hardly overlap")
        reason = f"{judged.said}: {doubt}" if doubt else judged.said
        routes.append(Route(name, found.log_evidence, WIDENING * found.error, not doubt, reason, calls))
    return routes
