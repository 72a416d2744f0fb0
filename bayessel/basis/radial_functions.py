r"""Radial functions :math:`h(x) = \varphi(z)` of the scaled squared distance z from a centre.

It is :math:`z = \sum_d (x_d - c_d)^2 / r_d^2`, or with a full metric :math:`z = (x - c)^TR^{-1}(x - c)` (Orr 1996,
section 3.1 and appendix A.3):

=====================  ========================
gaussian               :math:`e^{-z}`
multiquadric           :math:`(1+z)^{1/2}`
inverse_multiquadric   :math:`(1+z)^{-1/2}`
cauchy                 :math:`(1+z)^{-1}`
=====================  ========================

The library has one width convention, r of :math:`e^{-d^2/r^2}`; :func:`width` converts the others to it.
"""

from __future__ import annotations

from typing import override

import numpy as np
import numpy.typing as npt
import scipy.linalg as sl
from scipy.spatial.distance import cdist

from bayessel._check import (
    FloatArray,
    IntArray,
    as_flag,
    as_matrix,
    as_positive,
    as_positive_vector,
    check_magnitude,
    one_of,
)
from bayessel.basis.dictionary import Dictionary

_BLOCK = 250_000  # entries of a design that are made at a time
_LARGEST = 1e200  # inputs, so that their quotients with widths above 1e-100 stay finite
KINDS = ("gaussian", "multiquadric", "inverse_multiquadric", "cauchy")


def width(
    *, rho: float | None = None, tau: float | None = None, lengthscale: float | None = None, omega: float | None = None
) -> float:
    r"""Convert another paper's kernel width to r of :math:`e^{-d^2/r^2}`; give exactly one.

    Parameters
    ----------
    rho
        of :math:`e^{-d^2/(2\rho^2)}`: :math:`r = \sqrt2\,\rho`.
    tau
        of :math:`e^{-d^2/\tau}`: :math:`r = \sqrt\tau`.
    lengthscale
        of a Gaussian process' :math:`e^{-d^2/(2\ell^2)}`: :math:`r = \sqrt2\,\ell`.
    omega
        of :math:`e^{-\omega d^2/2}`: :math:`r = \sqrt{2/\omega}`.

    Examples
    --------
    >>> width(tau=9.0)
    3.0
    """
    given = {
        k: v for k, v in {"rho": rho, "tau": tau, "lengthscale": lengthscale, "omega": omega}.items() if v is not None
    }
    if len(given) != 1:
        raise ValueError(f"give exactly one of rho, tau, lengthscale, omega; got {', '.join(given) or 'none'}")
    ((name, value),) = given.items()
    number = as_positive(value, name)
    if name == "tau":
        return float(np.sqrt(number))
    if name == "omega":
        r = float(np.sqrt(2.0) / np.sqrt(number))
        return as_positive(r, f"the width of omega={number!r}")
    return float(np.sqrt(2.0) * number)


def radial(kind: str, z: FloatArray, *, work: FloatArray | None = None, out: FloatArray | None = None) -> FloatArray:
    """Evaluate the radial function of `kind` at scaled squared distances `z`.

    The last step writes to `out`, those before it to `work`, which may be `z` itself.
    """
    if kind == "gaussian":
        return np.exp(np.negative(z, out=work), out=out)
    value = np.add(z, 1.0, out=work)
    if kind == "multiquadric":
        return np.sqrt(value, out=out)
    return np.divide(1.0, value if kind == "cauchy" else np.sqrt(value, out=work), out=out)


def radial_slope(kind: str, z: FloatArray) -> FloatArray:
    """Derivative of the radial function with respect to `z`."""
    if kind == "gaussian":
        return -np.exp(-z)
    if kind == "multiquadric":
        return 0.5 / np.sqrt(1.0 + z)
    if kind == "inverse_multiquadric":
        return -0.5 * (1.0 + z) ** -1.5
    return -((1.0 + z) ** -2)


