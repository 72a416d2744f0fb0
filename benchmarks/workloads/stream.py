"""The evidence procedure on more rows than anybody would hold in memory: N = 1e7, M = 100, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import bayessel as bs
from benchmarks.harness import Case, Contestant, Report, Verdict, race
from benchmarks.peers import Array, Problem, syrk

TITLE = "Evidence procedure from a stream"
TEXT = """Throughput: all contestants read the same few blocks over and over, so that making the numbers costs nothing;
the limit is one `dsyrk` per block on the same blocks. Memory: the peak of the whole process, interpreter and libraries
included, on rows made afresh block by block. scikit-learn's BayesianRidge cannot read blocks: in memory these rows are
8 GB, and it takes several times that."""
LIMIT = "syrk per block"


@dataclass(frozen=True)
class Blocks:
    """A stream of `n_rows` rows: a few blocks repeated, or fresh ones."""

    n_rows: int
    block_rows: int
    m: int
    fresh: bool = False
    columns_first: bool = False
    offset: float = 0.5

    def make(self, rng: np.random.Generator, rows: int) -> Problem:
        """One block of rows."""
        Phi = rng.standard_normal((rows, self.m))
        Phi += self.offset
        if self.columns_first:
            Phi = np.asfortranarray(Phi)
        return Phi, Phi @ np.linspace(-1, 1, self.m) + 2.0 * rng.standard_normal(rows)

    def __call__(self) -> Iterator[Problem]:
        """Start a pass."""
        rng = np.random.default_rng(4)
        stock: list[Problem] = []
        left = self.n_rows
        while left > 0:
            rows = min(left, self.block_rows)
            left -= rows
            if self.fresh:
                yield self.make(rng, rows)
                continue
            if not stock:
                stock = _stock(self)
            Phi, t = stock[left // self.block_rows % len(stock)]
            yield Phi[:rows], t[:rows]


_STOCKS: dict[Blocks, list[Problem]] = {}


def _stock(blocks: Blocks) -> list[Problem]:
    if blocks not in _STOCKS:
        _STOCKS.clear()
        rng = np.random.default_rng(4)
        _STOCKS[blocks] = [blocks.make(rng, blocks.block_rows) for _ in range(3)]
    return _STOCKS[blocks]


def bare(blocks: Blocks) -> Array:
    G = np.zeros((blocks.m, blocks.m), order="F")
    for Phi, _ in blocks():
        # whichever way the block lies in memory, BLAS reads it without a copy
        G = syrk(Phi, G) if Phi.flags.c_contiguous else _syrk_columns(Phi, G)
    return G


def _syrk_columns(Phi: Array, G: Array) -> Array:
    from scipy.linalg import blas

    return np.asarray(blas.dsyrk(1.0, Phi, beta=1.0, c=G, trans=1, lower=1, overwrite_c=1))


def stream(centre: bool, arithmetic: str = "auto") -> Callable[[Blocks], Any]:
    return lambda blocks: bs.linear.fit_evidence_stream(blocks, centre=centre, arithmetic=arithmetic)


def contestants(*ours: str) -> list[Contestant]:
    """The limit, and the variants named: 'plain', 'centred', 'qr'."""
    variants = {
        "plain": Contestant("fit_evidence_stream", "ours", stream(False)),
        "centred": Contestant("fit_evidence_stream(centre=True)", "ours", stream(True)),
        "qr": Contestant("fit_evidence_stream(arithmetic='qr')", "ours", stream(False, "qr")),
    }
    return [*(variants[name] for name in ours), Contestant(LIMIT, "limit", bare)]


def cases(quick: bool) -> list[Case]:
    n, m, block = (20_000, 10, 4096) if quick else (10_000_000, 100, 65536)
    short = n if quick else n // 10
    rounds = 2 if quick else 6
    both = contestants("plain", "centred")
    size = f"N = {short}, M = {m}"
    return [
        Case(f"N = {n}, M = {m}", lambda: Blocks(n, block, m), both, rounds),
        Case(f"{size}, stored by columns", lambda: Blocks(short, block, m, columns_first=True), both, rounds),
        Case(f"{size}, offset 1000", lambda: Blocks(short, block, m, offset=1e3), contestants("centred"), rounds),
        Case(
            f"{size}, offset 1000, stored by columns",
            lambda: Blocks(short, block, m, columns_first=True, offset=1e3),
            contestants("centred"),
            rounds,
        ),
        Case(f"{size}, every digit kept", lambda: Blocks(short, block, m), contestants("qr"), rounds),
        Case(f"N = {n}, M = {m}, fresh rows", lambda: Blocks(n, block, m, fresh=True), both, memory=True),
    ]


def difference(centre: bool, arithmetic: str, n: int, m: int) -> float:
    """Largest relative difference between a streamed and an in-memory fit: evidence, precisions and weights."""
    blocks = Blocks(n, 8192, m, fresh=True)
    parts = list(blocks())
    Phi, t = np.vstack([p for p, _ in parts]), np.concatenate([t for _, t in parts])
    a = bs.linear.fit_evidence_stream(parts, centre=centre, arithmetic=arithmetic)
    b = bs.linear.fit_evidence(Phi, t, centre=centre)
    pairs = [(a.log_evidence, b.log_evidence), (a.alpha, b.alpha), (a.beta, b.beta)]
    apart = [abs(x - y) / abs(y) for x, y in pairs]
    return max(*apart, float(np.abs(a.coef - b.coef).max() / np.abs(b.coef).max()))


def run(quick: bool, memory: Callable[..., Any]) -> Report:
    report = Report()
    *timed, fresh = cases(quick)
    for case in timed:
        outcome = race(case, case.data())
        report.add(
            case, outcome, {c.name: {"throughput / limit": outcome.ratio(LIMIT, c.name)} for c in case.contestants}
        )
        for c in case.contestants:
            if c.role == "ours" and "qr" not in c.name:
                label = f"throughput of {c.name} over that of the limit, {case.name}"
                label += f" (median ratio {outcome.typical_ratio(LIMIT, c.name):.2f})"
                report.verdicts.append(Verdict(label, outcome.ratio(LIMIT, c.name), 0.6, ">="))
    table = []
    for c in fresh.contestants:
        peak = memory(case=fresh.name, contestant=c.name)
        table.append(
            {
                "case": fresh.name,
                "contestant": c.name,
                "whole process (MB)": peak.total,
                "over the start (MB)": peak.added,
            }
        )
        if c.role == "ours":
            report.verdicts.append(Verdict(f"peak memory of {c.name}, MB, {fresh.name}", peak.total, 600.0))
    report.tables.append(("Memory:", table))
    n, m = (5_000, 10) if quick else (200_000, 100)
    for centre in (False, True):
        for arithmetic in ("gram", "qr"):
            label = f"largest difference from the fit in memory, N = {n}, {arithmetic}{', centred' * centre}"
            report.verdicts.append(Verdict(label, difference(centre, arithmetic, n, m), 1e-10))
    return report
