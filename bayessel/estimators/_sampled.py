"""Estimators with chains that stop on time and are gone on with."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from sklearn.utils.validation import check_is_fitted

from bayessel._check import as_count
from bayessel.estimators import _chains
from bayessel.fit import Status


class Sampled:
    """Base of estimators that may sample: what a run is, and how it goes on; not for direct use."""

    #: parameters that chains which go on cannot change
    _of_chains: ClassVar[tuple[str, ...]]
    trace_: Any
    draws: Any

    def _sample(self, draws: int, seconds: float | None) -> None:
        """Run the chains, or go on with them, into `trace_` and `_archive`."""
        raise NotImplementedError

    def _finish(self) -> None:
        """Choose the states that predict, and say how it went."""
        raise NotImplementedError

    def _no_chains_yet(self, samples: bool) -> None:
        """Nothing is drawn; the settings of chains that will be, or never will."""
        self.trace_ = None
        self._archive: bytes | None = None
        self._samples = samples
        self._chain_settings = {name: getattr(self, name) for name in self._of_chains}

    def _draws_in_the_end(self) -> int:
        """Draws per chain that `continue_fit` goes on to, if not told otherwise."""
        return as_count(self.draws, "draws")

    def continue_fit(self, draws: int | None = None, time_budget: float | str | None = None) -> Self:
        """Go on with the chains of a fit with ``inference="mc"``, also one that was pickled.

        Parameters
        ----------
        draws
            Draws per chain in the end, those there are included; never fewer than these. None: as many as the
            estimator was made for.
        time_budget
            For this call. None: until all are drawn.

        Notes
        -----
        However often it was stopped, a run has the draws of one that never was. So the settings of the chains must be
        those of the fit.
        """
        check_is_fitted(self)
        if not self._samples:
            raise ValueError("continue_fit goes on with chains; this fit has none: use inference='mc'")
        seconds = None if time_budget is None else _chains.as_seconds(time_budget)
        for name, then in self._chain_settings.items():
            if (now := getattr(self, name)) != then:
                raise ValueError(
                    f"continue_fit goes on with the settings of fit: {name} was {then!r}, is now {now!r}; set it back, "
                    "or fit again"
                )
        draws = self._draws_in_the_end() if draws is None else as_count(draws, "draws")
        there = 0 if self.trace_ is None else self.trace_["posterior"].sizes["draw"]
        if draws < there:
            raise ValueError(
                f"there are {there} draws per chain, and draws={draws} counts them in: pass at least {there}, more to "
                "go on"
            )
        self._sample(draws, seconds)
        self._finish()
        return self

    def _how_it_ended(self) -> list[Status]:
        """What is to be said of a run that is not complete."""
        how = self.trace_.attrs["status"]
        if how == "complete":
            return []
        return [Status.INTERRUPTED if how == "interrupted" else Status.TIME_BUDGET]
