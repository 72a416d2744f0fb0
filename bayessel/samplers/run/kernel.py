"""Several step methods as one transition, and a block of its draws.

Between two blocks a chain is nothing but its `Position`: where it is, how many draws it has made, and the sampling
state of its steps. A block begins by giving the steps that state, so it does not matter which process runs it, what
ran there before, or where the chain was cut.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from pymc.step_methods import BlockedStep

from bayessel._pymc import PopulationArrayStepShared, flatten_steps
from bayessel.samplers.run.step_states import from_tree, to_tree
from bayessel.work.json_values import Tree

if TYPE_CHECKING:
    from bayessel.samplers.step_choice import Step

Array = npt.NDArray[Any]
Point = dict[str, Array]

#: Stats that say nothing of a draw: PyMC's tuning flag, which the driver knows; warnings, which are objects; and a
#: count over all draws so far that PyMC keeps outside the sampling state (`diverging` says the same, draw by draw).
_NOT_KEPT = ("tune", "in_warmup", "warning", "divergences")

#: PyMC's names inside a step, and in results.
_RENAMED = {
    "model_logp": "lp",
    "mean_tree_accept": "acceptance_rate",
    "depth": "tree_depth",
    "tree_size": "n_steps",
}


@dataclass
class Position:
    """Everything the future of a chain depends on: `done` draws (tuning included), the point, the steps' state."""

    chain: int
    done: int
    point: Point
    state: Tree


@dataclass
class Block:
    """Some consecutive draws of a chain, and where they lead.

    Attributes
    ----------
    chain, start, count : int
        Draws ``start … start + count - 1`` of the chain, counted from the first draw of tuning.
    draws : mapping of str to array (kept, …)
        Value variables, unconstrained; draws of tuning are not kept.
    stats : mapping of str to array (count, …)
        Sampler statistics, of tuning too.
    after : Position
        The chain after the block.
    seconds : list of float
        Time spent in each step method.
    elapsed : float
        Time from begin to end.
    dropped : tuple of str
        Statistics that are no arrays of one shape.
    """

    chain: int
    start: int
    count: int
    draws: dict[str, Array]
    stats: dict[str, Array]
    after: Position
    seconds: list[float]
    elapsed: float
    dropped: tuple[str, ...] = ()


class _Made(NamedTuple):
    """Draws of a block: where they lead, those to keep by name in parts, and of each step the statistics."""

    point: Point
    done: int
    rows: dict[str, list[Array]]
    stats: list[dict[str, Array | None]]
    seconds: list[float]


