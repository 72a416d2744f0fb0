"""What is observed at a latent function f: likelihoods of labels, counts and heavy tails as variables of a PyMC model.

    "gaussian"           t = f + N(0, noise²)
    "student"            t = f + noise · Student's t of nu > 2 degrees of freedom
    "logit", "probit"    P(y = 1) = 1/(1 + e^−f), Φ(f)
    "softmax"            P(y = k) ∝ e^(f_k)
    "poisson"            counts of mean e^f
    "negative-binomial"  counts of mean μ = e^f and variance μ + μ²/r

Parameters have the priors of `bayessel.likelihoods`, in the units of the targets. Of counts f has the logarithm of the
exposure in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pymc as pm
import pytensor.tensor as pt
from scipy.special import expit, ndtr, softmax

from bayessel._check import FloatArray, as_positive_vector, as_target, check_magnitude
from bayessel.likelihoods import LIKELIHOODS, as_likelihood
from bayessel.likelihoods.student import LEAST_FREEDOM
from bayessel.models._linear import _constant

#: several classes, which have a latent function each
SOFTMAX = "softmax"
REAL = ("gaussian", "student")
LABELS = ("logit", "probit")
COUNTS = ("poisson", "negative-binomial")
#: parameters of likelihoods by the names that a model and its trace have for them
PARAMETERS = {"gaussian": ("noise",), "student": ("noise", "nu"), "negative-binomial": ("r",)}
_ROOT_2 = float(np.sqrt(2.0))
#: rows of an integral over f at a time, and variances below which f is as good as known
_ROWS, _LEAST_VARIANCE = 10_000, 1e-14


class Draws(NamedTuple):
    """For each draw: mean and variance of a new observation, the function, an observation; (chain, draw, row …)."""

    mean: FloatArray
    variance: FloatArray
    function: FloatArray
    observations: FloatArray


def as_kind(likelihood: Any, several: bool) -> str:
    """The name of a likelihood, given so or as one of `bayessel.likelihoods`; with `several` that of classes too."""
    if likelihood == SOFTMAX:
        if several:
            return SOFTMAX
        raise ValueError(
            "likelihood must have one latent function, got 'softmax', which has one for each class; "
            "bs.models.generalised has it"
        )
    if several and isinstance(likelihood, str) and likelihood not in LIKELIHOODS:
        raise ValueError(
            f"likelihood must be one of {', '.join(map(repr, (*LIKELIHOODS, SOFTMAX)))}, got {likelihood!r}"
        )
    name = as_likelihood(likelihood).name
    if name not in (*REAL, *LABELS, *COUNTS):
        raise ValueError(f"likelihood must be one that PyMC models have ({', '.join(LIKELIHOODS)}), got {name!r}")
    return name


def as_observed(y: npt.ArrayLike, rows: int, kind: str, name: str) -> npt.NDArray[Any]:
    """Targets as the likelihood wants them: whole numbers for labels, classes and counts."""
    target = as_target(y, rows, name)
    check_magnitude(target, name)
    if kind in LABELS:
        found = set(np.unique(target).tolist())
        if not (found <= {0.0, 1.0} or found <= {-1.0, 1.0}):
            raise ValueError(f"{name} must be labels 0 and 1, or -1 and 1, got {sorted(found)[:5]}")
        return (target > 0.0).astype(np.int64)
    if kind == SOFTMAX:
        if (target < 0.0).any() or (target != np.floor(target)).any():
            raise ValueError(f"{name} must be classes 0, 1, 2, … for the likelihood 'softmax'; number the classes so")
        return target.astype(np.int64)
    if kind in COUNTS:
        return as_likelihood(kind).targets(target).astype(np.int64)
    return target


def as_log_exposure(exposure: npt.ArrayLike | None, rows: int, kind: str) -> FloatArray | None:
    """Logarithms of what counts were counted in, one for each row."""
    if exposure is None:
        return None
    if kind not in COUNTS:
        raise ValueError(f"exposure is of counts ({', '.join(COUNTS)}), and the likelihood is {kind!r}: leave it out")
    return np.log(as_positive_vector(exposure, "exposure", rows))


def declare_parameters(kind: str, t: FloatArray, spread: float = 1.0, noise: Any = None) -> dict[str, Any]:
    """Declare the likelihood's parameters in the model on the stack, for targets of that spread, unless given."""
    if kind not in PARAMETERS:
        return {}
    prior = as_likelihood(kind).prior(t)
    log_mean, log_sd = prior.first, prior.second
    if kind == "negative-binomial":
        return {"r": pm.LogNormal("r", _constant(log_mean[0]), _constant(log_sd[0]))}
    if noise is None:
        level, width = noise_prior(kind, t, spread)
        noise = pm.LogNormal("noise", _constant(level), _constant(width))
    made = {"noise": noise}
    if kind == "student":
        beyond = pm.LogNormal("nu_beyond_2", _constant(log_mean[1]), _constant(log_sd[1]))
        made["nu"] = pm.Deterministic("nu", LEAST_FREEDOM + beyond)
    return made


