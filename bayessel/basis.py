r"""Dictionaries of basis functions: named columns with one method, ``design(X)``.

A radial dictionary evaluates :math:`h(x) = \varphi(z)` with the scaled squared distance
:math:`z = \sum_d (x_d - c_d)^2 / r_d^2` (Orr 1996, section 3.1):

=====================  ========================
gaussian               :math:`e^{-z}`
multiquadric           :math:`(1+z)^{1/2}`
inverse_multiquadric   :math:`(1+z)^{-1/2}`
cauchy                 :math:`(1+z)^{-1}`
=====================  ========================

The library has one width convention, r of :math:`e^{-d^2/r^2}`; :func:`width` converts the others to it.
Columns always come in the order kernels, linear inputs, user columns, and the bias (a column of ones) last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, override

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist

from bayessel._check import FloatArray, as_flag, as_matrix, as_positive, as_positive_vector, check_magnitude, one_of

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
    """Return z, the squared distances after dividing each input by its width."""
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
        found = (points - origin) / r
    most = 1e150 if kind == "multiquadric" else 1e308
    if not (np.abs(found) <= most).all():
        raise ValueError(
            f"inputs and centers must lie less than {most:.0e} widths from each other; the narrowest width is "
            f"{np.min(r):g}: give it in units of the inputs, or rescale them"
        )
    return np.asarray(found)


class Dictionary:
    """Columns of a design matrix. A subclass writes `columns`; joining and the bias come from here."""

    bias: bool = False

    def columns(self, X: FloatArray) -> FloatArray:
        """Every column but the bias, (N, n_columns - bias)."""
        raise TypeError(f"{type(self).__name__} must define columns(X)")

    def column_names(self) -> list[str]:
        """One name per column, the bias excluded."""
        raise TypeError(f"{type(self).__name__} must define column_names()")

    @property
    def names(self) -> list[str]:
        """One name per column of the design."""
        return [*self.column_names(), *(["bias"] if self.bias else [])]

    @property
    def n_columns(self) -> int:
        """Number of columns of the design, the bias included."""
        return len(self.column_names()) + int(self.bias)

    def design(self, X: npt.ArrayLike) -> FloatArray:
        """Return the (N, M) design matrix at inputs `X`, the bias last."""
        inputs = as_matrix(X, "X", allow_1d=True)
        body = self.columns(inputs)
        return np.hstack([body, np.ones((len(inputs), 1))]) if self.bias else body

    def __add__(self, other: Dictionary) -> JoinedDictionary:
        if not isinstance(other, Dictionary):
            return NotImplemented
        return JoinedDictionary(self, other)


class RBFDictionary(Dictionary):
    """Radial functions around centres, optionally with linear inputs and a bias.

    Parameters
    ----------
    centers
        (M, D) centres, one radial function each; a 1-D array is read as M centres in one dimension.
    width
        r, one number or one per input dimension.
    kind
        'gaussian', 'multiquadric', 'inverse_multiquadric' or 'cauchy'.
    bias
        Add a column of ones, last.
    linear
        Add the D inputs themselves as columns, after the kernels; an array (D,) divides them.

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
        width: npt.ArrayLike,
        kind: str = "gaussian",
        bias: bool = True,
        linear: bool | npt.ArrayLike = False,
    ) -> None:
        self.centers = as_matrix(centers, "centers", allow_1d=True)
        self.kind = one_of(kind, "kind", KINDS)
        r = as_positive_vector(width, "width", self.centers.shape[1])
        for one in r:
            check_magnitude(one[None], "width")
        check_magnitude(self.centers, "centers", _LARGEST)
        self.width: float | FloatArray = float(np.asarray(width)) if np.ndim(width) == 0 else r
        self._r = r
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

    @property
    @override
    def n_columns(self) -> int:
        return len(self.centers) + int(self.linear) * int(self.centers.shape[1]) + int(self.bias)

    def _made(self, X: npt.ArrayLike, bias: bool) -> FloatArray:
        X = as_matrix(X, "X", allow_1d=True)
        if X.shape[1] != self.centers.shape[1]:
            raise ValueError(f"X must have {self.centers.shape[1]} columns like the centers, got shape {X.shape}")
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
        what = f"{n} {self.kind} functions in {d}-D, width={self.width}"
        return f"RBFDictionary({what}, bias={self.bias}, linear={self.linear})"