class Kernel:
    """The steps of a model, applied one after the other.

    Parameters
    ----------
    steps : sequence of PyMC step methods
        `CompoundStep` is taken apart, so that time and statistics are known for each step.
    tune, draws : int
        Lengths of a chain, as the steps get them; `draws` must not change their tuning.
    """

    def __init__(self, steps: Sequence[Step], tune: int, draws: int) -> None:
        self.steps: list[BlockedStep] = [leaf for step in steps for leaf in flatten_steps(step)]
        self.tune, self.draws = tune, draws
        for step in self.steps:
            if isinstance(step, PopulationArrayStepShared):
                raise ValueError(
                    f"{type(step).__name__} moves all chains together and cannot run in chains of its own; "
                    "use pm.DEMetropolisZ, which learns from its own past"
                )
        self._untouched = [step.sampling_state for step in self.steps]
        self.names = [str(getattr(step, "name", type(step).__name__)) for step in self.steps]
        self._columns = _stat_columns(self.steps, self.names)
        self._dtypes = [
            {name: np.dtype(dtype) for name, (dtype, _) in step.stats_dtypes_shapes.items()} for step in self.steps
        ]

    def begin(self, chain: int, point: Point, rng: np.random.Generator) -> Position:
        """Return the first position of a chain."""
        for step, state, own in zip(self.steps, self._untouched, rng.spawn(len(self.steps)), strict=True):
            step.sampling_state = state
            # our steps reset everything in setup_chain; PyMC's need to be told
            if self.tune > 0 and hasattr(step, "reset_tuning"):
                step.reset_tuning()
            step.setup_chain(own, self.tune, self.draws)
        return Position(chain, 0, {name: np.array(value) for name, value in point.items()}, self._state())

    @property
    def statistics(self) -> list[str]:
        """Names of the statistics."""
        return list(self._columns)

    def shared_statistics(self) -> dict[str, list[str]]:
        """Statistics with an axis over steps, and what the steps along it move."""
        return {
            name: [", ".join(str(one.name) for one in self.steps[i].vars) for i, _ in sources]
            for name, sources in self._columns.items()
            if len(sources) > 1
        }

    def restore(self) -> None:
        """Give the steps back as they came."""
        for step, state in zip(self.steps, self._untouched, strict=True):
            step.sampling_state = state

    def rehearse(self, position: Position) -> None:
        """Make one draw and forget it: whatever compiles at its first call has then been compiled."""
        point = self._resume(position)
        if position.done >= self.tune:
            self._stop_tuning()
        for step in self.steps:
            point, _ = step.step(point)

    def run(self, position: Position, until: int, seconds: float) -> Block:
        """Make draws until the chain has `until` of them, or the seconds are over; one at least."""
        began = perf_counter()
        point = self._resume(position)
        make = self._together if len(self.steps) == 1 and _makes_many(self.steps[0]) else self._in_turn
        made = make(point, position.done, until, began + seconds)
        columns, dropped = self._gather(made.stats)
        after = {name: np.array(made.point[name]) for name in position.point}
        return Block(
            chain=position.chain,
            start=position.done,
            count=made.done - position.done,
            draws={
                name: np.concatenate(made.rows[name])
                if made.rows.get(name)
                else np.empty((0, *like.shape), dtype=like.dtype)
                for name, like in position.point.items()
            },
            stats=columns,
            after=Position(position.chain, made.done, after, self._state()),
            seconds=made.seconds,
            elapsed=perf_counter() - began,
            dropped=dropped,
        )

    def _in_turn(self, point: Point, done: int, until: int, end: float) -> _Made:
        """Draws of one step after the other."""
        kept: dict[str, list[Array]] = {name: [] for name in point}
        stats: list[list[Mapping[str, Any]]] = [[] for _ in self.steps]
        spent, clock = [0.0] * len(self.steps), perf_counter()
        while done < until:
            if done == self.tune:
                self._stop_tuning()
            for i, step in enumerate(self.steps):
                before = clock
                point, said = step.step(point)
                stats[i].append(said[0] if said else {})
                clock = perf_counter()
                spent[i] += clock - before
            done += 1
            if done > self.tune:
                for name, rows in kept.items():
                    rows.append(np.array(point[name])[None])
            if clock >= end:
                break
            clock = perf_counter()
        columns = [
            {key: _column([said.get(key) for said in one], dtype) for key, dtype in dtypes.items()}
            for one, dtypes in zip(stats, self._dtypes, strict=True)
        ]
        return _Made(point, done, kept, columns, spent)

    def _together(self, point: Point, done: int, until: int, end: float) -> _Made:
        """Draws of the only step, which makes many at a time."""
        kept: dict[str, list[Array]] = {name: [] for name in point}
        stats: dict[str, list[Array]] = {}
        began = perf_counter()
        while done < until:
            if done == self.tune:
                self._stop_tuning()
            stage = min(self.tune, until) if done < self.tune else until
            point, draws, said = self.steps[0].draws(point, stage - done, end - perf_counter())
            done += len(next(iter(said.values())))
            for key, part in said.items():
                stats.setdefault(key, []).append(part)
            if done > self.tune:
                for name, parts in kept.items():
                    parts.append(draws[name])
            if perf_counter() >= end:
                break
        columns: dict[str, Array | None] = {key: np.concatenate(parts) for key, parts in stats.items()}
        return _Made(point, done, kept, [columns], [perf_counter() - began])

    def _resume(self, position: Position) -> Point:
        for step, tree in zip(self.steps, position.state, strict=True):
            step.sampling_state = from_tree(tree, step.sampling_state, type(step).__name__)
        return {name: value.copy() for name, value in position.point.items()}

    def _state(self) -> Tree:
        return [to_tree(step.sampling_state, type(step).__name__) for step in self.steps]

    def _stop_tuning(self) -> None:
        for step in self.steps:
            step.stop_tuning()

    def _gather(self, stats: list[dict[str, Array | None]]) -> tuple[dict[str, Array], tuple[str, ...]]:
        """Arrange the statistics of a block under their unique names."""
        found: dict[str, Array] = {}
        dropped = []
        for name, sources in self._columns.items():
            parts = [part for i, key in sources if (part := stats[i][key]) is not None]
            if len(parts) < len(sources):
                dropped.append(name)
            else:
                found[name] = parts[0] if len(parts) == 1 else np.stack(parts, axis=1)
        return found, tuple(dropped)


def _makes_many(step: BlockedStep) -> bool:
    """Whether a step makes many draws at a time, by ``draws(point, count, seconds)``."""
    return bool(getattr(step, "makes_many", False))


def _stat_columns(steps: Sequence[BlockedStep], names: Sequence[str]) -> dict[str, list[tuple[int, str]]]:
    """Unique name -> the (step, statistic) pairs it comes from.

    A name that only steps of one class give becomes one statistic with an axis over these steps, as PyMC has it. Where
    different classes give the same name, the last keeps it plain and the others put their own name before it: a
    model's HMC step stands last, and its `diverging` and `energy` are looked for under these names.
    """
    sources: dict[str, list[tuple[int, str]]] = {}
    for i, step in enumerate(steps):
        for key in step.stats_dtypes_shapes:
            # the log density after the last step only is that of the stored draw
            if key not in _NOT_KEPT and not (key == "model_logp" and i < len(steps) - 1):
                sources.setdefault(_RENAMED.get(key, key), []).append((i, key))
    columns: dict[str, list[tuple[int, str]]] = {}
    for plain, givers in sources.items():
        last = type(steps[givers[-1][0]])
        for i, key in givers:
            name = plain if type(steps[i]) is last else f"{names[i]}_{plain}"
            columns.setdefault(name, []).append((i, key))
    return columns


def _column(values: list[Any], dtype: np.dtype[Any]) -> Array | None:
    """Values of one statistic as an array; a value that is missing is NaN, or 0 among integers and booleans."""
    if dtype.kind == "O":
        if any(value is None for value in values):
            return None
        try:
            column = np.asarray(values)
        except ValueError:
            return None
        return column if column.dtype.kind in "biuf" else None
    if any(value is None for value in values):
        values = [(np.nan if dtype.kind == "f" else 0) if value is None else value for value in values]
    return np.asarray(values, dtype=dtype)
