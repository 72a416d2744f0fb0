"""Bad input to the relevance vector machine: the type of the exception, and a message that says what was needed.

Guards `bayessel.linear.rvm._fit_rvm`, `bayessel.linear.rvm.problem`.
"""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from bayessel.linear import fit_rvm
from tests.problems import rvm as rvm_problems

_rng = np.random.default_rng(0)
PHI, T = _rng.normal(size=(6, 3)), _rng.normal(size=6)
NAN = np.where(np.arange(18).reshape(6, 3) == 7, np.nan, PHI)
INF = np.where(np.arange(18).reshape(6, 3) == 9, -np.inf, PHI)
V, Y = ValueError, TypeError
HALF = np.where(np.arange(6) == 2, np.nan, T)


class Odd(rvm_problems.OnTheFly):
    """Columns that are not what they promised."""

    def __init__(self, wrong):
        super().__init__(PHI)
        self.wrong = wrong

    def columns(self, indices):
        return self.wrong(super().columns(indices))


BAD = {
    "Phi None": (lambda: fit_rvm(None, T), Y, "Phi must be numbers, got None"),
    "Phi a word": (lambda: fit_rvm("wide", T), Y, "Phi must be numeric, got str"),
    "Phi a number": (lambda: fit_rvm(3.0, T), V, "Phi must be 2-D"),
    "Phi one column, one-dimensional": (lambda: fit_rvm(T, T), V, r"Phi must be 2-D .*reshape\(-1, 1\)"),
    "Phi a cube": (lambda: fit_rvm(np.ones((6, 2, 2)), T), V, r"Phi must be 2-D .*\(6, 2, 2\)"),
    "Phi without rows": (lambda: fit_rvm(np.empty((0, 3)), []), V, r"at least one row and one column.*\(0, 3\)"),
    "Phi without columns": (lambda: fit_rvm(np.empty((6, 0)), T), V, r"at least one row and one column.*\(6, 0\)"),
    "Phi ragged": (lambda: fit_rvm([[1.0, 2.0], [3.0]], [1.0, 2.0]), V, "rectangular array of numbers"),
    "Phi NaN": (lambda: fit_rvm(NAN, T), V, r"Phi must be finite.*NaN\) at \[2, 1\]"),
    "Phi infinite": (lambda: fit_rvm(INF, T), V, r"Phi must be finite.*infinity\) at \[3, 0\]"),
    "Phi NaN, single precision": (lambda: fit_rvm(NAN.astype(np.float32), T), V, "Phi must be finite"),
    "Phi complex": (lambda: fit_rvm(PHI + 1j, T), V, "Phi must be real, got complex"),
    "Phi words": (lambda: fit_rvm(PHI.astype(str), T), Y, "Phi must be numeric"),
    "Phi objects": (lambda: fit_rvm(np.array([[object()] * 3] * 6), T), Y, "Phi must be numeric"),
    "Phi dates": (lambda: fit_rvm(pd.DataFrame({"a": pd.date_range("2020", periods=6)}), T), Y, "Phi must be numeric"),
    "Phi sparse": (lambda: fit_rvm(scipy.sparse.csr_matrix(PHI), T), Y, r"sparse matrix.*toarray\(\)"),
    "Phi masked": (lambda: fit_rvm(np.ma.masked_array(PHI, mask=PHI > 0), T), Y, "Phi has masked values"),
    "Phi huge": (lambda: fit_rvm(1e160 * PHI, T), V, "Phi has values of size .*rescale"),
    "Phi tiny": (lambda: fit_rvm(1e-160 * PHI, T), V, "Phi has values of size .*rescale"),
    "t None": (lambda: fit_rvm(PHI, None), Y, "t must be numbers, got None"),
    "t short": (lambda: fit_rvm(PHI, T[:5]), V, "t must have one value per row: there are 6 rows and 5"),
    "t long": (lambda: fit_rvm(PHI[:4], T), V, "t must have one value per row: there are 4 rows and 6"),
    "t a number": (lambda: fit_rvm(PHI, 3.0), V, "t must be 1-D"),
    "t two columns": (lambda: fit_rvm(PHI, np.column_stack([T, T])), V, r"t must be 1-D.*\(6, 2\)"),
    "t NaN": (lambda: fit_rvm(PHI, HALF), V, r"t must be finite.*NaN\) at \[2\]"),
    "t complex": (lambda: fit_rvm(PHI, T + 0j), V, "t must be real, got complex"),
    "t words": (lambda: fit_rvm(PHI, ["a"] * 6), Y, "t must be numeric, got str"),
    "t huge": (lambda: fit_rvm(PHI, 1e150 * T), V, "t has values of size .*rescale"),
    "init unknown": (lambda: fit_rvm(PHI, T, init="best"), V, "init must be .*'auto'.*'best'"),
    "init None": (lambda: fit_rvm(PHI, T, init=None), (V, Y), "init must be .*None"),
    "init a number": (lambda: fit_rvm(PHI, T, init=3), (V, Y), "init must be .*(3|int)"),
    "init of two parts": (lambda: fit_rvm(PHI, T, init=([0], [1.0])), (V, Y), "init"),
    "init column too large": (lambda: fit_rvm(PHI, T, init=([3], [1.0], 1.0)), V, "init|basis"),
    "init column negative": (lambda: fit_rvm(PHI, T, init=([-1], [1.0], 1.0)), V, "init|basis"),
    "init column twice": (lambda: fit_rvm(PHI, T, init=([1, 1], [1.0, 2.0], 1.0)), V, "init|basis"),
    "init column a fraction": (lambda: fit_rvm(PHI, T, init=([0.5], [1.0], 1.0)), (V, Y), "init|basis"),
    "init lengths differ": (lambda: fit_rvm(PHI, T, init=([0, 1], [1.0], 1.0)), V, "init|alpha"),
    "init alpha negative": (lambda: fit_rvm(PHI, T, init=([0], [-1.0], 1.0)), V, "init|alpha"),
    "init alpha zero": (lambda: fit_rvm(PHI, T, init=([0], [0.0], 1.0)), V, "init|alpha"),
    "init alpha NaN": (lambda: fit_rvm(PHI, T, init=([0], [np.nan], 1.0)), V, "init|alpha"),
    "init beta zero": (lambda: fit_rvm(PHI, T, init=([0], [1.0], 0.0)), V, "init|beta"),
    "init beta a word": (lambda: fit_rvm(PHI, T, init=([0], [1.0], "x")), (V, Y), "init|beta"),
    "beta zero": (lambda: fit_rvm(PHI, T, beta=0.0), V, "beta must be positive and finite, got 0.0"),
    "beta negative": (lambda: fit_rvm(PHI, T, beta=-1), V, "beta must be positive and finite, got -1.0"),
    "beta infinite": (lambda: fit_rvm(PHI, T, beta=np.inf), V, "beta must be positive and finite, got inf"),
    "beta NaN": (lambda: fit_rvm(PHI, T, beta=np.nan), V, "beta must be positive and finite, got nan"),
    "beta a word": (lambda: fit_rvm(PHI, T, beta="1"), Y, "beta must be a positive number, got '1'"),
    "beta True": (lambda: fit_rvm(PHI, T, beta=True), Y, "beta must be a positive number, got True"),
    "several betas": (lambda: fit_rvm(PHI, T, beta=[1.0, 2.0]), Y, "beta must be a positive number"),
    "max_steps zero": (lambda: fit_rvm(PHI, T, max_steps=0), V, "max_steps must be at least 1, got 0"),
    "max_steps negative": (lambda: fit_rvm(PHI, T, max_steps=-3), V, "max_steps must be at least 1, got -3"),
    "max_steps a fraction": (lambda: fit_rvm(PHI, T, max_steps=1.5), Y, "max_steps must be an integer"),
    "max_steps a word": (lambda: fit_rvm(PHI, T, max_steps="all"), Y, "max_steps must be an integer"),
    "max_steps True": (lambda: fit_rvm(PHI, T, max_steps=True), Y, "max_steps must be an integer"),
    "tol negative": (lambda: fit_rvm(PHI, T, tol=-1e-3), V, "tol must be .*got -0.001"),
    "tol NaN": (lambda: fit_rvm(PHI, T, tol=np.nan), V, "tol must be .*got nan"),
    "tol a word": (lambda: fit_rvm(PHI, T, tol="tight"), Y, "tol must be"),
    "restarts negative": (lambda: fit_rvm(PHI, T, restarts=-1), V, "restarts must be at least 0, got -1"),
    "restarts a fraction": (lambda: fit_rvm(PHI, T, restarts=1.5), Y, "restarts must be an integer"),
    "restarts a word": (lambda: fit_rvm(PHI, T, restarts="many"), Y, "restarts must be an integer"),
    "restarts True": (lambda: fit_rvm(PHI, T, restarts=True), Y, "restarts must be an integer"),
    "columns with other rows": (lambda: fit_rvm(Odd(lambda C: C[:4]), T), V, "columns"),
    "columns with NaN": (lambda: fit_rvm(Odd(lambda C: np.where(C == PHI[2, 1], np.nan, C)), T), V, "finite"),
    "columns one too few": (lambda: fit_rvm(Odd(lambda C: C[:, :-1]), T), V, "columns"),
    "columns of another length than t": (lambda: fit_rvm(rvm_problems.OnTheFly(PHI), T[:5]), V, "one value per row"),
    "predict: other columns": (lambda: _fitted().predict(np.ones((2, 7))), V, r"3 columns|\(2, 7\)"),
    "predict: one-dimensional": (lambda: _fitted().predict(np.ones(3)), V, "2-D"),
    "predict: NaN": (lambda: _fitted().predict(NAN), V, "finite"),
    "predict: words": (lambda: _fitted().predict([["a", "b", "c"]]), Y, "numeric"),
    "predict: None": (lambda: _fitted().predict(None), Y, "None"),
}