def noise_prior(kind: str, t: FloatArray, spread: float) -> tuple[float, float]:
    """Mean and standard deviation of the logarithm of the noise, for targets of that spread."""
    prior = as_likelihood(kind).prior(t)
    return 0.5 * float(prior.first[0]) + float(np.log(spread)), 0.5 * float(prior.second[0])


def observe(kind: str, name: str, f: Any, parameters: Mapping[str, Any], asked: Any = None, **given: Any) -> Any:
    """Declare targets given f in the model on the stack; `given` are dims, and what was observed.

    What is `asked` (an `Origin`) is asked where targets are drawn, and not where their density is computed.
    """
    if asked is None:
        family, arguments = _distribution(kind, f, parameters)
        return family(name, **arguments, **given)
    names = list(parameters)

    def logp(value: Any, f: Any, *rest: Any) -> Any:
        family, arguments = _distribution(kind, f, dict(zip(names, rest[:-1], strict=True)))
        return pm.logp(family.dist(**arguments), value)

    def draw(f: Any, *rest: Any) -> Any:
        *values, asked, size = rest
        known = pt.switch(pt.ge(asked, 0), f, np.nan)
        family, arguments = _distribution(kind, known, dict(zip(names, values, strict=True)))
        return family.dist(**arguments, size=size)

    called = _distribution(kind, f, parameters)[0].__name__
    return pm.CustomDist(name, f, *parameters.values(), asked, logp=logp, dist=draw, class_name=called, **given)


