"""Who runs the blocks of chains: this process, or worker processes (`bayessel.work.processes`). The draws are the same.

Workers are forked where that is safe, after everything has been compiled, so they share the compiled code; elsewhere
they are started afresh and get the steps by cloudpickle. One message goes out and one comes back per block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from bayessel.samplers.run.kernel import Block, Kernel, Position
from bayessel.work.processes import WorkerProcesses, fork_is_safe
from bayessel.work.unit import raised


@dataclass(frozen=True)
class BlockTask:
    """Run a chain from `position` until it has `until` draws or `seconds` are over."""

    position: Position
    until: int
    seconds: float


class InlineChains:
    """One block at a time, in this process."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._task: BlockTask | None = None

    @property
    def size(self) -> int:
        """One."""
        return 1

    @property
    def idle(self) -> int:
        """One if there is nothing to do."""
        return int(self._task is None)

    def submit(self, task: BlockTask) -> None:
        """Keep the task until its block is asked for."""
        self._task = task

    def collect(self) -> list[Block]:
        """Run the task."""
        task, self._task = self._task, None
        return [] if task is None else [_run(self._kernel, task)]

    def close(self) -> None:
        """Give the steps back as they came."""
        self._kernel.restore()


class ChainProcesses:
    """Blocks side by side in worker processes.

    Parameters
    ----------
    kernel
        The steps; compiled already, so that forked workers need not.
    count : int
        Number of processes.
    rehearsal
        A position from which workers that start afresh make a draw before the first task, so that code is loaded.
    fork : bool, optional
        Fork this process; by default where that is safe.
    not_theirs : sequence of int
        File descriptors that forked workers close at once: locks must end with the parent.
    """

    def __init__(
        self,
        kernel: Kernel,
        count: int,
        rehearsal: Position,
        fork: bool | None = None,
        not_theirs: Sequence[int] = (),
    ) -> None:
        self._kernel = kernel
        try:
            self._pool = WorkerProcesses(
                partial(_run, kernel),
                count,
                fork=fork_is_safe() if fork is None else fork,
                prepare=partial(_rehearse, rehearsal),
                not_theirs=not_theirs,
                name="chains",
            )
        except Exception as error:
            raise ValueError(
                f"the step methods cannot be sent to another process ({error}); use cores=1, or steps without "
                "references to files, locks and the like"
            ) from error
        try:
            self._pool.start()
        except RuntimeError as error:
            self.close()
            raise RuntimeError(f"{error}; {_HINT}") from None
        except BaseException:
            self.close()
            raise

    @property
    def size(self) -> int:
        """How many processes there are."""
        return self._pool.count

    @property
    def idle(self) -> int:
        """How many processes have nothing to do."""
        return len(self._pool.idle)

    def submit(self, task: BlockTask) -> None:
        """Send the task to a process that has nothing to do."""
        self._pool.send(self._pool.idle[0], task)

    def collect(self) -> list[Block]:
        """Return the blocks that are ready, or none where a process had to be replaced."""
        blocks = []
        for _, answer in self._pool.collect(None):
            if answer.kind in ("died", "unsent"):
                raise RuntimeError(f"{answer.text}; {_HINT}")
            if answer.kind == "error":
                raise raised(answer, "a step method")
            blocks.append(answer.value)
        return blocks

    def close(self) -> None:
        """End the processes."""
        self._pool.close()
        self._kernel.restore()


#: what the schedule hands blocks to
type ChainWorkers = InlineChains | ChainProcesses

_HINT = "try fewer cores, or cores=1 to see where it happens"


def _run(kernel: Kernel, task: BlockTask) -> Block:
    return kernel.run(task.position, task.until, task.seconds)


def _rehearse(position: Position, service: Any) -> None:
    """Make a draw with the steps of a service, and forget it."""
    service.args[0].rehearse(position)
