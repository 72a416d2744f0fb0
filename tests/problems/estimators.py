"""Data, settings and dense predictions for the tests of the estimators."""

import mpmath
import numpy as np
import pytest

import bayessel as bs
from tests.oracles import linear as oracles

E, R = bs.EvidenceRegressor, bs.RidgeRBFRegressor
BOTH = pytest.mark.parametrize("make", [E, R], ids=["evidence", "ridge"])


def wave(rng, n=30, noise=0.2, d=1):
    X = rng.uniform(0, 1, (n, d))
    return X, 3.0 + np.sin(6 * X[:, 0]) + noise * rng.normal(size=n)


def kernels(model, X):
    """Kernel columns in use, from the formula."""
    H = oracles.radial(model.kind, X, model.dictionary_.centers, model.width_)
    last = H.shape[1]
    return H[:, model.basis_[model.basis_ < last]]


def precisions(model):
    alpha = np.asarray(model.alpha_)
    return float(alpha) if alpha.ndim == 0 else alpha[model.basis_[model.basis_ < len(alpha)]]


SETTINGS = {
    "evidence": E(width=0.2),
    "evidence, no bias": E(width=0.2, bias=False),
    "evidence, em": E(width=0.3, method="em"),
    "evidence, wide": E(width=20.0),
    "evidence, wide, no bias": E(width=20.0, bias=False),
    "evidence, multiquadric": E(width=0.5, kind="multiquadric"),
    "evidence, fitted": E(width="fit"),
    "evidence, few centres": E(width=0.3, centers=np.linspace(0, 1, 5)[:, None]),
    "ridge": R(width=0.2),
    "ridge, no bias": R(width=0.2, bias=False),
    "ridge, wide": R(width=20.0),
    "ridge, wide, no bias": R(width=20.0, bias=False, criterion="bic"),
    "ridge, loo": R(width=0.2, criterion="loo"),
    "ridge, local": R(width=0.1, penalty="local"),
    "ridge, local, no bias": R(width=0.1, penalty="local", bias=False, kind="cauchy"),
    "ridge, few centres": R(width=0.3, centers=np.linspace(0, 1, 5)[:, None]),
}


def exact_prediction(model, X, y, new):
    """Mean and standard deviation of new observations at sixty digits; the bias has prior precision zero."""
    with mpmath.workdps(oracles.DIGITS):
        rows, fresh = kernels(model, X), kernels(model, new)
        A = list(np.broadcast_to(precisions(model), (rows.shape[1],)))
        if model.bias:
            rows, fresh = np.c_[rows, np.ones(len(X))], np.c_[fresh, np.ones(len(new))]
            A = [*A, 0.0]
        Phi, beta = mpmath.matrix(rows.tolist()), mpmath.mpf(float(model.beta_))
        H = beta * (Phi.T * Phi) + mpmath.diag([mpmath.mpf(float(a)) for a in A])
        Sigma = H**-1
        mu = beta * (Sigma * (Phi.T * mpmath.matrix(y.tolist())))
        mean, std = [], []
        for row in fresh:
            f = mpmath.matrix(row.tolist())
            mean.append(float((f.T * mu)[0]))
            std.append(float(mpmath.sqrt(1 / beta + (f.T * Sigma * f)[0])))
        return np.array(mean), np.array(std)
