"""What estimators ask of a dictionary: its methods, columns of their own row, finite numbers, a size that fits.

Guards `bayessel.basis.bound_dictionary`.
"""

import numpy as np
import pytest

from bayessel.basis import FourierDictionary, PolynomialDictionary, RBFDictionary, UserDictionary
from bayessel.basis.bound_dictionary import BoundDictionary


class Own:
    """A dictionary without our base class."""

    bias = False
    names = ("square", "sine")
    n_columns = 2

    def columns(self, X):
        return np.column_stack([X[:, 0] ** 2, np.sin(X[:, 0])])

    def design(self, X):
        return self.columns(X)


def test_an_object_with_the_methods_is_a_dictionary(rng):
    X = rng.normal(size=(9, 2))
    D = BoundDictionary(Own(), X, bias=True)
    assert D.names == ["square", "sine", "bias"] and D.n_columns == 3
    np.testing.assert_array_equal(D.design(X), np.column_stack([Own().columns(X), np.ones(9)]))


def test_the_bias_is_that_of_the_estimator(rng):
    X = rng.normal(size=(9, 2))
    for own in (False, True):
        for asked in (False, True):
            D = BoundDictionary(RBFDictionary(X[:3], 1.0, bias=own), X, bias=asked)
            assert D.design(X).shape == (9, 3 + asked) and D.bias is asked


def test_scaled_columns_vary_alike(rng):
    X = np.column_stack([1e6 * rng.normal(size=50), rng.normal(size=50) + 1e3, np.full(50, 4.0)])
    D = BoundDictionary(UserDictionary(lambda X: X, ["a", "b", "c"]), X, bias=True).scaled(X)
    np.testing.assert_allclose(D.columns(X).std(axis=0), [1.0, 1.0, 0.0])
    np.testing.assert_allclose(D.columns(X) * D.scale, X)
    plain = BoundDictionary(UserDictionary(lambda X: X, ["a", "b", "c"]), X, bias=False).scaled(X)
    np.testing.assert_allclose((plain.columns(X) ** 2).mean(axis=0), 1.0)


def test_no_input_that_varies_leaves_a_column_of_zeros():
    for recipe in (PolynomialDictionary(2), FourierDictionary(2)):
        D = BoundDictionary(recipe, np.ones((4, 2)), bias=True)
        np.testing.assert_array_equal(D.design(np.ones((4, 2))), [[0.0, 1.0]] * 4)
        assert D.names == ["none", "bias"]


def wrong(function, names=("a",), rows=30):
    X = np.linspace(0.0, 1.0, 2 * rows).reshape(rows, 2)
    return BoundDictionary(UserDictionary(function, list(names)), X, bias=True).columns(X)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: BoundDictionary(3, np.eye(2), True), TypeError, "an object with columns.*got 3"),
        (lambda: BoundDictionary(np.sin, np.eye(2), True), TypeError, "UserDictionary"),
        (lambda: BoundDictionary(Own, np.eye(2), True), TypeError, "an object with columns"),
        (lambda: wrong(lambda X: X[:, 0] - X[:, 0].mean()), ValueError, "'a' .* must depend on its own row alone"),
        (lambda: wrong(lambda X: np.log(X[:, 0])), ValueError, "must be finite"),
        (lambda: wrong(lambda X: 1e70 * X[:, 0]), ValueError, "rescale"),
        (lambda: wrong(lambda X: X, ["a"]), ValueError, "2 columns but 1 names"),
        (lambda: wrong(lambda X: X[:3, 0]), ValueError, "one value per row"),
        (lambda: BoundDictionary(RBFDictionary(np.eye(3), 1.0), np.eye(2), True), ValueError, "3 columns"),
    ],
)
def test_what_cannot_be_used_is_refused_with_advice(call, error, says):
    with np.errstate(all="ignore"), pytest.raises(error, match=says):
        call()


def test_a_design_beyond_the_memory_is_refused_before_it_is_made():
    X = np.broadcast_to(np.zeros((1, 2)), (2_000_000, 2))
    many = [f"c{k}" for k in range(1000)]
    with pytest.raises(ValueError, match="a design of 16 GB: take fewer columns"):
        BoundDictionary(UserDictionary(lambda X: 1 / 0, many), X, bias=True)


def test_columns_of_another_shape_than_named_are_refused(rng):
    class Short(Own):
        names = ("square", "sine", "third")

    with pytest.raises(ValueError, match="the 3 columns it names, got shape"):
        BoundDictionary(Short(), rng.normal(size=(9, 1)), bias=True)
    with pytest.raises(ValueError, match="2 columns that were fitted"):
        BoundDictionary(Own(), rng.normal(size=(9, 2)), bias=True).columns(np.ones((3, 1)))


def test_functions_that_change_their_rows_harm_nobody(rng):
    def doubled(X):
        X *= 2.0
        return X[:, 0]

    X = rng.normal(size=(30, 2))
    before = X.copy()
    D = BoundDictionary(UserDictionary([doubled, lambda X: X[:, 0]], ["a", "b"]), X, bias=False)
    np.testing.assert_allclose(D.columns(X), before[:, :1] * [2.0, 1.0])
    np.testing.assert_array_equal(X, before)
