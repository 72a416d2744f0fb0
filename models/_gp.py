"""Gaussian processes as PyMC models: the function is integrated out under normal noise, and has variables otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pymc as pm
import pytensor.tensor as pt

from bayessel._check import FloatArray, as_count, as_matrix, check_magnitude, one_of
from bayessel.covariance import Covariance, Prior
from bayessel.covariance.prior import UnknownMeanPrior
from bayessel.covariance.standard import as_covariance
from bayessel.gp.vecchia.covariance_terms import terms_of
from bayessel.likelihoods import Likelihood
from bayessel.models._declared import Declared, remember
from bayessel.models._gp_draws import function_at
from bayessel.models._gp_op import ChosenNeighbours, LogMarginal, ProcessRowTerms, noise_variance
from bayessel.models._joint_normal import declare_noise, declare_rest
from bayessel.models._labels import column_labels
from bayessel.models._latent_gp import latent_covariance, observe_process
from bayessel.models._observations import as_kind, as_log_exposure, as_observed
from bayessel.models._origin import origin


def gp(
    X: npt.ArrayLike,
    t: npt.ArrayLike,
    covariance: Covariance | None = None,
    *,
    likelihood: str | Likelihood = "gaussian",
    exposure: npt.ArrayLike | None = None,
    prior: Prior | UnknownMeanPrior | None = None,
    names: Sequence[str] | None = None,
    method: str = "dense",
    neighbours: int = 30,
    inducing: int = 64,
) -> pm.Model:
    """Declare t ~ N(0, K(θ) + r²I), or t ~ p(t | f), f ~ N(0, K(θ)); `pm.sample(model=...)` and `bs.sample` run on it.

    Parameters
    ----------
    X : array (n, m)
        Inputs. The default priors are for standardised columns (median 0, mean absolute deviation 1).
    t : array (n,)
        Targets: numbers, standardised likewise; labels 0 and 1, or -1 and 1; counts.
    covariance : bayessel.covariance.Covariance, optional
        Default `bayessel.covariance.Standard`: bias, linear part, ARD squared exponential and noise of Rasmussen
        (1996). To one without a noise term `bayessel.covariance.Noise` is added. Under other likelihoods the default
        has no noise, nothing is added, and a noise term is part of f: what counts vary beyond the likelihood.
    likelihood : str or one of `bayessel.likelihoods`
        "gaussian": the function is integrated out. "student", "logit", "probit", "poisson" (f is the logarithm of the
        mean), "negative-binomial": its values at the rows are variables.
    exposure : array (n,) or number, optional
        What counts were counted in: their means are this times eᶠ. Of large counts the prior says little unless they
        are per something: their mean will do.
    prior : bayessel.covariance.Prior or bayessel.covariance.prior.UnknownMeanPrior, optional
        Default that of the covariance. `UnknownMeanPrior(covariance.prior(m))` has the top-level mean as an unknown.
    names : m labels, optional
        Coordinates of the dimension ``input``; default 0 … m−1.
    method : {"dense", "vecchia"}
        "gaussian": all rows at once, or Vecchia's approximation, for many rows (``docs/many-rows.md``).
    neighbours, inducing : int
        "vecchia": rows near it that each row is given, and inducing inputs; chosen where the covariance starts.

    Returns
    -------
    pymc.Model
        The random variable ``theta``, one vector of the natural logarithms of the covariance's parameters with their
        names as coordinates of the dimension ``parameter``; the observed ``t`` (dimension ``row``); the standard
        deviation ``noise``, and ``length`` (dimension ``input``), the distances over which the function changes, where
        there is a weight for each input, in the units of t and X. Inputs and targets are the data ``X`` and ``t_data``:
        ``pm.set_data`` changes them without a new compilation. Under other likelihoods than "gaussian" also ``v``
        (dimension ``row``), standard normal, and the deterministic ``latent`` = L(θ)v, f at the rows; ``noise`` (a
        scale) and ``nu`` of "student", ``r`` of "negative-binomial".

    Notes
    -----
    Value and gradient of log p(t|θ) come from one Cholesky factor, in one node of the graph, whoever samples. At a θ
    where the covariance matrix is not positive definite in double precision the density is nil. The noise variance in
    the likelihood is at least 1e-10 of the mean square of t: beneath, rounding is what would be fitted.

    The log likelihood of ``t`` has log p(t_i | t_{−i}, θ) for each row, exactly, with which ``arviz.loo(trace,
    var_name="t")`` is leave-one-out; the observed ``t_rest`` has what log p(t|θ) is beyond their sum. `bayessel.sample`
    keeps ``t`` alone, so that ``arviz.loo(trace)`` finds it.

    ``pm.sample_posterior_predictive(trace)`` draws new targets at the rows given the targets there. New inputs are
    predicted by `predict` or `predictive_model`; after ``pm.set_data`` predictive draws are refused.

    Under other likelihoods rows are independent given f: ``log_likelihood`` has their terms, there is no ``t_rest``.
    Their parameters have the priors of `bayessel.likelihoods`. In v the prior knows no θ, so samplers need not follow
    a function that widens and narrows with it; a gradient costs some n³ operations, twice that of "gaussian".

    References
    ----------
    Bürkner, Gabry and Vehtari (2021), Efficient leave-one-out cross-validation for Bayesian non-factorized normal and
    Student-t models.
    Rasmussen (1996), Evaluation of Gaussian Processes and other Methods for Non-linear Regression, ch. 4.

    Examples
    --------
    >>> import numpy as np, bayessel as bs
    >>> x = np.linspace(-1.5, 1.5, 20)
    >>> model = bs.models.gp(x[:, None], np.sin(2 * x))
    >>> list(model.coords["parameter"])
    ['log v0', 'log r2', 'log w[0]', 'log a0', 'log a1']
    """
    near = _as_neighbours(method, neighbours, inducing, likelihood)
    inputs = as_matrix(X, "X", allow_1d=True)
    check_magnitude(inputs, "X")
    m = inputs.shape[1]
    kind = as_kind(likelihood, several=False)
    target = as_observed(t, len(inputs), kind, "t")
    log_exposure = as_log_exposure(exposure, len(inputs), kind)
    covariance = as_covariance(covariance).with_noise() if kind == "gaussian" else latent_covariance(covariance)
    if near is not None:
        terms_of(covariance, m)
    parameters = covariance.names(m)
    if prior is not None and not isinstance(prior, Prior | UnknownMeanPrior):
        raise TypeError(f"prior must be a bayessel.covariance.Prior or UnknownMeanPrior, got {type(prior).__name__}")
    belief = covariance.prior(m) if prior is None else prior
    given = belief.given if isinstance(belief, UnknownMeanPrior) else belief
    if len(given.first) != len(parameters):
        raise ValueError(
            f"prior must have {len(parameters)} entries ({', '.join(parameters)}), got {len(given.first)}; "
            "join the parts with Prior.join"
        )
    coords = {"row": np.arange(len(target)), "input": column_labels(names, m, "X"), "parameter": list(parameters)}
    with pm.Model(coords=coords) as model:
        # data are shared variables: constants would enter the key of the compiled code, one compilation per data set
        X_data = pm.Data("X", inputs, dims=("row", "input"))
        t_data = pm.Data("t_data", target, dims="row")
        theta = _declare(belief, covariance.start(m))
        if kind != "gaussian":
            declare_lengths(covariance, theta, m)
            observed = observe_process(kind, covariance, theta, X_data, t_data, log_exposure)
            remember(observed, Declared("gp", covariance=covariance, likelihood=kind))
        else:
            theta.tag.hamiltonian = {"mass": "dense", "jumps": True}  # for `bs.steps`: few coordinates, costly
            _observe_jointly(covariance, theta, X_data, t_data, m, near)
    return model


def _as_neighbours(
    method: str, neighbours: int, inducing: int, likelihood: str | Likelihood
) -> ChosenNeighbours | None:
    """What Vecchia's approximation takes; None of all rows at once."""
    if one_of(method, "method", ("dense", "vecchia")) == "dense":
        return None
    if likelihood != "gaussian":
        raise ValueError(f"method='vecchia' is for likelihood='gaussian', got {likelihood!r}; use method='dense'")
    return ChosenNeighbours(as_count(neighbours, "neighbours"), as_count(inducing, "inducing", 0))


