"""The peers and the limits, spelled out once for all workloads."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg as sl
from scipy.linalg import blas, lapack
from sklearn.linear_model import BayesianRidge

Array = np.ndarray[Any, np.dtype[np.float64]]
Problem = tuple[Array, Array]


def bayesian_ridge(problem: Problem, **options: Any) -> BayesianRidge:
    """Scikit-learn's evidence procedure for our model: no bias, hyperpriors too weak to matter."""
    tiny = dict.fromkeys(("alpha_1", "alpha_2", "lambda_1", "lambda_2"), 1e-12)
    return BayesianRidge(**({"fit_intercept": False} | tiny | options)).fit(*problem)


def bayesian_ridge_default(problem: Problem) -> BayesianRidge:
    """Scikit-learn's evidence procedure as it comes: with a bias."""
    return BayesianRidge().fit(*problem)


def precisions(result: Any) -> tuple[float, float]:
    """(alpha, beta): weight and noise precision; scikit-learn calls them lambda_ and alpha_."""
    if isinstance(result, BayesianRidge):
        return float(result.lambda_), float(result.alpha_)
    return float(result.alpha), float(result.beta)


def syrk(Phi: Array, into: Array | None = None) -> Array:
    """Phi^T Phi, one triangle: one read of the data at full speed."""
    m = Phi.shape[1]
    G = np.zeros((m, m), order="F") if into is None else into
    return np.asarray(blas.dsyrk(1.0, Phi.T, beta=1.0, c=G, lower=1, overwrite_c=1))


def gram_eigen(problem: Problem) -> Any:
    """syrk and the eigenvalues and vectors of the result: what a fit through the Gram matrix cannot avoid."""
    Phi, t = problem
    return sl.eigh(syrk(Phi), driver="evd", overwrite_a=True, check_finite=False), t @ Phi


def gram_triangle(problem: Problem) -> Any:
    """syrk and potrf: what one ridge fit with a given penalty cannot avoid."""
    Phi, t = problem
    G = syrk(Phi)
    G[np.diag_indices(len(G))] += 1.0
    return lapack.dpotrf(G, lower=1, overwrite_a=1), t @ Phi


def qr_svd(problem: Problem) -> Any:
    """geqrf and the SVD of its triangle: the same without squaring the condition number."""
    Phi, t = problem
    (R,) = sl.qr(np.column_stack([Phi, t]), mode="r", overwrite_a=True, check_finite=False)
    m = Phi.shape[1]
    return sl.svd(R[:m, :m], full_matrices=False, check_finite=False)


def svd(problem: Problem) -> Any:
    """gesdd of the design."""
    return sl.svd(problem[0], full_matrices=False, check_finite=False)
