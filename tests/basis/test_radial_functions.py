"""Dictionaries against the written formulas of the radial functions, one entry at a time.

Guards `bayessel.basis.radial_functions`, `bayessel.basis.dictionary`, `bayessel.basis.lazy_design`,
`bayessel.basis.user_columns`.
"""

import numpy as np
import pytest

import bayessel as bs
from bayessel import basis
from tests.oracles import linear as oracles

KINDS = ("gaussian", "multiquadric", "inverse_multiquadric", "cauchy")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [0.7, (0.5, 2.0, 1e3)], ids=["one width", "a width per input"])
def test_each_kind_is_its_formula(rng, kind, width):
    X, centers = rng.normal(size=(11, 3)), rng.normal(size=(4, 3))
    got = bs.RBFDictionary(centers, width, kind=kind, bias=False).design(X)
    np.testing.assert_allclose(got, oracles.radial(kind, X, centers, width), rtol=1e-13)


def test_the_kinds_are_told_apart(rng):
    """A control: each kind fails against the formula of every other."""
    X, centers = rng.normal(size=(6, 2)), rng.normal(size=(3, 2))
    for kind in KINDS:
        got = bs.RBFDictionary(centers, 0.7, kind=kind, bias=False).design(X)
        for other in set(KINDS) - {kind}:
            assert not np.allclose(got, oracles.radial(other, X, centers, 0.7), rtol=1e-3)


def test_distances_far_from_the_origin_keep_their_digits(rng):
    """Differences first, then widths and squares: x'x - 2x'c + c'c, or x/r - c/r, would lose most digits here."""
    X, centers = rng.normal(size=(7, 2)), rng.normal(size=(4, 2))
    shift = 2.0**27  # the shifted points are rounded once; the formula sees the same rounded points
    got = bs.RBFDictionary(centers + shift, 0.7, bias=False).design(X + shift)
    np.testing.assert_allclose(got, oracles.radial("gaussian", X + shift, centers + shift, 0.7), rtol=1e-10)


def test_a_point_on_its_centre_is_exactly_at_the_peak(rng):
    X = rng.normal(size=(20, 5)) * 1e4
    for kind in KINDS:
        np.testing.assert_array_equal(np.diag(bs.RBFDictionary(X, 0.3, kind=kind, bias=False).design(X)), 1.0)


def test_far_points_underflow_quietly():
    H = bs.RBFDictionary([[0.0]], 1e-3, bias=False).design([[1e6]])
    assert H[0, 0] == 0.0


def test_order_is_kernels_then_inputs_then_bias(rng):
    X, centers = rng.normal(size=(9, 2)), rng.normal(size=(3, 2))
    D = bs.RBFDictionary(centers, 1.5, kind="cauchy", bias=True, linear=True)
    H = D.design(X)
    assert D.bias is True
    assert D.n_columns == H.shape[1] == len(D.names) == 6
    np.testing.assert_allclose(H[:, :3], oracles.radial("cauchy", X, centers, 1.5), rtol=1e-13)
    np.testing.assert_array_equal(H[:, 3:5], X)
    np.testing.assert_array_equal(H[:, 5], 1.0)
    assert len(set(D.names)) == 6


@pytest.mark.parametrize("kind", KINDS)
def test_columns_made_when_looked_at_come_in_the_order_asked_for(rng, kind):
    """Kernels, inputs and the bias mixed, in any order and more than once, against the written formula."""
    X, centers = rng.normal(size=(9, 3)), rng.normal(size=(4, 3))
    lazy = basis.LazyDesign(bs.RBFDictionary(centers, 1.5, kind=kind, bias=True, linear=True), X)
    whole = np.column_stack([oracles.radial(kind, X, centers, 1.5), X, np.ones(9)])
    for wanted in ([6, 4, 5], [7, 2, 6, 0, 5, 3], [1, 1, 4], [7], [3, 0]):
        np.testing.assert_allclose(lazy.columns(wanted), whole[:, wanted], rtol=1e-13)
        np.testing.assert_allclose(lazy.rows([8, 1], wanted), whole[np.ix_([8, 1], wanted)], rtol=1e-13)


def test_no_bias_unless_asked_for(rng):
    D = bs.RBFDictionary(rng.normal(size=(3, 2)), 1.0, bias=False)
    assert D.bias is False
    assert D.design(rng.normal(size=(4, 2))).shape == (4, 3)


def test_joined_dictionaries_keep_one_bias_and_put_it_last(rng):
    X = rng.normal(size=(8, 2))
    c1, c2 = rng.normal(size=(3, 2)), rng.normal(size=(2, 2))
    second = bs.RBFDictionary(c2, 2.0, kind="multiquadric", bias=True, linear=True)
    joined = bs.RBFDictionary(c1, 0.5, bias=True) + second
    H = joined.design(X)
    want = np.column_stack(
        [
            oracles.radial("gaussian", X, c1, 0.5),
            oracles.radial("multiquadric", X, c2, 2.0),
            X,
            np.ones(8),
        ]
    )
    assert joined.n_columns == 8
    assert joined.bias is True
    np.testing.assert_allclose(H, want, rtol=1e-13)


