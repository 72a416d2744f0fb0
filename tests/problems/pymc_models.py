"""Models of `bayessel.models` on one small problem, and their predictions of new rows by dense formulas."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pymc as pm
from scipy.special import expit

import bayessel as bs
from bayessel.covariance import Standard
from bayessel.models._latent_op import JITTER

SEEN = np.sort(np.random.default_rng(5).uniform(-2.0, 2.0, 24))
NEW = np.linspace(-1.7, 1.7, 5)
TARGET = np.sin(2.0 * SEEN) + 0.2 * np.random.default_rng(6).standard_normal(24)
BASIS = bs.RBFDictionary(np.linspace(-2.0, 2.0, 6), width=1.0, bias=False)
PHI, PHI_NEW = BASIS.design(SEEN), BASIS.design(NEW)
ALPHAS = np.linspace(0.3, 2.0, 6)
CLASSES = np.digitize(TARGET, [-0.5, 0.5])
HOURS, HOURS_NEW = np.linspace(1.0, 3.0, 24), np.linspace(2.0, 0.5, 5)
COUNTS = np.random.default_rng(7).poisson(2.0 * HOURS * np.exp(TARGET))
#: those whose predictions are probabilities, and whose targets are labels or classes
LABELS = ("logit", "softmax", "gp logit")


@dataclass(frozen=True)
class Case:
    """A model, the rows to predict, and whether its likelihood is a joint normal one."""

    model: pm.Model
    new: Any
    joint: bool = False
    observed: str = "t"
    exposure: Any = None


#: name -> the model, explicit and collapsed, with fixed parameters too; made when it is asked for
MAKERS: dict[str, Callable[[], Case]] = {
    "gp": lambda: Case(bs.models.gp(SEEN[:, None], TARGET), NEW[:, None], True),
    "linear": lambda: Case(bs.models.linear(PHI, TARGET, bias=True), PHI_NEW),
    "linear collapsed": lambda: Case(bs.models.linear(PHI, TARGET, bias=True, collapsed=True), PHI_NEW, True),
    "linear, fixed alphas": lambda: Case(
        bs.models.linear(PHI, TARGET, ALPHAS, collapsed=True, bias=True), PHI_NEW, True
    ),
    "linear, fixed beta": lambda: Case(bs.models.linear(PHI, TARGET, beta=25.0, collapsed=True), PHI_NEW, True),
    "rvm": lambda: Case(bs.models.rvm(PHI, TARGET), PHI_NEW),
    "rvm collapsed": lambda: Case(bs.models.rvm(PHI, TARGET, collapsed=True), PHI_NEW, True),
    "horseshoe collapsed": lambda: Case(bs.models.rvm(PHI, TARGET, "horseshoe", True), PHI_NEW, True),
    "width": lambda: Case(bs.models.linear(BASIS, TARGET, X=SEEN, bias=True), NEW[:, None]),
    "width collapsed": lambda: Case(
        bs.models.linear(BASIS, TARGET, X=SEEN, bias=True, collapsed=True), NEW[:, None], True
    ),
    "width, fixed": lambda: Case(bs.models.linear(BASIS, TARGET, ALPHAS, 25.0, True, X=SEEN), NEW[:, None], True),
    "width rvm collapsed": lambda: Case(bs.models.rvm(BASIS, TARGET, X=SEEN, collapsed=True), NEW[:, None], True),
    "logit": lambda: Case(bs.models.generalised(PHI, TARGET > 0.3), PHI_NEW, observed="y"),
    "softmax": lambda: Case(bs.models.generalised(PHI, CLASSES, "softmax"), PHI_NEW, observed="y"),
    "student, varying noise": lambda: Case(
        bs.models.generalised(PHI, TARGET, "student", varying_noise=True), PHI_NEW, observed="y"
    ),
    "counts": lambda: Case(
        bs.models.generalised(PHI, COUNTS, "negative-binomial", "separate", exposure=HOURS),
        PHI_NEW,
        False,
        "y",
        HOURS_NEW,
    ),
    "gp student": lambda: Case(bs.models.gp(SEEN[:, None], TARGET, likelihood="student"), NEW[:, None]),
    "gp logit": lambda: Case(bs.models.gp(SEEN[:, None], TARGET > 0.3, likelihood="logit"), NEW[:, None]),
    "gp counts": lambda: Case(
        bs.models.gp(SEEN[:, None], COUNTS, likelihood="negative-binomial", exposure=HOURS),
        NEW[:, None],
        exposure=HOURS_NEW,
    ),
    "mlp": lambda: Case(bs.models.mlp(SEEN[:, None], TARGET, 3), NEW[:, None]),
}
#: those whose function at the rows is a variable
LATENT = ("gp student", "gp logit", "gp counts")
#: those with a joint normal likelihood
JOINT = (
    "gp",
    "linear collapsed",
    "linear, fixed alphas",
    "linear, fixed beta",
    "rvm collapsed",
    "horseshoe collapsed",
    "width collapsed",
    "width, fixed",
    "width rvm collapsed",
)


@cache
def case_of(name: str) -> Case:
    """One of them, the same each time."""
    return MAKERS[name]()


def moments(name: str, posterior: Any) -> tuple[Any, Any]:
    """Mean and standard deviation of new observations: each draw by dense algebra, then all draws together."""
    stacked = posterior.to_dataset().stack(s=("chain", "draw"))
    found = [_of_draw(name, {key: stacked[key].values[..., k] for key in stacked}) for k in range(stacked.sizes["s"])]
    means, variances = (np.array(part) for part in zip(*found, strict=True))
    return means.mean(axis=0), np.sqrt(variances.mean(axis=0) + means.var(axis=0))


def _of_draw(name: str, p: dict[str, Any]) -> tuple[Any, Any]:
    if name in LATENT:
        return _of_latent(name, p)
    if name == "logit":
        probability = expit(PHI_NEW @ p["w"] + p["b"])
        return probability, probability * (1.0 - probability)
    if name == "softmax":
        odds = np.exp(PHI_NEW @ p["w"] + p["b"])
        probability = odds / odds.sum(axis=1, keepdims=True)
        return probability, probability * (1.0 - probability)
    if name == "counts":
        mean = HOURS_NEW * np.exp(PHI_NEW @ p["w"] + p["b"])
        return mean, mean + mean**2 / p["r"]
    if name == "student, varying noise":
        variance = np.exp(2.0 * (p["log_noise"] + PHI_NEW @ p["w_noise"])) * p["nu"] / (p["nu"] - 2.0)
        return PHI_NEW @ p["w"] + p["b"], variance
    if name == "mlp":
        hidden = np.tanh(NEW[:, None] @ p["input_hidden"] + p["hidden_bias"])
        f = hidden @ p["hidden_output"] + NEW[:, None] @ p["input_output"] + p["bias"]
        return f[:, 0], np.full(len(NEW), 1.0 / p["tau_noise"][0])
    if name in ("linear", "rvm", "width"):
        return _design(p, PHI_NEW, NEW) @ p["w"] + p.get("b", 0.0), np.full(len(NEW), 1.0 / p["beta"])
    mean, C, noise = joint(name, p, np.vstack([PHI, PHI_NEW]), np.concatenate([SEEN, NEW]))
    n = len(TARGET)
    Q = C[:n, :n] + noise * np.eye(n)
    gain = np.linalg.solve(Q, C[:n, n:]).T
    return mean + gain @ (TARGET - mean), np.diag(C[n:, n:] - gain @ C[:n, n:]) + noise


def _of_latent(name: str, p: dict[str, Any]) -> tuple[Any, Any]:
    """The function at new inputs conditioned on that at the rows, and what is observed there by Gauss-Hermite sums."""
    x, n = np.concatenate([SEEN, NEW]), len(SEEN)
    v0, weight, a0, a1 = np.exp(p["theta"])
    C = v0 * np.exp(-0.5 * weight * (x[:, None] - x) ** 2) + a0 + a1 * np.outer(x, x)
    K = C[:n, :n] + JITTER * np.mean(np.diag(C)[:n]) * np.eye(n)
    gain = np.linalg.solve(K, C[:n, n:]).T
    f, inside = gain @ p["latent"], np.diag(C[n:, n:] - gain @ C[:n, n:])
    if name == "gp student":
        return f, inside + p["noise"] ** 2 * p["nu"] / (p["nu"] - 2.0)
    z, share = np.polynomial.hermite_e.hermegauss(60)
    values, share = f[:, None] + np.sqrt(np.maximum(inside, 0.0))[:, None] * z, share / share.sum()
    if name == "gp logit":
        probability = expit(values) @ share
        return probability, probability * (1.0 - probability)
    mean = HOURS_NEW[:, None] * np.exp(values)
    return mean @ share, (mean + mean**2 / p["r"] + mean**2) @ share - (mean @ share) ** 2


def joint(name: str, p: dict[str, Any], Phi: Any, x: Any) -> tuple[Any, Any, Any]:
    """Mean, covariance of the function and noise variance at given parameters."""
    if name == "gp":
        covariance = Standard()
        return 0.0, covariance.matrix(p["theta"], x[:, None]), covariance.noise(p["theta"], 1)
    alpha, Phi = p.get("alpha", ALPHAS), _design(p, Phi, x)
    return p.get("b", 0.0), (Phi / alpha) @ Phi.T, 1.0 / p.get("beta", 25.0)


def _design(p: dict[str, Any], Phi: Any, x: Any) -> Any:
    """The columns of `BASIS`, at the width of the draw if it has one."""
    return np.exp(-(((x[:, None] - BASIS.centers[:, 0]) / p["width"]) ** 2)) if "width" in p else Phi
