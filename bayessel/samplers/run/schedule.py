"""Who works on what, and when it ends: blocks for the chain that lags most, until all are long enough or time is up."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from types import FrameType
from typing import Any

from bayessel.samplers.run.kernel import Block, Position
from bayessel.samplers.run.workers import Task, Workers

#: Seconds of work between two messages: long against the message, short against a person's patience and a crash.
BLOCK = 0.3
#: Near the end of the time budget blocks are as long as lets every chain have two of them, but not shorter than this.
SHORTEST = 0.01
#: A draw that would end later than the budget by more than this part of it is not begun.
OVERTIME = 0.03


@dataclass
class Outcome:
    """How the sampling ended."""

    positions: list[Position]
    seconds: float = 0.0
    interrupted: bool = False
    out_of_time: bool = False


def run(
    workers: Workers,
    positions: Sequence[Position],
    total: int,
    budget: float | None,
    record: Callable[[Block], None],
) -> Outcome:
    """Run all chains to `total` draws; what is done when the budget ends, or the user says so, is kept.

    Each block goes to the chain with the fewest draws, so chains stay equally long with any number of workers. A
    worker gets its next block before the last one is recorded: the disk does not keep it waiting.
    """
    outcome = Outcome(list(positions))
    clock = _Clock(budget)
    busy: set[int] = set()
    pace: dict[int, float] = {}

    def hand_out() -> None:
        """Give each idle worker a block of the chain that lags most."""
        left = clock.left()
        while workers.idle and left > 0.0 and not interrupts.count:
            waiting = [one for one in outcome.positions if one.chain not in busy and one.done < total]
            if not waiting:
                return
            chosen = min(waiting, key=lambda one: (one.done, one.chain))
            if pace.get(chosen.chain, 0.0) > left + OVERTIME * (budget or 0.0):
                return
            share = 0.5 * left * workers.size / len(outcome.positions)
            workers.submit(Task(chosen, total, min(BLOCK, max(SHORTEST, share), left)))
            busy.add(chosen.chain)

    with _interrupts(workers) as interrupts:
        hand_out()
        while busy:
            left = clock.left()
            if left <= 0.0:
                workers.stop()
            try:
                blocks = workers.collect(left if 0.0 < left < float("inf") else None)
            except KeyboardInterrupt:  # raised by a step's own code in this process: its block is lost, no more
                interrupts.count += 1
                busy.clear()
                break
            for block in blocks:
                busy.discard(block.chain)
                outcome.positions[block.chain] = block.after
                pace[block.chain] = block.elapsed / block.count
            hand_out()
            for block in blocks:
                record(block)
    outcome.seconds = clock.spent()
    unfinished = any(position.done < total for position in outcome.positions)
    outcome.interrupted = unfinished and interrupts.count > 0
    outcome.out_of_time = unfinished and not outcome.interrupted
    return outcome


class _Clock:
    """Time spent, and left of the budget."""

    def __init__(self, budget: float | None) -> None:
        self._budget, self._began = budget, monotonic()

    def spent(self) -> float:
        return monotonic() - self._began

    def left(self) -> float:
        return float("inf") if self._budget is None else self._budget - self.spent()


@dataclass
class _Interrupts:
    count: int = 0


@contextmanager
def _interrupts(workers: Workers) -> Any:
    """Count Ctrl-C instead of raising it: the first lets running blocks end, the third raises after all."""
    seen = _Interrupts()
    standing = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or standing in (None, signal.SIG_IGN):
        yield seen
        return

    def handle(number: int, frame: FrameType | None) -> None:
        seen.count += 1
        workers.stop()
        if seen.count > 2:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, handle)
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, standing)