def test_user_columns_need_not_be_kernels(rng):
    X = rng.normal(size=(8, 2))
    D = basis.UserDictionary(lambda x: np.column_stack([np.sin(x[:, 0]), x[:, 0] * x[:, 1]]), ["sine", "product"])
    np.testing.assert_allclose(D.design(X)[:, :2], np.column_stack([np.sin(X[:, 0]), X[:, 0] * X[:, 1]]), rtol=1e-14)
    both = bs.RBFDictionary(X[:2], 1.0, bias=True) + D
    H = both.design(X)
    assert H.shape == (8, 5)
    np.testing.assert_array_equal(H[:, -1], 1.0)
    np.testing.assert_allclose(H[:, 2], np.sin(X[:, 0]), rtol=1e-14)
    assert list(both.names)[2:4] == ["sine", "product"]


def test_width_converters():
    """Each convention gives the same function value at the same distance."""
    d = 1.7
    assert np.exp(-(d**2) / bs.width(rho=0.8) ** 2) == pytest.approx(np.exp(-(d**2) / (2 * 0.8**2)), rel=1e-14)
    assert np.exp(-(d**2) / bs.width(tau=0.8) ** 2) == pytest.approx(np.exp(-(d**2) / 0.8), rel=1e-14)
    assert np.exp(-(d**2) / bs.width(omega=0.8) ** 2) == pytest.approx(np.exp(-0.5 * 0.8 * d**2), rel=1e-14)
    assert bs.width(lengthscale=0.8) == pytest.approx(np.sqrt(2) * 0.8, rel=1e-15)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "one of"),
        ({"rho": 1.0, "tau": 1.0}, "one"),
        ({"rho": 0.0}, "positive"),
        ({"tau": -1.0}, "positive"),
        ({"tau": "4"}, "number"),
        ({"omega": np.nan}, "finite"),
        ({"lengthscale": np.inf}, "finite"),
    ],
)
def test_bad_conversions_are_refused(arguments, says):
    with pytest.raises((ValueError, TypeError), match=says):
        bs.width(**arguments)


@pytest.mark.parametrize(
    ("centers", "width", "options"),
    [
        ([[0.0]], 0.0, {}),
        ([[0.0]], -1.0, {}),
        ([[0.0]], np.nan, {}),
        ([[0.0]], np.inf, {}),
        ([[0.0]], "wide", {}),
        ([[0.0, 1.0]], (1.0, 2.0, 3.0), {}),
        ([[0.0, 1.0]], (1.0, 0.0), {}),
        ([[np.nan]], 1.0, {}),
        ([[np.inf]], 1.0, {}),
        ([[["a"]]], 1.0, {}),
        ([["a"]], 1.0, {}),
        (np.zeros((2, 2, 2)), 1.0, {}),
        (np.zeros((2, 0)), 1.0, {}),
        ([[0.0]], 1.0, {"kind": "triangle"}),
    ],
)
def test_bad_dictionaries_are_refused_with_advice(centers, width, options):
    with pytest.raises((ValueError, TypeError)) as refusal:
        bs.RBFDictionary(centers, width, **options).design([[0.0]])
    assert len(str(refusal.value)) > 25


@pytest.mark.parametrize("X", [[[0.0, 1.0]], [[np.nan]], [["a"]], [[np.inf]], np.zeros((2, 2, 2))])
def test_bad_inputs_are_refused_with_advice(X):
    D = bs.RBFDictionary([[0.0]], 1.0)
    with pytest.raises((ValueError, TypeError)) as refusal:
        D.design(X)
    assert len(str(refusal.value)) > 25


def test_joining_different_input_dimensions_is_refused():
    with pytest.raises(ValueError):
        (bs.RBFDictionary([[0.0]], 1.0) + bs.RBFDictionary([[0.0, 0.0]], 1.0)).design([[0.0]])


@pytest.mark.parametrize("width", [5e-324, 1e-310, 1e-150, 1e150, [1.0, 1e-310]])
def test_widths_whose_squares_leave_double_precision_are_refused(width):
    with pytest.raises(ValueError, match=r"width has values of size .* rescale it"):
        bs.RBFDictionary(np.eye(2), width)