def _observe_jointly(
    covariance: Covariance, theta: Any, X_data: Any, t_data: Any, m: int, near: ChosenNeighbours | None
) -> None:
    """Declare t ~ N(0, K + r²I) in the model on the stack, the function integrated out, a term for each row."""
    marginal: Any = LogMarginal(covariance, near=near)
    left_out: Any = ProcessRowTerms(covariance, near)
    noise = declare_noise(pt.sqrt(noise_variance(covariance, theta, m)), X_data, t_data)
    declare_lengths(covariance, theta, m)
    observed: Any = pm.CustomDist(
        "t",
        theta,
        X_data,
        t_data,
        origin(noise, theta),
        logp=lambda value, theta, X, *seen: left_out(value, theta, X),
        dist=partial(_draw_targets, covariance=covariance, m=m),
        signature="(k),(n,m),(n),()->(n)",
        observed=t_data,
        dims="row",
    )
    declare_rest(observed, marginal(theta, X_data, t_data)[0], left_out(t_data, theta, X_data))
    remember(observed, Declared("gp", covariance=covariance))


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


def _draw_targets(theta: Any, X: Any, t: Any, given: Any, size: Any, *, covariance: Covariance, m: int) -> Any:
    """Targets at X: t ~ N(0, K + r²I), or given what was seen there new ones beside them."""
    noise = pm.Normal.dist(0.0, 1.0, size=X.shape[:1]) * pt.sqrt(noise_variance(covariance, theta, m))
    return function_at(covariance, theta, X, t, X, given) + noise


def declare_lengths(covariance: Covariance, theta: Any, m: int) -> None:
    """Declare w^{-1/2}, the distance over which the function changes, for a covariance with one weight per input."""
    names = list(covariance.names(m))
    places = [names.index(name) for name in (f"log w[{i}]" for i in range(m)) if name in names]
    if len(places) == m:
        pm.Deterministic("length", pt.exp(-0.5 * theta[places]), dims="input")
