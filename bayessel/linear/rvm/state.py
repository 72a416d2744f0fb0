r"""A point of the search: which columns are in the model, at which precisions, and what follows from them.

Everything is scaled: columns to unit length, the target to unit spread. With :math:`X = \Phi\,(\beta/A)^{1/2}` and
:math:`R^TR = I + X^TX`, the scaled posterior covariance is :math:`V = R^{-1}R^{-T}`, so that
:math:`V_{ij} = (\alpha_i\alpha_j)^{1/2}\Sigma_{ij}`, and :math:`v_i = \alpha_i^{1/2}\mu_i`. In these units the slopes
of the log evidence are sums of squares: :math:`\partial L/\partial\ln\alpha_i = \tfrac12(1 - V_{ii} - v_i^2)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray, IntArray

if TYPE_CHECKING:
    from bayessel.linear.rvm.reestimation import Reestimation


@dataclass(frozen=True, slots=True, eq=False)
class RVMState:
    """Columns `active` at log precisions `a`, noise at log precision `b`.

    Attributes
    ----------
    log_evidence : float
        In scaled units.
    Ri : (k, k) array
        Inverse of the upper triangular R.
    V, v : arrays
        Scaled covariance and mean of the weights.
    scale : (k,) array
        (beta / alpha)^(1/2).
    w : (k,) array
        v / beta^(1/2): weights of the scaled columns X.
    sum_squares : float
        |t - Phi mu|^2.
    extra : Any
        What a form keeps for itself.
    """

    active: IntArray
    a: FloatArray
    b: float
    log_evidence: float
    Ri: FloatArray
    V: FloatArray
    v: FloatArray
    scale: FloatArray
    w: FloatArray
    sum_squares: float
    extra: Any = None

    @property
    def size(self) -> int:
        """Number of columns in the model."""
        return len(self.active)


@dataclass(frozen=True, slots=True, eq=False)
class RVMScores:
    r"""What every candidate would do: :math:`S_m = \phi_m^TC^{-1}\phi_m`, :math:`Q_m = \phi_m^TC^{-1}t`.

    `T` (k, P) holds :math:`R^{-T}X^T\phi_m`, from which the couplings :math:`\phi_m^TC^{-1}\phi_j` follow. Where S is
    so small a share of :math:`\beta\|\phi_m\|^2` that only rounding is left of it, `collinear` is set: such a
    candidate lies in the span of the model.
    """

    S: FloatArray
    Q: FloatArray
    T: FloatArray
    collinear: npt.NDArray[np.bool_]


class FewColumns(NamedTuple):
    """Some columns by themselves, in orthogonal coordinates or as inner products alone.

    Attributes
    ----------
    W : (k, r) array
        Orthogonal coordinates, one column of the dictionary per row; r = 0 for inner products.
    G, c : (k, k), (k,) arrays
        Inner products with each other, and with the target where there are no coordinates.
    z : (r,) array
        Coordinates of the target.
    squares : float
        Squared length of the target, or of what lies outside the coordinates.
    stacked_from : float
        Trace of X^T X from which I + X^T X must not be formed.
    """

    W: FloatArray
    G: FloatArray
    c: FloatArray
    z: FloatArray
    squares: float
    stacked_from: float


class DictionaryForm(Protocol):
    """A way to hold the dictionary: as orthogonal coordinates (accurate) or as inner products (cheap)."""

    #: that the noise counts
    n_rows: float
    n_columns: int
    #: columns that are not zero
    candidates: IntArray
    #: largest number of columns that compete at once in a full start
    heat: int

    def solve(self, active: IntArray, a: FloatArray, b: float) -> RVMState:
        """Posterior and evidence at given columns and precisions."""
        ...

    def score(self, state: RVMState) -> RVMScores:
        """S and Q of every candidate."""
        ...

    def few(self, active: IntArray) -> FewColumns | None:
        """What a compiled ascent needs of these columns; None where calls of LAPACK are faster."""
        ...

    def prefetch(self, likely: IntArray) -> None:
        """Be told which candidates may be asked for next, the first of them now."""
        ...

    def vector(self, m: int) -> FloatArray:
        """Candidate m as a unit vector, in some coordinates."""
        ...

    def full_start(
        self, candidates: IntArray, contest: Reestimation, b: float | None
    ) -> tuple[IntArray, FloatArray, float]:
        """Columns and precisions after a contest of all these columns."""
        ...