def _fitted():
    fit = fit_rvm(PHI, PHI[:, 0] + 0.1 * T)
    assert 0 < fit.n_basis < 7
    return fit


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_at_the_door(case):
    call, kind, message = BAD[case]
    with pytest.raises(kind, match=message):
        call()


def test_a_column_target_is_ravelled_with_a_warning():
    with pytest.warns(UserWarning, match="column-vector t was passed"):
        fit = fit_rvm(PHI, T[:, None])
    np.testing.assert_allclose(fit.log_evidence, fit_rvm(PHI, T).log_evidence, rtol=1e-12)


def test_frames_and_series_are_taken():
    frame, series = pd.DataFrame(PHI, columns=list("abc")), pd.Series(T, index=range(10, 16))
    np.testing.assert_allclose(fit_rvm(frame, series).log_evidence, fit_rvm(PHI, T).log_evidence, rtol=1e-12)


def test_a_result_of_other_columns_cannot_start_a_fit():
    wide = fit_rvm(np.hstack([PHI[:, 1:2], PHI[:, 1:2] ** 2, PHI[:, 2:], PHI[:, :1]]), PHI[:, 0] * 3 + 0.01 * T)
    assert 3 in wide.basis
    with pytest.raises(ValueError, match=r"init|basis|columns"):
        fit_rvm(PHI, T, init=wide)


def test_engine_values_are_python_friendly():
    fit = fit_rvm(PHI, T)
    assert isinstance(fit.log_evidence, float) and isinstance(fit.beta, float) and isinstance(fit.noise_std, float)
    assert isinstance(fit.n_rows, int) and isinstance(fit.n_candidates, int) and isinstance(fit.n_basis, int)
    assert fit.basis.dtype.kind == "i"
    assert isinstance(fit.history, tuple) and isinstance(fit.notes, tuple) and isinstance(fit.starts, dict)
    with pytest.raises(AttributeError):
        fit.beta = 3.0