class LazyDesign:
    """A design whose columns are made when they are looked at, for dictionaries too large to store.

    Parameters
    ----------
    dictionary
        The radial dictionary.
    X
        Inputs (N, D).

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(0.0, 1.0, 5)
    >>> design = LazyDesign(RBFDictionary(x, width=1.0), x)
    >>> design.shape, design.columns(np.array([0, 5])).shape
    ((5, 6), (5, 2))
    """

    def __init__(self, dictionary: RBFDictionary, X: npt.ArrayLike) -> None:
        if not isinstance(dictionary, RBFDictionary):
            raise TypeError(f"LazyDesign needs an RBFDictionary, got {type(dictionary).__name__}")
        self.dictionary = dictionary
        self.X = as_matrix(X, "X", allow_1d=True)
        if self.X.shape[1] != dictionary.centers.shape[1]:
            raise ValueError(
                f"X must have {dictionary.centers.shape[1]} columns like the centers, got shape {self.X.shape}"
            )
        self.shape: tuple[int, int] = (len(self.X), dictionary.n_columns)

    @property
    def ingredients(self) -> tuple[FloatArray, ...]:
        """Numbers that determine the design: inputs, centres, widths, kind of function, and what is beside them."""
        d = self.dictionary
        return (
            self.X,
            d.centers,
            d._r,
            np.array([ord(letter) for letter in d.kind], float),
            np.array([d.bias, d.linear], float),
            *([] if isinstance(d.slopes, bool) else [d.slopes]),
        )

    def columns(self, indices: Any) -> FloatArray:
        """Columns of the design at these numbers, (N, k)."""
        return self.rows(slice(None), indices)

    def rows(self, rows: Any, indices: Any) -> FloatArray:
        """A part of the design: these rows of these columns."""
        index = np.asarray(indices, dtype=np.intp)
        d, X = self.dictionary, self.X[rows]
        m = len(d.centers)
        kernel = index < m
        if kernel.all():
            return radial(d.kind, scaled_distances(X, d.centers[index], d._r, d.centers.mean(axis=0)))
        result = np.ones((len(X), len(index)))
        if kernel.any():
            centres = d.centers[index[kernel]]
            result[:, kernel] = radial(d.kind, scaled_distances(X, centres, d._r, d.centers.mean(axis=0)))
        inputs = ~kernel & (index < self.shape[1] - int(d.bias))
        if inputs.any():
            result[:, inputs] = (X / d.slopes)[:, index[inputs] - m]
        return result


def design_of(dictionary: RBFDictionary, X: FloatArray, stored: int) -> FloatArray | LazyDesign:
    """The design at inputs (N, D), made column by column where it has more than so many entries."""
    large = len(X) * dictionary.n_columns > stored
    return LazyDesign(dictionary, X) if large else dictionary.design(X)


class UserColumns(Dictionary):
    """Columns of your own: any callable X -> (N, k), or a list of callables X -> (N,).

    Parameters
    ----------
    functions
        One callable returning an (N, k) or (N,) array, or a sequence of callables returning (N,) each.
    names
        One name per column.
    bias
        Add a column of ones, last.

    Examples
    --------
    >>> import numpy as np
    >>> D = UserColumns([lambda X: X[:, 0] ** 2, lambda X: np.sin(X[:, 0])], ["square", "sine"])
    >>> D.design([2.0]).round(4).tolist()
    [[4.0, 0.9093]]
    """

    def __init__(
        self,
        functions: Callable[[FloatArray], Any] | Sequence[Callable[[FloatArray], Any]],
        names: Sequence[str],
        bias: bool = False,
    ) -> None:
        many = not callable(functions)
        given: Any = [functions] if callable(functions) else functions
        if not isinstance(given, Sequence) or not given or not all(callable(f) for f in given):
            raise TypeError(
                "functions must be a callable X -> (N, k) or a non-empty list of callables X -> (N,), "
                f"got {functions!r}"
            )
        self._functions: list[Callable[[FloatArray], Any]] = list(given)
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise TypeError(f"names must be a list with one name per column, got {names!r}")
        self._names = [str(n) for n in names]
        if not self._names or (many and len(self._names) != len(self._functions)):
            raise ValueError(f"give one name per column: {len(self._functions)} functions, {len(self._names)} names")
        self.bias = as_flag(bias, "bias")

    def columns(self, X: FloatArray) -> FloatArray:
        """Evaluate the user's functions and check their shape."""
        parts = []
        for function in self._functions:
            parts.append(as_matrix(function(X), "the user's columns", allow_1d=True))
            if len(parts[-1]) != len(X):
                raise ValueError(
                    f"a user's column must have one value per row: {len(X)} rows, got shape {parts[-1].shape}"
                )
        body = np.hstack(parts)
        if body.shape[1] != len(self._names):
            raise ValueError(f"the functions return {body.shape[1]} columns but {len(self._names)} names were given")
        return body

    def column_names(self) -> list[str]:
        """Return the names given by the user."""
        return list(self._names)


class JoinedDictionary(Dictionary):
    """The columns of several dictionaries side by side; one bias, last, if any of them has one."""

    def __init__(self, *parts: Dictionary) -> None:
        self.parts: list[Dictionary] = []
        for part in parts:
            self.parts.extend(part.parts if isinstance(part, JoinedDictionary) else [part])
        self.bias = any(part.bias for part in self.parts)

    def columns(self, X: FloatArray) -> FloatArray:
        """Columns of every part in order."""
        return np.hstack([part.columns(X) for part in self.parts])

    def column_names(self) -> list[str]:
        """Names of every part in order."""
        return [name for part in self.parts for name in part.column_names()]
