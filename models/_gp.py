"""Gaussian-process regression as a PyMC model: the function is integrated out, its covariance's parameters are not."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pymc as pm
import pytensor.tensor as pt

from bayessel._check import FloatArray, as_matrix, as_target, check_magnitude
from bayessel.covariance import Covariance, Prior
from bayessel.covariance.prior import UnknownMeanPrior
from bayessel.covariance.standard import as_covariance
from bayessel.models._gp_op import LogMarginal


def gp(
    X: npt.ArrayLike,
    t: npt.ArrayLike,
    covariance: Covariance | None = None,
    *,
    prior: Prior | UnknownMeanPrior | None = None,
) -> pm.Model:
    """Declare t ~ N(0, K(θ) + r²I) with priors on θ; `pm.sample(model=...)` and `bs.sample` run on the result.

    Parameters
    ----------
    X : array (n, m)
        Inputs. The default priors are for standardised columns (median 0, mean absolute deviation 1).
    t : array (n,)
        Targets, standardised likewise.
    covariance : bayessel.covariance.Covariance, optional
        Default `bayessel.covariance.Standard`: bias, linear part, ARD squared exponential and noise of Rasmussen
        (1996). To one without a noise term `bayessel.covariance.Noise` is added.
    prior : bayessel.covariance.Prior or bayessel.covariance.prior.UnknownMeanPrior, optional
        Default that of the covariance. `UnknownMeanPrior(covariance.prior(m))` has the top-level mean as an unknown.

    Returns
    -------
    pymc.Model
        The random variable ``theta``, one vector of the natural logarithms of the covariance's parameters with their
        names as coordinates of the dimension ``parameter``; the observed ``t`` (dimension ``row``). Inputs and targets
        are the data ``X`` and ``t_data``: ``pm.set_data`` changes them without a new compilation.

    Notes
    -----
    Value and gradient of log p(t|θ) come from one Cholesky factor, in one node of the graph, whoever samples. At a θ
    where the covariance matrix is not positive definite in double precision the density is nil. The noise variance in
    the likelihood is at least 1e-10 of the mean square of t: beneath, rounding is what would be fitted.

    There is one log likelihood per draw and not one per row, and predictive draws of ``t`` are of N(0, Q), not of the
    function given the targets. For predictions and leave-one-out densities see `bayessel.GPRegressor`.

    References
    ----------
    Rasmussen (1996), Evaluation of Gaussian Processes and other Methods for Non-linear Regression, ch. 4.

    Examples
    --------
    >>> import numpy as np, bayessel as bs
    >>> x = np.linspace(-1.5, 1.5, 20)
    >>> model = bs.models.gp(x[:, None], np.sin(2 * x))
    >>> list(model.coords["parameter"])
    ['log v0', 'log r2', 'log w[0]', 'log a0', 'log a1']
    """
    inputs = as_matrix(X, "X", allow_1d=True)
    target = as_target(t, len(inputs), "t")
    check_magnitude(inputs, "X")
    check_magnitude(target, "t")
    m = inputs.shape[1]
    covariance = as_covariance(covariance).with_noise()
    names = covariance.names(m)
    if prior is not None and not isinstance(prior, Prior | UnknownMeanPrior):
        raise TypeError(f"prior must be a bayessel.covariance.Prior or UnknownMeanPrior, got {type(prior).__name__}")
    belief = covariance.prior(m) if prior is None else prior
    given = belief.given if isinstance(belief, UnknownMeanPrior) else belief
    if len(given.first) != len(names):
        raise ValueError(
            f"prior must have {len(names)} entries ({', '.join(names)}), got {len(given.first)}; join the parts with "
            "Prior.join"
        )
    marginal: Any = LogMarginal(covariance)
    with pm.Model(coords={"row": np.arange(len(target)), "parameter": list(names)}) as model:
        # data are shared variables: constants would enter the key of the compiled code, one compilation per data set
        X_data = pm.Data("X", inputs, dims=("row", "input"))
        t_data = pm.Data("t_data", target, dims="row")
        theta = _declare(belief, covariance.start(m))
        theta.tag.hamiltonian = {"mass": "dense", "jumps": True}  # for `bs.steps`: few coordinates, costly, correlated
        pm.CustomDist(
            "t",
            theta,
            X_data,
            logp=lambda value, theta, X: marginal(theta, X, value)[0],
            random=partial(draw_targets, covariance=covariance),
            support_point=lambda rv, size, theta, X: pt.zeros(X.shape[0]),
            signature="(k),(n,m)->(n)",
            observed=t_data,
            dims="row",
        )
    return model


def _declare(prior: Prior | UnknownMeanPrior, start: FloatArray) -> Any:
    """The random vector θ, the two kinds of priors side by side."""
    given = prior.given if isinstance(prior, UnknownMeanPrior) else prior
    is_normal, first, second = (np.asarray(part) for part in (given.is_normal, given.first, given.second))

    def draw(*parameters: Any, rng: np.random.Generator, size: Sequence[int]) -> FloatArray:
        batch = size if joint else size[:-1]
        draws = prior.draw(rng, int(np.prod(batch, dtype=int)))
        return draws.reshape((*batch, len(start)))

    joint = isinstance(prior, UnknownMeanPrior)
    return pm.CustomDist(
        "theta",
        pt.constant(is_normal),
        pt.constant(first),
        pt.constant(second),
        logp=partial(_log_joint_prior, a=prior.a) if isinstance(prior, UnknownMeanPrior) else _log_prior,
        random=draw,
        support_point=lambda rv, size, *parameters: pt.constant(start),
        signature="(k),(k),(k)->(k)" if joint else "(),(),()->()",
        dims="parameter",
    )


def _log_prior(theta: Any, is_normal: Any, first: Any, second: Any) -> Any:
    """Log densities of θ ~ N(first, second²), or of e^{−θ} ~ Gamma(first, second) with the Jacobian."""
    z = (theta - first) / second
    normal = -0.5 * z**2 - pt.log(second) - 0.5 * np.log(2.0 * np.pi)
    gamma = first * pt.log(second) - pt.gammaln(first) - first * theta - second * pt.exp(-theta)
    return pt.where(is_normal, normal, gamma)


def _log_joint_prior(theta: Any, is_normal: Any, first: Any, second: Any, a: float) -> Any:
    """Log density of θ with the factor ρ ~ Gamma(a, a) on the rates integrated out, see `UnknownMeanPrior`."""
    tau = pt.where(is_normal, 0.0, second * pt.exp(-pt.where(is_normal, 0.0, theta)))
    # the terms of the given priors without −Σ rate τ, and what the integral over ρ puts in its place
    alone = _log_prior(theta, is_normal, first, second) + tau
    total = a + pt.where(is_normal, 0.0, first).sum()
    shared = a * np.log(a) - pt.gammaln(a) + pt.gammaln(total) - total * pt.log(a + tau.sum())
    return alone.sum() + shared


def draw_targets(
    theta: FloatArray, X: FloatArray, *, covariance: Covariance, rng: np.random.Generator, size: Any = None
) -> FloatArray:
    """t ~ N(0, K + r²I) for each θ (…, k), also where a Cholesky factor fails."""
    theta, X = np.asarray(theta), np.asarray(X)
    batch = np.broadcast_shapes(theta.shape[:-1], X.shape[:-2], () if size is None else tuple(size))
    thetas = np.broadcast_to(theta, (*batch, theta.shape[-1]))
    inputs = np.broadcast_to(X, (*batch, *X.shape[-2:]))
    draws = np.empty((*batch, X.shape[-2]))
    for index in np.ndindex(*batch):
        K = covariance.matrix(thetas[index], inputs[index])
        noise = covariance.noise(thetas[index], X.shape[-1])
        values, vectors = np.linalg.eigh(K)
        root = np.sqrt(np.maximum(values, 0.0))
        z, e = rng.standard_normal((2, len(K)))
        draws[index] = vectors @ (root * z) + np.sqrt(noise) * e
    return draws
