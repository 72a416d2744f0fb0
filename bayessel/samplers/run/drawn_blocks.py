"""The blocks of a run, chain by chain, and the arrays they make together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bayessel.samplers.run.kernel import Array, Block, Kernel, Position


class DrawnBlocks:
    """What has been drawn so far.

    Parameters
    ----------
    past : list of list of Block
        Per chain, what a store held.
    positions : list of Position
        Where the chains stand after that.
    """

    def __init__(self, past: Sequence[Sequence[Block]], positions: Sequence[Position]) -> None:
        self._blocks: list[list[Block]] = [[] for _ in positions]
        self._like = positions[0].point
        self._seconds: list[float] = []
        self._dropped: set[str] = set()
        self.gradients = 0
        for blocks in past:
            for block in blocks:
                self.enter(block)
        self.gradients_before = self.gradients

    def enter(self, block: Block) -> None:
        """Enter a block; those of one chain come in order."""
        self._blocks[block.chain].append(block)
        self._seconds = [a + b for a, b in zip(self._seconds or [0.0] * len(block.seconds), block.seconds, strict=True)]
        self._dropped.update(block.dropped)
        for name, values in block.stats.items():
            if name == "n_steps" or name.endswith("_n_steps"):
                self.gradients += int(values.sum())

    @property
    def dropped(self) -> list[str]:
        """Statistics that did not make arrays of one shape."""
        return sorted(self._dropped)

    def seconds(self, kernel: Kernel) -> dict[str, float]:
        """Return the seconds spent in each step, by its name and variables."""
        labels = [
            f"{name}[{', '.join(str(one.name) for one in step.vars)}]"
            for name, step in zip(kernel.names, kernel.steps, strict=True)
        ]
        return {
            label: round(spent, 6) for label, spent in zip(labels, self._seconds or [0.0] * len(labels), strict=True)
        }

    def arrays(self, tune: int, made: int) -> tuple[dict[str, Array], dict[str, Array]]:
        """Return draws and statistics with axes (chain, draw, …), of the draws `tune` to `made` of every chain."""
        length = max(0, made - tune)
        chains = len(self._blocks)
        draws = {}
        for name, like in self._like.items():
            values = np.empty((chains, length, *like.shape), dtype=like.dtype)
            for chain, blocks in enumerate(self._blocks):
                parts = [block.draws[name] for block in blocks]
                if length:
                    values[chain] = np.concatenate(parts)[:length]
            draws[name] = values
        stats = {}
        everywhere = [block for blocks in self._blocks for block in blocks]
        names = list(everywhere[0].stats) if everywhere else []
        for name in names:
            shapes = {block.stats[name].shape[1:] if name in block.stats else None for block in everywhere}
            if len(shapes) > 1 or None in shapes:
                self._dropped.add(name)
                continue
            self._dropped.discard(name)
            rows = [[block.stats[name] for block in blocks] for blocks in self._blocks]
            (shape,) = shapes
            dtype = everywhere[0].stats[name].dtype
            if length:
                stats[name] = np.stack([np.concatenate(parts)[tune:made] for parts in rows])
            else:
                stats[name] = np.empty((chains, 0, *(shape or ())), dtype=dtype)
        return draws, stats
