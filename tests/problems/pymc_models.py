"""Models of `bayessel.models` on one small problem, and their predictions of new rows by dense formulas."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
from scipy.special import expit

import bayessel as bs
from bayessel.covariance import Standard

SEEN = np.sort(np.random.default_rng(5).uniform(-2.0, 2.0, 24))
NEW = np.linspace(-1.7, 1.7, 5)
TARGET = np.sin(2.0 * SEEN) + 0.2 * np.random.default_rng(6).standard_normal(24)
BASIS = bs.RBFDictionary(np.linspace(-2.0, 2.0, 6), width=1.0, bias=False)
PHI, PHI_NEW = BASIS.design(SEEN), BASIS.design(NEW)


@dataclass(frozen=True)
class Case:
    """A model, the rows to predict, and whether its likelihood is a joint normal one."""

    model: pm.Model
    new: Any
    joint: bool = False
    observed: str = "t"


def cases() -> dict[str, Case]:
    """Every model, explicit and collapsed, with fixed parameters too."""
    t, x, new = TARGET, SEEN[:, None], NEW[:, None]
    two = bs.models.linear(PHI, t, np.linspace(0.3, 2.0, 6), collapsed=True, bias=True)
    return {
        "gp": Case(bs.models.gp(x, t), new, True),
        "linear": Case(bs.models.linear(PHI, t, bias=True), PHI_NEW),
        "linear collapsed": Case(bs.models.linear(PHI, t, bias=True, collapsed=True), PHI_NEW, True),
        "linear, fixed alphas": Case(two, PHI_NEW, True),
        "linear, fixed beta": Case(bs.models.linear(PHI, t, beta=25.0, collapsed=True), PHI_NEW, True),
        "rvm": Case(bs.models.rvm(PHI, t), PHI_NEW),
        "rvm collapsed": Case(bs.models.rvm(PHI, t, collapsed=True), PHI_NEW, True),
        "horseshoe collapsed": Case(bs.models.rvm(PHI, t, "horseshoe", True), PHI_NEW, True),
        "logistic": Case(bs.models.logistic(PHI, t > 0.3), PHI_NEW, observed="y"),
        "mlp": Case(bs.models.mlp(x, t, 3), new),
    }


def moments(name: str, posterior: Any) -> tuple[Any, Any]:
    """Mean and standard deviation of new observations: each draw by dense algebra, then all draws together."""
    stacked = posterior.to_dataset().stack(s=("chain", "draw"))
    found = [_of_draw(name, {key: stacked[key].values[..., k] for key in stacked}) for k in range(stacked.sizes["s"])]
    means, variances = (np.array(part) for part in zip(*found, strict=True))
    return means.mean(axis=0), np.sqrt(variances.mean(axis=0) + means.var(axis=0))


def _of_draw(name: str, p: dict[str, Any]) -> tuple[Any, Any]:
    if name == "logistic":
        probability = expit(PHI_NEW @ p["w"] + p["b"])
        return probability, probability * (1.0 - probability)
    if name == "mlp":
        hidden = np.tanh(NEW[:, None] @ p["input_hidden"] + p["hidden_bias"])
        f = hidden @ p["hidden_output"] + NEW[:, None] @ p["input_output"] + p["bias"]
        return f[:, 0], np.full(len(NEW), 1.0 / p["tau_noise"][0])
    if name in ("linear", "rvm"):
        return PHI_NEW @ p["w"] + p.get("b", 0.0), np.full(len(NEW), 1.0 / p["beta"])
    mean, C, noise = joint(name, p, np.vstack([PHI, PHI_NEW]), np.concatenate([SEEN, NEW]))
    n = len(TARGET)
    Q = C[:n, :n] + noise * np.eye(n)
    gain = np.linalg.solve(Q, C[:n, n:]).T
    return mean + gain @ (TARGET - mean), np.diag(C[n:, n:] - gain @ C[:n, n:]) + noise


def joint(name: str, p: dict[str, Any], Phi: Any, x: Any) -> tuple[Any, Any, Any]:
    """Mean, covariance of the function and noise variance at given parameters."""
    if name == "gp":
        covariance = Standard()
        return 0.0, covariance.matrix(p["theta"], x[:, None]), covariance.noise(p["theta"], 1)
    alpha = p.get("alpha", np.linspace(0.3, 2.0, 6))
    return p.get("b", 0.0), (Phi / alpha) @ Phi.T, 1.0 / p.get("beta", 25.0)
