"""From a race to the page of the field: a table per size, ours against ridge regression and the best peer, the bars."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from benchmarks.field.own import OURS
from benchmarks.field.peers import PEERS
from benchmarks.field.race import Outcome
from benchmarks.field.verdicts import CONSTANT, COVERED, ERRORS, LEVELS, LOSSES, RIDGE, SHARE, WORSE, Field, Worse, best
from benchmarks.harness import Report, Verdict
from benchmarks.report import cell, markdown_table, promise

TITLE = "The field: our defaults beside the peers of today"
TEXT = """Real sets of DELVE and UCI, training sets of a given size drawn from each, 300 to 500 test rows of their own
(of sets of few rows one test set for all splits). Everybody by its defaults: linear models, SVR, scikit-learn's GP and
`bde` on standardised inputs, networks of ours with a second of processor per 64 rows (two at least), `bde` with the
settings of its makers' example, BART with two chains of 200 draws. Who predicts points only gets a normal distribution
with the standard deviation of its residuals in five folds. One thread each; more than 60 s of processor is over the
limit. `python -m benchmarks.field --page docs/measured/field.md` wrote this page; data as for the other
[benchmarks](../benchmarks.md), peers (`pip install lightgbm catboost ngboost xgboost-distribution pymc-bart
sklearn-contrib-bde`, in an environment of their own) are those of the interpreter that `PEERS_PYTHON` names."""
#: heads the table of a size
HEAD = "{size} rows, {sets} sets; ranks from {count} of them, on which all ranked methods have a split in common."
COLUMNS = """Ranks: 1 is best; a method's mean loss on a set is ranked, ranks are averaged over sets, of methods that
have met {share:.0%} of them. Nats: log density of a test row over that of a normal distribution with mean and variance
of the training targets, mean over sets. Coverage of central intervals in per cent. Worse: fits more than {worse} nats a
row below that constant (without a warning). Seconds: of processor, median of fit and prediction together."""
AGAINST = """Ours against BayesianRidge and against the best of the other peers of a size (lowest mean rank by that
loss), over sets, with standard error and p of a paired t test over sets: "log", minus the log density in nats, ours
less theirs (negative: ours is better); "squared", squared error of ours over theirs (below 1: ours is better),
geometric mean. Then on how many sets ours is better and worse with p < 0.05 by the design of the set
(`delve.hierarchical`, or `delve.two_way` where splits share their test rows), of those that both have met with two
splits at least."""
BARS = """What is asked of our defaults: sets where a loss is more than {errors:g} standard errors above that of
BayesianRidge; sets where intervals of nominal 90 % cover less than {low:.0%} or more than {high:.0%}; fits more than
{worse} nats a row below the constant, the worst of each set. Errors are large where splits are few, and the share of
rows that a single split covers moves by several per cent from one training set to the next, whatever the method."""


def reported(field: Field, lacking: Mapping[str, str]) -> Report:
    """Tables and verdicts of a race."""
    found = Report()
    sizes = [size for size in sorted({task.size for task in field.tasks.values()}) if field.methods(size)]
    for size in sizes:
        rows, count = by_size(field, size)
        sets = sum(bool(field.splits(CONSTANT, name)) for name in field.names(size))
        found.tables.append((HEAD.format(size=size, sets=sets, count=count), rows))
    if rows := [row for size in sizes for row in against(field, size)]:
        found.tables.append((AGAINST, rows))
    if rows := [row for size in sizes for row in below(field, size)]:
        found.tables.append((BARS.format(errors=ERRORS, low=COVERED[0], high=COVERED[1], worse=WORSE), rows))
    absent = {name: f"{what} is missing" for name, what in lacking.items()}
    absent |= {name: "not run" for name in PEERS if name not in absent and name not in field.methods()}
    if absent:
        found.tables.append(("Left out.", [{"method": name, "why": what} for name, what in absent.items()]))
    found.verdicts = verdicts(field, sizes)
    return found


def by_size(field: Field, size: int) -> tuple[list[dict[str, Any]], int]:
    """A row per method, by mean rank in log density, and the number of sets that ranks come from."""
    ranks = {loss: field.ranks(loss, size) for loss in LOSSES}
    order = ranks["log"][0]
    rows = []
    for method in sorted(field.methods(size), key=lambda m: (order.get(m, np.inf), m)):
        names = [name for name in field.names(size) if field.splits(method, name)]
        fits = field.fits(method, size)
        gains = [np.mean([-field.losses("log", method, n, k).mean() for k in field.splits(method, n)]) for n in names]
        worse = field.worse_than_constant(method, size)
        row: dict[str, Any] = {"method": ("**" + method + "**") if method in OURS else method}
        for loss in LOSSES:
            row[f"rank, {loss}"] = f"{ranks[loss][0][method]:.1f}" if method in ranks[loss][0] else "–"
        row["nats"] = f"{np.mean(gains):.2f}" if gains else "–"
        cover = [100 * field.coverage(method, names, level) for level in LEVELS]
        row["coverage 50/90/95"] = "/".join(f"{one:.0f}" for one in cover)
        row["worse (silent)"] = f"{len(worse)} ({sum(not one.warned for one in worse)})"
        row["fits (sets)"] = f"{len(fits)} ({len(names)})"
        row["failed"] = len(field.failures(method, size))
        row["seconds"] = cell(float(f"{np.median([one.seconds for one in fits]):.2g}")) if fits else "–"
        rows.append(row)
    return rows, ranks["log"][1]


def against(field: Field, size: int) -> list[dict[str, Any]]:
    """A row per method of ours: its losses less those of BayesianRidge and of the best peer."""
    rows = []
    for method in [name for name in field.methods(size) if name in OURS]:
        row: dict[str, Any] = {"rows": size, "method": method}
        for loss in ("log", "squared"):
            ranks, _ = field.ranks(loss, size)
            rival = best(ranks, lambda name: name not in (*OURS, CONSTANT, RIDGE))
            row[f"{loss}, BayesianRidge"] = compared(field, method, RIDGE, loss, size)
            row[f"{loss}, best peer"] = f"{rival}: {compared(field, method, rival, loss, size)}" if rival else "–"
        rows.append(row)
    return rows


def compared(field: Field, method: str, other: str, loss: str, size: int) -> str:
    """A difference over sets in a cell."""
    found = field.over_sets(method, other, loss, size)
    if found is None:
        return "–"
    wins, lost, judged = decided(field, method, other, loss, size)
    said = f"{found.mean:+.2f} ± {found.error:.2f}"
    if loss == "squared":
        said = f"{np.exp(found.mean):.2f} ± {np.exp(found.mean) * found.error:.2f}"
    sets = f"; {wins} better, {lost} worse of {judged}" if judged else ""
    return f"{said}, p {found.p_value:.1g}{sets}"


def decided(field: Field, method: str, other: str, loss: str, size: int) -> tuple[int, int, int]:
    """Sets on which a method is better, and worse, with p < 0.05, and those that have the two splits it takes."""
    each = [one for name in field.names(size) if (one := field.compare(method, other, loss, name)) is not None]
    sure = [one.mean for one in each if one.p_value < 0.05]
    return sum(one < 0 for one in sure), sum(one > 0 for one in sure), len(each)


def below(field: Field, size: int) -> list[dict[str, Any]]:
    """A row per method of ours: sets on which it misses a bar."""
    rows = []
    for method in [name for name in field.methods(size) if name in OURS]:
        row: dict[str, Any] = {"rows": size, "method": method}
        for loss in ("squared", "log"):
            lost = field.worse_than(method, RIDGE, loss, size)
            said = listed(f"{set_of(n)} {one.mean:+.2f}" for n, one in lost.items())
            row[f"worse than BayesianRidge, {loss}"] = said if decided(field, method, RIDGE, loss, size)[2] else "–"
        covered = field.uncovered(method, size)
        row["coverage of 90 %"] = listed(f"{set_of(name)} {100 * value:.0f}" for name, value in covered.items())
        bad: dict[str, list[Worse]] = {}
        for one in field.worse_than_constant(method, size):
            bad.setdefault(set_of(one.task), []).append(one)
        row["below the constant"] = listed(f"{name} {_told(them)}" for name, them in bad.items())
        rows.append(row)
    return rows


def _told(fits: list[Worse]) -> str:
    times = f" (×{len(fits)})" if len(fits) > 1 else ""
    return f"{min(one.nats for one in fits):.2f}{times}{' silent' if any(not one.warned for one in fits) else ''}"


def set_of(task: str) -> str:
    """Name of a set, without the size."""
    return task.rpartition(" ")[0]


def listed(parts: Iterable[str]) -> str:
    """Parts in a cell."""
    return ", ".join(parts) or "none"


def troubles(field: Field) -> str:
    """Every fit of ours below the constant, and sets with wrong coverage or worse than BayesianRidge, a line each."""
    lines = []
    for method in [name for name in field.methods() if name in OURS]:
        lines.append(f"== {method}")
        for size in sorted({task.size for task in field.tasks.values()}):
            count = len(field.fits(method, size))
            if not count:
                continue
            cover = "/".join(f"{100 * field.coverage(method, field.names(size), level):.0f}" for level in LEVELS)
            lines.append(f"  -- {size} rows: {count} fits, coverage 50/90/95 {cover}")
            for gone in field.failures(method, size):
                lines.append(f"  failed      {gone.unit.task}, split {gone.unit.split}: {gone.error}")
            for name, value in field.uncovered(method, size).items():
                lines.append(f"  coverage    {name}: {100 * value:.0f} % of nominal 90 %")
            for bad in field.worse_than_constant(method, size, 0.0):
                said = "warned" if bad.warned else "SILENT"
                lines.append(f"  < constant  {bad.task}, split {bad.split}: {bad.nats:.3f} nats, {said}, {bad.status}")
            for far in field.wild(method, size):
                lines.append(
                    f"  wild        {far.unit.task}, split {far.unit.split}: squared error {_squared(field, far)}"
                )
            for loss in ("squared", "log"):
                for name, one in field.worse_than(method, RIDGE, loss, size).items():
                    lines.append(f"  > ridge     {name}: {loss} {one.mean:+.3f} ± {one.error:.3f} ({one.count} splits)")
    return "\n".join(lines)


def _squared(field: Field, one: Outcome) -> str:
    each = field.losses("squared", one.unit.method, one.unit.task, one.unit.split)
    return f"{each.mean():.2f} (one row {each.max():.0f}), {one.status}"


def verdicts(field: Field, sizes: list[int]) -> list[Verdict]:
    """The bars as numbers."""
    found = []
    for size in sizes:
        there = [name for name in field.methods(size) if name in OURS]
        if not there or RIDGE not in field.methods(size):
            continue
        for loss in ("squared", "log"):
            lost = sum(len(field.worse_than(m, RIDGE, loss, size)) for m in there)
            judged = sum(decided(field, m, RIDGE, loss, size)[2] for m in there)
            if judged:  # with a single split of each set nothing can be said
                label = f"{size} rows: one of ours worse than BayesianRidge on a set, {loss}, of {judged} pairs"
                found.append(Verdict(label, lost, 0))
        bad = [one for m in there for one in field.worse_than_constant(m, size, 0.0)]
        found.append(Verdict(f"{size} rows: fits of ours below the constant", len(bad), 0))
        found.append(Verdict(f"{size} rows: of these without a warning", sum(not one.warned for one in bad), 0))
        off = sum(len(field.uncovered(m, size)) for m in there)
        found.append(
            Verdict(f"{size} rows: sets where 90 % intervals of one of ours cover too little or too much", off, 0)
        )
        ranks, _ = field.ranks("log", size)
        mine, theirs = best(ranks, lambda name: name in OURS), best(ranks, lambda name: name not in OURS)
        if size <= 256 and mine is not None and theirs is not None:
            ahead = ranks[mine] - ranks[theirs]
            found.append(Verdict(f"{size} rows: mean rank in log density of {mine} less that of {theirs}", ahead, 0))
    return found


def text(report: Report, field: Field) -> str:
    """The page."""
    met = {task: {k for (_, name, k) in field.outcomes if name == task} for task in field.tasks}
    most = max((len(splits) for splits in met.values()), default=0)
    said = f"At most {most} splits of a set; the same command with a larger `--splits` goes on with more."
    columns = COLUMNS.format(share=SHARE, worse=WORSE)
    parts = [f"# {TITLE}", _line(TEXT), said, _line(columns)]
    for head, body in report.tables:
        parts += [_line(head), markdown_table(body)]
    parts += ["## Promises", "\n".join(promise(vars(one) | {"met": one.met}) for one in report.verdicts)]
    sets = sorted({task.prototask.name for task in field.tasks.values()})
    parts.append(f"Sets: {', '.join(sets)}.")
    return "\n\n".join(parts) + "\n"


def _line(words: str) -> str:
    return " ".join(words.split())
