"""The evidence of a density of one's own from draws of it, by bridge sampling (`marginal_likelihood.bridge`)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from bayessel._check import FloatArray, as_count, as_float_array, check_magnitude, chosen_seed
from bayessel._types import Seed
from bayessel.marginal_likelihood.bridge import Bridge, bridge, moved_everywhere

#: names this module's stream of random numbers
_STREAM = 1996
#: draws per parameter, below which their covariance means little
_LEAST_DRAWS = 4


def bridge_sampling(
    log_density: Callable[[FloatArray], float],
    draws: ArrayLike,
    *,
    n_proposals: int | None = None,
    random_state: Seed = 0,
) -> Bridge:
    """Log of the integral of exp(log_density) from draws of that density.

    Parameters
    ----------
    log_density
        θ (k,) -> log of the density that the draws follow, not normalised; −inf outside. θ must range over all of
        space: take logarithms of what is positive, and their Jacobian with them.
    draws : (draws, k) or (chains, draws, k) array
        Draws of it, in the order of their chains.
    n_proposals
        Draws of g; default as many as there are draws.
    random_state
        Seed or generator for those.

    Notes
    -----
    Each half of every chain chooses the g by which the other half is judged: a g fitted to the draws that it is
    compared with would make the evidence too small. The answer is the mean of the two. Each draw and each proposal
    costs one evaluation. What no draw has seen is not in the answer: chains that all miss a mode leave it out.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> found = bridge_sampling(lambda x: float(-0.5 * x @ x), rng.normal(size=(1000, 2)))
    >>> bool(abs(found.log_evidence - np.log(2 * np.pi)) < 4 * found.error + 1e-3), found.reliable
    (True, True)
    """
    theta = as_float_array(draws, "draws")
    theta = theta[None] if theta.ndim == 2 else theta
    if theta.ndim != 3 or theta.shape[2] < 1:
        raise ValueError(f"draws must be (draws, k) or (chains, draws, k), got shape {np.shape(draws)}")
    chains, count, k = theta.shape
    if chains * count < 2 * _LEAST_DRAWS * (k + 1) or count < 4:
        raise ValueError(
            f"bridge sampling of {k} parameters needs {2 * _LEAST_DRAWS * (k + 1)} draws, and 4 of every chain; got "
            f"{chains} x {count}"
        )
    if not np.isfinite(theta).all():
        raise ValueError("draws must be finite; leave out chains that broke down")
    check_magnitude(theta, "draws", tiny=True)
    # a stream of its own: draws often come from the same seed, and proposals made of the same numbers would agree with
    # them too well
    rng = np.random.default_rng([chosen_seed(random_state), _STREAM])
    proposals = chains * count if n_proposals is None else as_count(n_proposals, "n_proposals", 2)

    def log_densities(rows: FloatArray) -> FloatArray:
        return np.array([float(log_density(one)) for one in rows])

    if not moved_everywhere(theta):
        return Bridge(float("nan"), float("inf"), chains * count, 0)
    values = log_densities(theta.reshape(-1, k)).reshape(chains, count)
    if not np.isfinite(values).all():
        raise ValueError("log_density is not finite at some of the draws: they are draws of something else")
    return bridge(log_densities, theta, values, proposals, rng)
