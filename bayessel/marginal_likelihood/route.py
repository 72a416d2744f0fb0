"""One way to an evidence, what it came to, and whether it believes itself."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Route:
    """What one method says of an evidence.

    Attributes
    ----------
    name : str
    value : float
        Log probability of the data in nats; NaN where the method found none.
    error : float
        Its Monte Carlo standard error, or that of its arithmetic; infinite where nothing is known of it.
    reliable : bool
        Whether the method's own diagnostics say that the error can be believed. An error of nothing is never reliable.
    reason : str
        Why it is, or is not.
    calls : int
        Evaluations of the density, with or without gradient.
    seconds : float
        Of the processor, compiling not counted.
    is_exact : bool
        Closed forms, and sums over grids that have converged: nothing is random.
    """

    name: str
    value: float
    error: float
    reliable: bool
    reason: str
    calls: int = 0
    seconds: float = 0.0
    is_exact: bool = False

    @classmethod
    def missing(cls, name: str, reason: str, calls: int = 0) -> Route:
        """A route that led nowhere, or was not taken."""
        return cls(name, float("nan"), float("inf"), False, reason, calls)

    def timed(self, seconds: float) -> Route:
        """The same, with its seconds."""
        return replace(self, seconds=seconds)
