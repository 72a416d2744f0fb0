"""What a Gaussian process with uncertain hyperparameters shows of their mode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bayessel.fit import Evidence, Fit
from bayessel.gp.map_result import GPFit
from bayessel.gp.mode_fit import ModeFit


@dataclass(frozen=True, eq=False)
class AroundMode(Fit):
    """A fit that predicts with several states of the hyperparameters, and was begun at their mode.

    Attributes
    ----------
    mode : ModeFit
        The fit at the mode; evidence (type II), optima and history are its.
    """

    mode: ModeFit = field(repr=False)

    @property
    def n_rows(self) -> int:
        """Rows fitted to."""
        return self.mode.n_rows

    @property
    def fingerprint(self) -> str:
        """Name of inputs and target."""
        return self.mode.fingerprint

    @property
    def target_fingerprint(self) -> str:
        """Name of the target."""
        return self.mode.target_fingerprint

    @property
    def evidence(self) -> Evidence:
        """log p(t|θ) at the mode, of kind "type2" or of an approximation of that; see `model_evidence`."""
        return self.mode.evidence

    @property
    def model_evidence(self) -> Evidence:
        """log p(t) by Laplace's approximation."""
        return self.mode.model_evidence

    @property
    def optima(self) -> tuple[Any, ...]:
        """Local maxima of the posterior density."""
        return self.mode.optima

    @property
    def history(self) -> tuple[Mapping[str, Any], ...]:
        """Evaluations of the search for the mode."""
        return self.mode.history


@dataclass(frozen=True, eq=False)
class AroundProcess(AroundMode):
    """The same of a process with normal noise, whose mean is linear in the targets."""

    mode: GPFit = field(repr=False)

    @property
    def effective_parameters(self) -> float:
        """Well-determined parameters at the mode."""
        return self.mode.gamma

    @property
    def sum_squares(self) -> float:
        """Squared residuals of the mean at the mode."""
        return self.mode.sum_squares
