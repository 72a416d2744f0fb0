"""Searches, the relevance vector machine and all functions on DELVE's tasks of 1024 cases, beside the paper."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.stats import ttest_1samp

from benchmarks import search_paper as paper
from benchmarks.delve_cases import Task, there
from benchmarks.harness import Report, Verdict
from benchmarks.peers import Array
from benchmarks.search_fits import WITHIN, fits, kept, narrow, widths

TITLE = "Search for basis functions, DELVE"
TEXT = """DELVE's tasks of 1024 training cases, four training sets with 1024 test cases each, as in Barrio, Romero and
Belanche (2010): a gaussian at every training input, one width per input from the evidence of all of them (`abf`),
inputs in [-1, 1], targets without their mean. Which cases the paper trained on is not known; here the sets are
consecutive rows. Every search stands for its model of the highest evidence, `oscil(5)` for its best one of the size
that `pta(1,0)` found, as in the paper. Functions ("+-" is the standard error over the sets) and steps (added and
removed; those that "sffs" takes back are not counted) stand beside the paper's tables 4 and 6. "lost" is what the
evidence of that search's model has over the best model of the paper's size that any of the searches saw, in nats
(median of the sets). "error" is the mean squared test error over the variance of the targets, "smaller" the smallest
model within a nat, which `search` returns by itself. In "pairs" a positive ratio agrees with the paper's order (its
table 7): mean logarithm of the ratio of errors over tasks, the p-value of a t test over tasks, and how many tasks
differ with p < 0.05 by a t test over their training sets, either way, beside the paper's counts over 60 tasks of 64 to
1024 cases. Data are looked for in the folder that BENCHMARK_DATA names; what is missing is left out. With
BENCHMARK_PARTS, a folder, a run that was broken off goes on where it was."""
INSTEAD = "The smallest model within a nat instead of the one of the highest evidence."
AGREEMENT = """Do the paper's tables 4 and 6 agree? Mean size of the last model of a search: as its steps count it, and
the least and greatest that the stopping rule allows for its mean number of functions."""
NARROWER = """Where they do not: the first training set with functions of one width for all inputs, narrower than the
evidence prefers."""
NARROW = 1.0
#: cases of the tasks that only take part in the pairs; eight training sets, 512 test cases each
FEWER = (512, 256, 128, 64)
#: searches whose size is their own; oscillating search takes that of forward selection
OWN_SIZE = ("pta(1,0)", "pta(2,1)", "sffs")
FACTOR, NATS = 1.5, 1.0
SIGNIFICANT = 0.05
Found = list[dict[str, dict[str, float]]]


def run(quick: bool, memory: Callable[..., Any]) -> Report:
    families = [name for name in paper.FAMILIES if there(name)]
    tasks = [Task("friedman", 64)] if quick else [Task(name, n) for n in (1024, *FEWER) for name in families]
    everything: dict[Task, Found] = {}
    for task in tasks:
        everything[task] = []
        for i, split in enumerate(task.splits(2 if quick else 8)):
            name = f"{task.family}-{task.n}-{i}"
            known = kept(f"{name}.widths", lambda split=split: widths(split))
            everything[task].append(
                kept(name, lambda split=split, known=known, task=task: fits(split, reported(task), known))
            )
            print(f"    {name}: { {m: round(v['size'], 1) for m, v in everything[task][-1].items()} }", flush=True)
    made = report(everything)
    for task in everything:
        if reported(task) and paper.contradiction(task.family) > 1.0:
            name, split = f"{task.family}-{task.n}-0", next(task.splits(1))
            known = kept(f"{name}.widths", lambda split=split: widths(split))
            row = kept(f"{name}.narrow", lambda split=split, known=known: narrow(split, known, NARROW))
            if made.tables[-1][0] != NARROWER:
                made.tables.append((NARROWER, []))
            made.tables[-1][1].append({"task": task.family} | row)
    return made


def reported(task: Task) -> str:
    """Family of a task of which the paper says sizes; empty for others."""
    return task.family if task.n == 1024 and task.family in paper.FAMILIES else ""


def report(everything: dict[Task, Found]) -> Report:
    """Tables and promises from what everybody found."""
    made = Report()
    large = {task: found for task, found in everything.items() if reported(task)} or everything
    took = sum(one[method]["seconds"] for found in everything.values() for one in found for method in one)
    head = f"All fits together took {took / 60:.1f} minutes of the processor, which is what seconds are here."
    made.tables.append((head, [row for task, found in large.items() for row in rows(task, found)]))
    pairs, verdicts = neighbours(large)
    made.tables.append(("pairs", pairs))
    if len(everything) > len(large):
        pairs, verdicts = neighbours(everything)
        made.tables.append((f"pairs, {min(FEWER)} to 1024 cases", pairs))
    made.tables.append((INSTEAD, smaller(everything)))
    if agreement := [
        {"task": name} | paper.implied(name) | {"factor off": paper.contradiction(name)}
        for name in map(reported, large)
        if name
    ]:
        made.tables.append((AGREEMENT, agreement))
    for row in made.tables[0][1]:
        if row["method"] in OWN_SIZE and row.get("functions, paper") is not None:
            made.verdicts.append(promise(row))
    made.verdicts += verdicts
    return made


def over(found: Found, method: str, key: str, how: Callable[..., Any] = np.mean) -> float | None:
    """Mean over training sets; None where it is not known of all."""
    values = [one[method].get(key) for one in found]
    return None if any(v is None for v in values) else float(how(values))


def spread(found: Found, method: str) -> float | None:
    """Standard error of the mean number of functions over training sets; None where all have all."""
    sizes = [one[method]["size"] for one in found]
    return float(np.std(sizes, ddof=1) / np.sqrt(len(sizes))) if len(set(sizes)) > 1 else None


def rows(task: Task, found: Found) -> list[dict[str, Any]]:
    """One row per method: means over training sets beside the paper."""
    return [
        {
            "task": task.family,
            "method": name,
            "functions": over(found, name, "size"),
            "+-": spread(found, name),
            "functions, paper": paper.size(name, reported(task)),
            "lost": over(found, name, "lost", np.median),
            "smaller": over(found, name, "smaller"),
            "steps": over(found, name, "steps"),
            "steps, paper": paper.steps(name, reported(task)),
            "error": over(found, name, "error"),
            "error, smaller": over(found, name, "smaller, error"),
            "seconds": over(found, name, "seconds"),
        }
        for name in found[0]
    ]


def promise(row: dict[str, Any]) -> Verdict:
    """The paper's size within a factor; or, where it is not, within a nat of the search's own evidence."""
    ours, theirs = row["functions"], row["functions, paper"]
    ratio, what = max(ours / theirs, theirs / ours), f"{row['task']}, {row['method']}"
    if ratio > FACTOR and row["lost"] < NATS:
        label = f"nats lost by a model of the paper's size ({ours:.3g} functions, paper {theirs:.3g}), {what}"
        return Verdict(label, row["lost"], NATS)
    off = paper.contradiction(row["task"])
    doubt = f" (whose tables of sizes and steps differ by {off:.2f} there)" if off > 1.0 else ""
    return Verdict(f"functions against the paper's{doubt}, factor, {what}", ratio, FACTOR)


def neighbours(everything: dict[Task, Found]) -> tuple[list[dict[str, Any]], list[Verdict]]:
    """Paired comparisons of neighbours in the paper's order, over tasks and within them."""
    table, verdicts = [], []
    for better, worse in pairwise(paper.ORDER):
        ratios = [
            np.log([one[worse]["error"] / one[better]["error"] for one in found]) for found in everything.values()
        ]
        means = np.array([r.mean() for r in ratios])
        row: dict[str, Any] = {"better": better, "worse": worse, "mean log ratio": float(means.mean())}
        if len(means) > 1:
            row["p"] = p = float(ttest_1samp(means, 0.0).pvalue)
            label = f"{better} before {worse} by error: p of the contrary over tasks (1: it is so)"
            verdicts.append(Verdict(label, 1.0 if means.mean() >= 0.0 else p, SIGNIFICANT, ">="))
        clear = [significant(r) for r in ratios]
        row |= {"tasks for": clear.count(1), "tasks against": clear.count(-1), "of": len(clear)}
        row["for and against, paper, of 60"] = "{} and {}".format(*paper.TASKS[better, worse])
        table.append(row)
    return table, verdicts


def significant(differences: Array) -> int:
    """Sign of the mean where a t test over training sets, all of them and their test sets disjoint, has p < 0.05."""
    if len(differences) < 2 or not np.std(differences):
        return 0
    return int(np.sign(np.mean(differences))) if ttest_1samp(differences, 0.0).pvalue < SIGNIFICANT else 0


def smaller(everything: dict[Task, Found]) -> list[dict[str, Any]]:
    """What the smallest model within a nat costs: functions and test error over those of the highest evidence."""
    table = []
    for name in paper.STRATEGIES:
        of = [found for found in everything.values()]
        size = [np.mean([np.log(one[name]["smaller"] / one[name]["size"]) for one in found]) for found in of]
        error = [np.mean([np.log(one[name]["smaller, error"] / one[name]["error"]) for one in found]) for found in of]
        row = {
            "method": name,
            "nats": WITHIN,
            "functions, ratio": float(np.exp(np.mean(size))),
            "error, ratio": float(np.exp(np.mean(error))),
        }
        if len(error) > 1:
            row |= {"largest": float(np.exp(max(error))), "p": float(ttest_1samp(error, 0.0).pvalue)}
        table.append(row)
    return table