@pytest.mark.parametrize("kind", KINDS)
def test_extreme_widths_that_are_taken_give_the_limits(kind):
    """Without a warning: a function is its value at zero at its centre, and at infinity elsewhere."""
    narrow = bs.RBFDictionary(np.eye(2), 1e-99, kind=kind, bias=False).design(np.eye(2))
    wide = bs.RBFDictionary(np.eye(2), 1e99, kind=kind, bias=False).design(np.eye(2))
    np.testing.assert_allclose(np.diag(narrow), 1.0)
    np.testing.assert_allclose(wide, 1.0)
    limit = np.sqrt(2.0) * 1e99 if kind == "multiquadric" else 0.0
    np.testing.assert_allclose(narrow[0, 1], limit, atol=1e-50, rtol=1e-9)
    for far in (np.array([[1e250, 0.0]]), np.array([[np.nextafter(0.0, 1.0), 0.0]])):
        with pytest.raises(ValueError, match="rescale it"):
            bs.RBFDictionary(np.eye(2), 1e-99, kind=kind).design(far)


# --- a full metric ---------------------------------------------------------------------------------------------


def rotation(angle):
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_metric_is_widths_in_rotated_inputs(rng, kind):
    X, centers, Q, r = rng.normal(size=(9, 2)), rng.normal(size=(4, 2)), rotation(0.7), np.array([0.5, 3.0])
    turned = bs.RBFDictionary(centers @ Q, r, kind=kind, linear=True)
    full = bs.RBFDictionary(centers, kind=kind, linear=True, metric=Q @ np.diag(r**2) @ Q.T)
    np.testing.assert_allclose(full.design(X)[:, :4], turned.design(X @ Q)[:, :4], rtol=1e-10)
    np.testing.assert_array_equal(full.design(X)[:, 4:6], X)
    wanted = np.array([2, 5, 0, 6])
    np.testing.assert_allclose(basis.LazyDesign(full, X).columns(wanted), full.design(X)[:, wanted], rtol=1e-12)
    np.testing.assert_allclose(full.width, np.sqrt(np.diag(full.metric)))


def test_a_full_metric_is_its_formula_far_from_the_origin(rng):
    """Differences before the metric: x'R^-1x - 2x'R^-1c + c'R^-1c would lose most digits here."""
    X, centers = rng.normal(size=(7, 3)) + 2.0**27, rng.normal(size=(4, 3)) + 2.0**27
    A = rng.normal(size=(3, 3))
    R = A @ A.T + np.eye(3)
    away = X[:, None] - centers[None]
    z = np.einsum("ncd,de,nce->nc", away, np.linalg.inv(R), away)
    np.testing.assert_allclose(bs.RBFDictionary(centers, metric=R, bias=False).design(X), np.exp(-z), rtol=1e-8)


def test_a_diagonal_metric_is_a_width_per_input(rng):
    X, r = rng.normal(size=(6, 2)), np.array([0.5, 2.0])
    np.testing.assert_allclose(
        bs.RBFDictionary(X, metric=np.diag(r**2)).design(X), bs.RBFDictionary(X, r).design(X), rtol=1e-14
    )


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"width": 1.0, "metric": np.eye(2)}, "not both"),
        ({}, "width must be a number"),
        ({"metric": np.eye(3)}, "2 x 2"),
        ({"metric": [[1.0, 0.5], [0.0, 1.0]]}, "symmetric"),
        ({"metric": [[1.0, 2.0], [2.0, 1.0]]}, "positive definite"),
        ({"metric": np.ones((2, 2))}, "positive definite"),
        ({"metric": [[np.nan, 0.0], [0.0, 1.0]]}, "finite"),
        ({"metric": 2.0}, "2-D"),
    ],
)
def test_bad_metrics_are_refused(options, says):
    with pytest.raises((ValueError, TypeError), match=says):
        bs.RBFDictionary(np.eye(2), **options)


# --- joining, columns made when looked at ------------------------------------------------------------------------


def test_any_dictionary_is_looked_at_column_by_column(rng):
    X = rng.normal(size=(12, 2))
    joined = basis.PolynomialDictionary(2).bind(X) + bs.RBFDictionary(X[:3], 1.0)
    lazy, whole = basis.LazyDesign(joined, X), joined.design(X)
    assert lazy.shape == whole.shape == (12, 9)
    np.testing.assert_array_equal(lazy.rows([3, 1], [8, 0, 6]), whole[np.ix_([3, 1], [8, 0, 6])])
    fit = bs.linear.fit_rvm(lazy, X[:, 0] ** 2)
    np.testing.assert_allclose(fit.log_evidence, bs.linear.fit_rvm(whole, X[:, 0] ** 2).log_evidence, rtol=1e-9)
    other = basis.LazyDesign(basis.PolynomialDictionary(3).bind(X), X)
    assert fit.fingerprint != bs.linear.fit_rvm(other, X[:, 0] ** 2).fingerprint


def test_only_dictionaries_are_joined():
    with pytest.raises(TypeError, match="UserDictionary"):
        basis.JoinedDictionary(basis.UserDictionary(np.sin, ["a"]), np.sin)
    with pytest.raises(TypeError, match="unsupported operand"):
        basis.UserDictionary(np.sin, ["a"]) + 3
