"""One fit of many: chains on one of many data sets, with everything compiled before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from time import perf_counter
from typing import Any

import numpy as np
import pymc as pm

from bayessel.chains.verdict import Judgement, judged_arrays
from bayessel.samplers.run.closing import MOST, divergences, unidentified
from bayessel.samplers.run.drawn_blocks import DrawnBlocks
from bayessel.samplers.run.kernel import Array, Kernel, Position
from bayessel.samplers.run.result import Finisher
from bayessel.samplers.run.start import Starts, ValuesByName
from bayessel.work.unit import Answer, perform

#: statistics that are kept draw by draw
KEPT = ("lp", "diverging")


@dataclass
class DataFit:
    """What came of one data set: draws (chain, draw, …) by name, statistics, and numbers of the whole."""

    posterior: dict[str, Array] = field(default_factory=dict)
    stats: dict[str, Array] = field(default_factory=dict)
    row: dict[str, Any] = field(default_factory=dict)


class DataFits:
    """A model with places for data, compiled once; called with data it samples.

    Parameters
    ----------
    kernel
        The steps; they read data from the places whenever a chain begins.
    starts
        Makes starting points.
    finisher
        Computes the variables that are kept.
    places : mapping of str to shared variable
        Where data are put.
    chains : int
        Chains of each fit.
    """

    def __init__(
        self, kernel: Kernel, starts: Starts, finisher: Finisher, places: Mapping[str, Any], chains: int
    ) -> None:
        self.kernel, self._starts, self._finisher, self._places = kernel, starts, finisher, places
        self._chains = chains
        self._shapes = self._seen()

    def begin(self, data: Mapping[str, Array], seed: int) -> list[Position]:
        """Put data in their places, and chains where they start: those of `bayessel.sample` with this seed."""
        for name, value in data.items():
            self._places[name].set_value(value, borrow=True)

        def rng(purpose: int, chain: int) -> np.random.Generator:
            return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(purpose, chain)))

        points = self._starts([rng(0, chain) for chain in range(self._chains)])
        if (shapes := self._seen()) != self._shapes:
            self._finisher.data_changed(points[0])
            self._shapes = shapes
        return [self.kernel.begin(chain, point, rng(1, chain)) for chain, point in enumerate(points)]

    def __call__(self, data: Mapping[str, Array], seed: int) -> DataFit:
        """Sample given data; what goes wrong is said in the row, and other data sets go on."""
        began = perf_counter()
        try:
            fit = self._sampled(data, seed)
        except Exception as error:
            fit = DataFit(row={"status": "failed", "reason": f"{type(error).__name__}: {error}"})
        finally:
            self.kernel.restore()
        fit.row |= {"seed": seed, "seconds": perf_counter() - began}
        return fit

    def _sampled(self, data: Mapping[str, Array], seed: int) -> DataFit:
        positions = self.begin(data, seed)
        tune, total = self.kernel.tune, self.kernel.tune + self.kernel.draws
        book = DrawnBlocks([[] for _ in positions], positions)
        for position in positions:
            book.enter(self.kernel.run(position, total, inf))
        draws, stats = book.arrays(tune, total)
        posterior, _, density = self._finisher(draws)
        judgeable = {k: v for k, v in posterior.items() if k not in unidentified(self.kernel)}
        found = _judged(judgeable, stats, (len(positions), self.kernel.draws))
        table = found.table
        row = {
            "status": "complete",
            "verdict": found.verdict,
            "problems": " ".join(one.kind for one in found.problems),
            "largest_r_hat": float(table["r_hat"].max()),
            "smallest_ess_bulk": float(table["ess_bulk"].min()),
            "smallest_ess_tail": float(table["ess_tail"].min()),
            "divergences": divergences(stats),
            "n_gradient_evaluations": book.gradients,
        }
        return DataFit(posterior, {k: v for k, v in {**density, **stats}.items() if k in KEPT}, row)

    def _seen(self) -> list[tuple[int, ...]]:
        return [place.get_value(borrow=True).shape for place in self._places.values()]


def compiled_fits(
    model: pm.Model,
    kernel: Kernel,
    places: Mapping[str, Any],
    calls: Sequence[tuple[Mapping[str, Array], int]],
    chains: int,
    initvals: ValuesByName | None,
    names: Sequence[str],
) -> DataFits:
    """Compile everything on the first data set that can be sampled."""
    starts = Starts(model, initvals, chains)
    pattern = {name: np.asarray(value) for name, value in model.initial_point(0).items()}
    finisher = Finisher(model, pattern, 0, False, "lp" not in kernel.statistics, names)
    fits = DataFits(kernel, starts, finisher, places, chains)
    reason: Exception | None = None
    for data, seed in calls[:5]:
        try:
            position: Position = fits.begin(data, seed)[0]
            kernel.rehearse(position)
            return fits
        except (ValueError, ArithmeticError, np.linalg.LinAlgError, pm.exceptions.SamplingError) as error:
            reason = reason or error
        finally:
            kernel.restore()
    raise ValueError(f"none of the first data sets can be sampled: {reason}") from reason


class FitService:
    """What a worker process does with a message: the arguments of a `DataFits` that it has."""

    def __init__(self, fits: DataFits) -> None:
        self._fits = fits

    def __call__(self, call: tuple[object, Sequence[Any]]) -> Answer:
        """Sample; the function of the call is that of the process that sent it."""
        return perform(self._fits, tuple(call[1]))


def of_the_service() -> None:
    """Stands for the `DataFits` in messages."""


def _judged(posterior: Mapping[str, Array], stats: Mapping[str, Array], size: tuple[int, int]) -> Judgement:
    arrays = {
        name: np.asarray(value.reshape(*value.shape[:2], int(np.prod(value.shape[2:]))), dtype=np.float64)
        for name, value in posterior.items()
        if value.dtype.kind in "biuf"
    }
    seen = {name: value for name, value in stats.items() if value.dtype.kind in "biuf"}
    return judged_arrays(arrays, size, lambda name, k: f"{name}[{k}]", seen, MOST)
