"""What searches for widths share: inputs, target and centres, the units of the widths, and the result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray, as_flag, as_matrix, as_target, check_magnitude, one_of
from bayessel._fingerprint import fingerprint
from bayessel._row_weights import RowWeights, deviation
from bayessel.basis import KINDS, RBFDictionary
from bayessel.fit import Status, worst
from bayessel.linear.rvm import RVMFit
from bayessel.linear.type2 import LinearFit
from bayessel.linear.widths.result import WidthFit, WidthOptimum


class WidthSearch:
    """Data whose widths are searched as logarithms in units of a typical spread of all inputs, or of each input's.

    Attributes
    ----------
    weights : RowWeights or None
        Counts and noise levels of the rows, where they differ.
    scale : (D,) array
        Those units.
    n_widths : int
        1 where all inputs share a width, else D.
    """

    def __init__(
        self,
        X: npt.ArrayLike,
        t: npt.ArrayLike,
        centers: npt.ArrayLike | None,
        kind: str,
        bias: bool,
        shared: bool,
        noise_std: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> None:
        self.X = as_matrix(X, "X", allow_1d=True)
        self.t = as_target(t, len(self.X))
        self.weights = RowWeights.of(len(self.X), noise_std, sample_weight)
        check_magnitude(self.X, "X")
        check_magnitude(self.t, "t")
        self.centers = self.X if centers is None else as_matrix(centers, "centers", allow_1d=True)
        if self.centers.shape[1] != self.X.shape[1]:
            raise ValueError(f"centers must have the {self.X.shape[1]} columns of X, got shape {self.centers.shape}")
        self.kind = one_of(kind, "kind", KINDS)
        self.bias, self.shared = bias, as_flag(shared, "shared")
        spread = (
            np.array([deviation(column, self.weights) for column in self.X.T]) if self.weights else self.X.std(axis=0)
        )
        spread = np.where(spread > 0.0, spread, 1.0)
        self.scale = np.full_like(spread, np.sqrt(np.mean(spread**2))) if self.shared else spread
        self.n_widths = 1 if self.shared else len(spread)

    def widths(self, u: FloatArray) -> FloatArray:
        """Widths of all inputs."""
        return np.asarray(np.exp(u) * self.scale)

    def dictionary(self, u: FloatArray) -> RBFDictionary:
        """The functions at these widths."""
        return RBFDictionary(self.centers, self.widths(u), kind=self.kind, bias=self.bias)

    def result(
        self,
        found: Sequence[tuple[FloatArray, LinearFit | RVMFit]],
        notes: Iterable[Status],
        history: tuple[Mapping[str, float], ...],
        seconds: float,
    ) -> WidthFit:
        """The best of the optima found (log widths, and the fit there), which come highest first."""
        u, fit = found[0]
        optima = tuple(WidthOptimum(self.widths(v)[: self.n_widths], at.n_basis, at.log_evidence) for v, at in found)
        notes = tuple(dict.fromkeys((*notes, *fit.notes)))
        return WidthFit(
            widths=optima[0].widths,
            fit=fit,
            dictionary=self.dictionary(u),
            optima=optima,
            history=history,
            status=worst(notes),
            notes=notes,
            evidence=replace(fit.evidence, maximised=(*fit.evidence.maximised, "widths")),
            n_rows=len(self.t),
            fingerprint=fingerprint(self.X, self.t),
            target_fingerprint=fingerprint(self.t),
            seconds=seconds,
        )
