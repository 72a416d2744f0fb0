"""Who works on what, and when it ends: blocks for the chain that lags most, until all are long enough or time is up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bayessel.samplers.run.kernel import Block, Position
from bayessel.samplers.run.workers import BlockTask, ChainWorkers
from bayessel.work.clock import BudgetClock
from bayessel.work.interrupts import InterruptCounter, InterruptGuard

#: Seconds of work between two messages: long against the message, short against a person's patience and a crash.
BLOCK = 0.3
#: Near the end of the time budget blocks are as long as lets every chain have two of them, but not shorter than this.
SHORTEST = 0.01
#: A draw that would end later than the budget by more than this part of it is not begun.
OVERTIME = 0.03


@dataclass
class SamplingEnd:
    """How the sampling ended."""

    positions: list[Position]
    seconds: float = 0.0
    interrupted: bool = False
    out_of_time: bool = False


def run(
    workers: ChainWorkers,
    positions: Sequence[Position],
    total: int,
    budget: float | None,
    record: Callable[[Block], None],
) -> SamplingEnd:
    """Run all chains to `total` draws; what is done when the budget ends, or the user says so, is kept.

    Each block goes to the chain with the fewest draws, so chains stay equally long with any number of workers. A
    worker gets its next block before the last one is recorded: the disk does not keep it waiting.
    """
    outcome = SamplingEnd(list(positions))
    clock = BudgetClock(budget)
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
            workers.submit(BlockTask(chosen, total, min(BLOCK, max(SHORTEST, share), left)))
            busy.add(chosen.chain)

    with InterruptCounter() as interrupts:
        hand_out()
        while busy:
            with InterruptGuard() as guard:  # a step's own code may raise in this process: its block is lost, no more
                blocks = workers.collect()
            if guard.interrupted:
                interrupts.count += 1
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