def scaled_distances(X: FloatArray, centers: FloatArray, r: FloatArray, origin: FloatArray | None = None) -> FloatArray:
    """Return z, the squared distances after dividing each input by its width.

    `r` are the widths (D,), or of a full metric its lower Cholesky factor (D, D), with which the inputs are solved.
    """
    # differences are taken before squaring (no expansion of the square), and around a common origin, so that inputs
    # such as calendar years keep their digits
    if origin is None:
        origin = _middle(centers)
    return np.asarray(cdist(_in_widths(X, origin, r), _in_widths(centers, origin, r), "sqeuclidean"), dtype=np.float64)


def _middle(points: FloatArray) -> FloatArray:
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(points.mean(axis=0))


def _in_widths(points: FloatArray, origin: FloatArray, r: FloatArray, kind: str = "") -> FloatArray:
    """Points from an origin in units of the widths; where these are no numbers, neither are distances.

    Of functions that grow with the distance its square must be a number too.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        away = points - origin
        found = away / r if r.ndim == 1 else sl.solve_triangular(r, away.T, lower=True, check_finite=False).T
    most = 1e150 if kind == "multiquadric" else 1e308
    if not (np.abs(found) <= most).all():
        raise ValueError(
            f"inputs and centers must lie less than {most:.0e} widths from each other; the narrowest width is "
            f"{np.min(r if r.ndim == 1 else np.diag(r)):g}: give it in units of the inputs, or rescale them"
        )
    return np.asarray(found)


class RBFDictionary(Dictionary):
    """Radial functions around centres, optionally with linear inputs and a bias.

    Parameters
    ----------
    centers
        (M, D) centres, one radial function each; a 1-D array is read as M centres in one dimension.
    width
        r, one number or one per input dimension; left out where `metric` is given.
    kind
        'gaussian', 'multiquadric', 'inverse_multiquadric' or 'cauchy'.
    bias
        Add a column of ones, last.
    linear
        Add the D inputs themselves as columns, after the kernels; an array (D,) divides them.
    metric
        R of :math:`(x - c)^TR^{-1}(x - c)`, a (D, D) positive definite matrix in squared units of the inputs, such as
        a multiple of their covariance. Widths are its special case diag(r²).

    Examples
    --------
    >>> import numpy as np
    >>> D = RBFDictionary(np.array([0.0, 1.0]), width=1.0)
    >>> D.design([0.0, 1.0]).round(3).tolist()
    [[1.0, 0.368, 1.0], [0.368, 1.0, 1.0]]
    """

    def __init__(
        self,
        centers: npt.ArrayLike,
        width: npt.ArrayLike | None = None,
        kind: str = "gaussian",
        bias: bool = True,
        linear: bool | npt.ArrayLike = False,
        *,
        metric: npt.ArrayLike | None = None,
    ) -> None:
        self.centers = as_matrix(centers, "centers", allow_1d=True)
        self.kind = one_of(kind, "kind", KINDS)
        if metric is not None and width is not None:
            raise ValueError("give a width or a metric, not both: a metric of diag(r**2) is a width of r")
        #: R of a full metric; None with widths
        self.metric = None if metric is None else _as_metric(metric, self.centers.shape[1])
        r = as_positive_vector(
            width if self.metric is None else np.sqrt(np.diag(self.metric)), "width", self.centers.shape[1]
        )
        for one in r:
            check_magnitude(one[None], "width")
        check_magnitude(self.centers, "centers", _LARGEST)
        #: r; of a full metric the roots of its diagonal, the extent along each input
        self.width: float | FloatArray = float(np.asarray(width)) if width is not None and np.ndim(width) == 0 else r
        self._r = r if self.metric is None else np.linalg.cholesky(self.metric)
        self.bias = as_flag(bias, "bias")
        #: whether the inputs are columns, or what they are divided by as such
        self.slopes: bool | FloatArray = (
            as_positive_vector(linear, "linear", self.centers.shape[1])
            if np.ndim(linear)
            else as_flag(linear, "linear")
        )
        self.linear = not isinstance(self.slopes, bool) or self.slopes

    def columns(self, X: npt.ArrayLike) -> FloatArray:
        """Kernels in the order of the centres, then the inputs if `linear`."""
        return self._made(X, bias=False)

    def design(self, X: npt.ArrayLike) -> FloatArray:
        """Return the (N, M) design matrix at inputs `X`, the bias last; no temporary array of its size is made."""
        return self._made(X, bias=self.bias)

    @override
    def check_inputs(self, X: FloatArray) -> None:
        if X.shape[1] != self.centers.shape[1]:
            raise ValueError(f"X must have {self.centers.shape[1]} columns like the centers, got shape {X.shape}")

    @override
    def some_columns(self, X: FloatArray, indices: IntArray) -> FloatArray:
        m, origin = len(self.centers), self.centers.mean(axis=0)
        kernel = indices < m
        if kernel.all():
            return radial(self.kind, scaled_distances(X, self.centers[indices], self._r, origin))
        result = np.ones((len(X), len(indices)))
        if kernel.any():
            centres = self.centers[indices[kernel]]
            result[:, kernel] = radial(self.kind, scaled_distances(X, centres, self._r, origin))
        inputs = ~kernel & (indices < self.n_columns - int(self.bias))
        if inputs.any():
            result[:, inputs] = (X / self.slopes)[:, indices[inputs] - m]
        return result

    @override
    def ingredients(self, X: FloatArray) -> tuple[FloatArray, ...]:
        """Inputs, centres, widths, kind of function, and what is beside them."""
        return (
            X,
            self.centers,
            self._r,
            np.array([ord(letter) for letter in self.kind], float),
            np.array([self.bias, self.linear], float),
            *([] if isinstance(self.slopes, bool) else [self.slopes]),
        )

    @property
    @override
    def n_columns(self) -> int:
        return len(self.centers) + int(self.linear) * int(self.centers.shape[1]) + int(self.bias)

    def _made(self, X: npt.ArrayLike, bias: bool) -> FloatArray:
        X = as_matrix(X, "X", allow_1d=True)
        self.check_inputs(X)
        check_magnitude(X, "X", _LARGEST)
        m = len(self.centers)
        out = np.empty((len(X), self.n_columns - int(self.bias) + int(bias)))
        height = min(max(1, _BLOCK // m), len(X))
        # one working array for all blocks: fresh memory costs more than the arithmetic
        origin = _middle(self.centers)
        centres, z = _in_widths(self.centers, origin, self._r, self.kind), np.empty((height, m))
        for start in range(0, len(X), height):
            block = out[start : start + height, :m]
            inside = _in_widths(X[start : start + height], origin, self._r, self.kind)
            some = cdist(inside, centres, "sqeuclidean", out=z[: len(block)])
            radial(self.kind, some, work=some, out=block)
        if self.linear:
            out[:, m : m + X.shape[1]] = X / self.slopes  # True counts as one
        if bias:
            out[:, -1] = 1.0
        return out

    def column_names(self) -> list[str]:
        """Return names such as 'gaussian[3]' and 'x[0]'."""
        kernels = [f"{self.kind}[{i}]" for i in range(len(self.centers))]
        return kernels + ([f"x[{d}]" for d in range(self.centers.shape[1])] if self.linear else [])

    def __repr__(self) -> str:
        n, d = self.centers.shape
        scale = f"width={self.width}" if self.metric is None else "with a full metric"
        what = f"{n} {self.kind} functions in {d}-D, {scale}"
        return f"RBFDictionary({what}, bias={self.bias}, linear={self.linear})"


def _as_metric(value: npt.ArrayLike, n_inputs: int) -> FloatArray:
    """A symmetric positive definite matrix, checked."""
    matrix = as_matrix(value, "metric")
    if matrix.shape != (n_inputs, n_inputs):
        raise ValueError(f"metric must be {n_inputs} x {n_inputs}, one row per input, got shape {matrix.shape}")
    if not np.allclose(matrix, matrix.T, rtol=1e-10, atol=0.0):
        raise ValueError("metric must be symmetric: pass (R + R.T) / 2")
    values = np.linalg.eigvalsh(matrix)
    if not values[0] > 16.0 * np.finfo(float).eps * values[-1]:
        raise ValueError(
            f"metric must be positive definite, its eigenvalues lie between {values[0]:.1e} and {values[-1]:.1e}: "
            "combinations of inputs that hardly vary need a larger variance; add a little to the diagonal"
        )
    return matrix
