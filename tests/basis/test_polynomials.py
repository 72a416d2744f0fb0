"""Orthogonal polynomials against numpy's fits, scikit-learn's powers, and their own definition.

Guards `bayessel.basis.polynomials`.
"""

import pickle

import numpy as np
import pytest
from scipy.special import eval_legendre
from sklearn.preprocessing import PolynomialFeatures

from bayessel.basis import PolynomialDictionary
from bayessel.basis.polynomials import OrthogonalPolynomials


def fitted(A, t, B):
    """Least squares on columns A and a constant, at rows B."""
    one = np.ones((len(A), 1)), np.ones((len(B), 1))
    return np.hstack([one[1], B]) @ np.linalg.lstsq(np.hstack([one[0], A]), t, rcond=None)[0]


@pytest.mark.parametrize("degree", [1, 3, 10])
def test_columns_are_orthogonal_of_unit_mean_square(rng, degree):
    for x in (rng.uniform(size=50), np.exp(2.0 * rng.normal(size=50)), 2000.0 + np.arange(50.0)):
        H = PolynomialDictionary(degree).bind(x[:, None]).design(x)
        with_one = np.column_stack([np.ones(50), H])
        np.testing.assert_allclose(with_one.T @ with_one / 50, np.eye(degree + 1), atol=1e-8)


def test_on_a_fine_grid_they_are_legendre_polynomials():
    x = np.linspace(-1.0, 1.0, 200_001)
    H = PolynomialDictionary(5).bind(x[:, None]).design(x)
    for k in range(1, 6):
        np.testing.assert_allclose(H[:, k - 1], np.sqrt(2 * k + 1) * eval_legendre(k, x), atol=1e-3)


def test_least_squares_on_them_is_polyfit(rng):
    """Degree 10 in calendar years: numpy's fit in its own scaled domain is the twin."""
    x, new = rng.uniform(1950.0, 2020.0, size=60), np.linspace(1945.0, 2025.0, 30)
    t = np.sin(x / 5.0) + 0.1 * rng.normal(size=60)
    D = PolynomialDictionary(10).bind(x[:, None])
    twin = np.polynomial.Chebyshev.fit(x, t, 10)
    np.testing.assert_allclose(fitted(D.design(x), t, D.design(new)), twin(new), rtol=1e-8, atol=1e-8)
    wrong = PolynomialDictionary(9).bind(x[:, None])
    assert np.abs(fitted(wrong.design(x), t, wrong.design(new)) - twin(new)).max() > 1e-3


@pytest.mark.parametrize("interactions", [True, False])
def test_they_span_the_powers_of_scikit_learn(rng, interactions):
    X, new, t = rng.normal(size=(80, 3)), rng.normal(size=(9, 3)), rng.normal(size=80)
    D = PolynomialDictionary(3, interactions).bind(X)
    if interactions:
        powers = PolynomialFeatures(3, include_bias=False).fit(X)
        A, B = powers.transform(X), powers.transform(new)
    else:
        A, B = (np.hstack([rows, rows**2, rows**3]) for rows in (X, new))
    assert D.n_columns == A.shape[1] == len(set(D.names))
    np.testing.assert_allclose(fitted(D.design(X), t, D.design(new)), fitted(A, t, B), rtol=1e-8, atol=1e-8)


def test_columns_are_named_by_what_they_are(rng):
    X = rng.normal(size=(40, 2))
    D = PolynomialDictionary(2, bias=True).bind(X)
    assert D.names == ["P1(x[0])", "P1(x[1])", "P2(x[0])", "P1(x[0])*P1(x[1])", "P2(x[1])", "bias"]
    H = D.design(X)
    np.testing.assert_allclose(H[:, 3], H[:, 0] * H[:, 1])
    np.testing.assert_allclose(H[:, 0], (X[:, 0] - X[:, 0].mean()) / X[:, 0].std())
    some = PolynomialDictionary(2, inputs=[1]).bind(X)
    assert some.names == ["P1(x[1])", "P2(x[1])"]
    np.testing.assert_array_equal(some.design(X), H[:, [1, 4]])


def test_an_input_of_few_values_has_few_polynomials(rng):
    X = np.column_stack([rng.integers(0, 2, 30), rng.integers(0, 3, 30), np.full(30, 7.0), rng.normal(size=30)])
    D = PolynomialDictionary(4, interactions=False).bind(X)
    assert D.names == ["P1(x[0])", "P1(x[1])", "P1(x[3])", "P2(x[1])", "P2(x[3])", "P3(x[3])", "P4(x[3])"]
    assert np.linalg.cond(D.design(X)) < 20.0
    nothing = PolynomialDictionary(4).bind(np.ones((5, 2)))
    assert nothing.n_columns == 0 and nothing.design(np.ones((3, 2))).shape == (3, 0)


def test_copies_of_a_value_that_differ_by_rounding_count_as_one():
    x = np.repeat([0.0, 1.0, 2.0], 5) * (1.0 + 4e-16 * np.arange(15))
    assert OrthogonalPolynomials.of(x, 8).degree == 2


def test_an_outlier_leaves_the_other_rows_their_polynomials(rng):
    """Powers scaled by the spread would be constant on all rows but one."""
    x = np.append(rng.normal(size=60), 1e3)
    t = np.append(x[:-1] ** 2, 0.0)
    D = PolynomialDictionary(3).bind(x[:, None])
    np.testing.assert_allclose(fitted(D.design(x), t, D.design(x)), t, atol=0.1)  # x² - x³/1000


def test_bound_dictionaries_are_copies_and_pickle(rng):
    X = rng.normal(size=(20, 2))
    recipe = PolynomialDictionary(3)
    bound = recipe.bind(X)
    with pytest.raises(ValueError, match=r"use what dictionary.bind\(X\) returns"):
        recipe.design(X)
    with pytest.raises(ValueError, match="bind"):
        recipe.names  # noqa: B018
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(bound)).design(X), bound.design(X))
    assert repr(recipe) == repr(bound) == "PolynomialDictionary(degree=3, interactions=True)"
    with pytest.raises(ValueError, match="2 columns that were bound"):
        bound.design(X[:, :1])


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"degree": 0}, ValueError, "degree must be at least 1"),
        ({"degree": 2.0}, TypeError, "degree must be an integer"),
        ({"interactions": 1}, TypeError, "interactions must be True or False"),
        ({"inputs": []}, ValueError, "at least one input"),
        ({"inputs": [0, 0]}, ValueError, "each once"),
        ({"inputs": [-1]}, ValueError, "at least 0"),
        ({"inputs": "x"}, TypeError, "list of numbers"),
        ({"inputs": [4]}, ValueError, "names input 4, but X has 3 columns"),
        ({"degree": 200}, ValueError, "lower the degree"),
    ],
)
def test_bad_recipes_are_refused(rng, options, error, says):
    with pytest.raises(error, match=says):
        PolynomialDictionary(**options).bind(rng.normal(size=(8, 3)))


def test_degrees_that_rounding_would_decide_are_left_out(rng):
    """The recurrence at other rows, in other company, gives the same numbers."""
    x = rng.normal(size=60)
    D = PolynomialDictionary(50).bind(x[:, None])
    assert 10 <= D.n_columns < 50
    whole = D.design(x)
    np.testing.assert_allclose(D.design(x[:7]), whole[:7], rtol=1e-6, atol=1e-7 * np.abs(whole).max())