def _distribution(kind: str, f: Any, parameters: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """PyMC's distribution and its arguments."""
    if kind == "gaussian":
        return pm.Normal, {"mu": f, "sigma": parameters["noise"]}
    if kind == "student":
        return pm.StudentT, {"nu": parameters["nu"], "mu": f, "sigma": parameters["noise"]}
    if kind == "logit":
        return pm.Bernoulli, {"logit_p": f}
    if kind == "probit":
        # log odds, because both probabilities have logarithms far beyond where one of them is rounded to nought
        return pm.Bernoulli, {"logit_p": _log_normal_cdf(f) - _log_normal_cdf(-f)}
    if kind == SOFTMAX:
        return pm.Categorical, {"logit_p": f}
    if kind == "poisson":
        return pm.Poisson, {"mu": pt.exp(f)}
    return pm.NegativeBinomial, {"mu": pt.exp(f), "alpha": parameters["r"]}


def _log_normal_cdf(z: Any) -> Any:
    """Log Φ(z) with a slope wherever z is finite: neither branch is asked where it overflows."""
    low, high = pt.minimum(z, -1.0), pt.maximum(z, -1.0)
    tail = pt.log(0.5 * pt.erfcx(-low / _ROOT_2)) - 0.5 * low**2
    return pt.switch(pt.lt(z, -1.0), tail, pt.log1p(-0.5 * pt.erfc(high / _ROOT_2)))


def drawn(
    kind: str,
    f: FloatArray,
    parameters: Mapping[str, FloatArray],
    rng: np.random.Generator,
    around: tuple[FloatArray, FloatArray] | None = None,
) -> Draws:
    """Moments and draws of new targets at values of f, (chain, draw, row), of softmax with an axis of classes after.

    The function is f for targets that are real numbers; of classes it is probabilities, of counts means. Where f is a
    draw from a normal distribution given the parameters, `around` has its mean and variance, and moments are over it.
    """
    mean, variance = _moments(kind, *(around or (f, np.zeros(()))), parameters)
    if kind == SOFTMAX:
        chosen = (mean.cumsum(axis=-1) < rng.random((*f.shape[:-1], 1))).sum(axis=-1)
        return Draws(mean, variance, mean, np.minimum(chosen, f.shape[-1] - 1))
    if kind in LABELS:
        p = expit(f) if kind == "logit" else ndtr(f)
        return Draws(mean, variance, p, (rng.random(p.shape) < p).astype(np.int64))
    if kind in COUNTS:
        with np.errstate(over="ignore"):
            rates = function = np.exp(f)
        if kind == "negative-binomial":
            r = np.broadcast_to(parameters["r"], f.shape)
            rates = rng.standard_gamma(r) * function / r
        return Draws(mean, variance, function, _poisson(rates, rng))
    noise = np.broadcast_to(parameters["noise"], f.shape)
    if kind == "gaussian":
        return Draws(mean, variance, f, f + noise * rng.standard_normal(f.shape))
    return Draws(mean, variance, f, f + noise * rng.standard_t(np.broadcast_to(parameters["nu"], f.shape)))


def _moments(
    kind: str, f: FloatArray, inside: FloatArray, parameters: Mapping[str, FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of targets where the latent function is normal with mean f and variance `inside`."""
    if kind == "gaussian":
        return f, np.broadcast_to(inside + parameters["noise"] ** 2, f.shape)
    if kind == "student":
        nu = np.asarray(parameters["nu"])
        with np.errstate(divide="ignore"):
            wider = np.where(nu > 2.0, nu / np.maximum(nu - 2.0, 0.0), np.inf)
        return f, np.broadcast_to(inside + parameters["noise"] ** 2 * wider, f.shape)
    if kind in COUNTS:
        with np.errstate(over="ignore"):
            mean = np.exp(f + 0.5 * inside)
            excess = np.expm1(inside)
            if kind == "negative-binomial":
                excess = excess + np.exp(inside) / parameters["r"]
            return mean, mean + excess * mean**2
    if kind == SOFTMAX:
        p = softmax(f, axis=-1)
    elif kind == "probit":
        p = ndtr(f / np.sqrt(1.0 + inside))
    elif inside.any():
        p = _average_logit(f, inside)
    else:
        p = expit(f)
    return p, p * (1.0 - p)


def _average_logit(f: FloatArray, inside: FloatArray) -> FloatArray:
    """∫ σ(f') N(f' | f, inside) df', for so many rows at a time."""
    flat, variances = f.ravel(), np.maximum(np.broadcast_to(inside, f.shape).ravel(), _LEAST_VARIANCE)
    parts = [slice(k, k + _ROWS) for k in range(0, len(flat), _ROWS)]
    logit, none = as_likelihood("logit"), np.zeros(0)
    logs = [logit.tilted(np.ones(len(flat[part])), flat[part], variances[part], none).log_z for part in parts]
    return np.exp(np.concatenate(logs)).reshape(f.shape)


def _poisson(rates: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Counts of these means; where they pass the largest that NumPy draws, normal numbers, which are as good there."""
    large = rates > 1e15
    found = rng.poisson(np.where(large, 0.0, rates)).astype(np.float64)
    if large.any():
        found[large] = np.round(rates[large] + np.sqrt(rates[large]) * rng.standard_normal(int(large.sum())))
    return found
