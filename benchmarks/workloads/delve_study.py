"""The full study: every method of the papers on DELVE's tasks, with standard errors and p-values."""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bayessel.diagnostics import delve
from bayessel.diagnostics.delve import Dataset, families
from benchmarks import delve_cases, study_methods
from benchmarks.harness import Case, Contestant, Report, Verdict
from benchmarks.memory import ROOT
from benchmarks.processor_clock import processor_time
from benchmarks.study_claims import judged

TITLE = "Every method on DELVE's tasks"
TEXT = """All methods of the papers on the tasks of kin, pumadyn and bank that there are files of, as `delve.load`
divides them, and Boston in the two-way design: 8 training sets of 64 and 128 cases, 4 of 256, 512 and 1024. `lin-1` to
`gp-mc` are those of Rasmussen's thesis (1996); networks have a second of processor for 64 cases, two at least, sampled
in one chain, and so have, up to 256 cases, scikit-learn's ensembles of networks that stop early (standardised, tanh,
Adam); `gp-mc` stops at 256 cases. `abf` to `svm` are those of Barrio, Romero and Belanche (2010): a gaussian at every
training input, widths common to all of them, models of highest evidence (`within=0`); the machine's three settings by
cross-validation on inputs in units of these widths. It is a study in a store: broken off, it goes on with what is left
(`BENCHMARK_SECONDS`). Data as for `gp_delve`."""
AVERAGES = {
    "squared": "Squared loss, geometric mean over tasks (Boston left out), on training sets that all have met.",
    "log": """Log loss, mean over tasks, of methods that predict densities. The models of highest evidence of 64 and 128
cases fit some of these sets without an error, and believe that there is no noise.""",
}
SECONDS = "Seconds of processor for a fit with its predictions, means; the widths that methods share count nowhere."
CLAIMS = """What the papers conclude, asked of these tasks. "apart": loss of the worse method over that of the better
one, geometric mean over tasks (log loss: difference), with two standard errors; beyond 1 (0) it is as the papers say; p
of a t test over tasks; "for" and "against": tasks on which the difference has p < 0.05 by itself. Tasks of one family
have much in common, so p is too small if families are what one wants to know of."""
WINNERS = "On how many tasks the column beats the row by squared loss, p < 0.05."
SURFACES = """Hwang's functions with 8192 training cases and noise, four training sets: squared loss (the noise alone is
0.062, 0.059, 0.070, 0.060 and 0.058). Widths are those of all functions on the first 400 rows, the machine's settings
by cross-validation on 1024."""
SURFACE_WINNERS = """On how many of the five the column beats the row, p < 0.05. The same in the paper's table 3,
with and without noise together, columns PTA(1,0), PTA(2,1), SFFS, Oscil(5), RVM, SVM: PTA(1,0) – 0 0 4 0 4, PTA(2,1) 0
– 0 3 0 4, SFFS 1 0 – 2 0 2, Oscil(5) 1 0 0 – 0 1, RVM 4 4 3 4 – 4, SVM 1 1 2 4 0 –."""
SURFACE_SECONDS = "Seconds of processor, 8192 cases."
EVERY = """{} loss of every task, mean ± standard error over training sets (1 is a constant's squared loss, 0 a
Gaussian's log loss). Which differences are real is a question for paired tests: methods share training sets and test
cases, so these errors overlap where differences are clear."""
#: as far as their files are there
FAMILIES = tuple(
    f"{arm}-{kind}"
    for arm, kinds in (
        ("kin", ("8fh", "8fm", "8nm", "32fm")),
        ("pumadyn", ("8fh", "8nh", "8nm", "32nm", "32fm")),
        ("bank", ("8fh", "8fm", "8nh")),
    )
    for kind in kinds
)
#: training sets of a task by its training cases: fewer where each of them costs a minute
INSTANCES = {64: 8, 128: 8, 256: 4, 512: 4, 1024: 4}
#: training cases up to which hyperparameters of Gaussian processes are sampled, too
MOST_SAMPLED = 256
#: averages beyond are not worth their digits
BEYOND = 100.0
#: where the study is kept
STORE = ROOT / "benchmarks" / "results" / "study"


def tasks(sizes: Iterable[int]) -> list[delve.Task]:
    """Tasks of these sizes, and Boston's in the two-way design with the smallest."""
    where = delve_cases.folder()
    if where is None:
        raise FileNotFoundError("BENCHMARK_DATA names no folder")
    found = []
    for size in sizes:
        there = [name for name in FAMILIES if delve_cases.there(name) or delve_cases.there(f"{name}_fann_scaled")]
        try:
            found += delve.load(where / "delve", there, sizes=[size], instances=INSTANCES[size])
        except ValueError:  # no table has as many cases
            continue
    if min(sizes) == min(INSTANCES) and delve_cases.there("boston"):
        found += delve.load(where / "delve", ["boston"])
    return found


def surfaces(size: int = 8192, instances: int = 4, test_cases: int = 1024) -> list[delve.Task]:
    """Hwang's functions with noise, as the paper has them."""
    n = instances * (size + test_cases)
    found = []
    for name in ("simple", "radial", "harmonic", "additive", "complicated"):
        data = families.family(f"hwang-{name}").dataset(n, random_state=1994)
        one = Dataset(data.name, data.table, data.attributes, instances * size)
        found.append(one.prototask().task(size, instances, test_cases))
    return found


def go_on(store: Path, seconds: float | None = None, only: Callable[[str], bool] = lambda name: True) -> delve.Study:
    """Do what is left of the study, for so many seconds; the dearest methods on the smaller sets only."""
    groups: list[tuple[Mapping[str, Any], tuple[int, ...]]] = [
        (study_methods.plain() | study_methods.sampled(), (64, 128, 256)),
        (study_methods.plain(), (512, 1024)),
        (study_methods.rival(), (64, 128, 256)),
        (study_methods.selecting(), tuple(INSTANCES)),
    ]
    end = math.inf if seconds is None else time.monotonic() + seconds
    with processor_time():
        for methods, sizes in groups:
            chosen = {name: method for name, method in methods.items() if only(name)}
            left = max(end - time.monotonic(), 1.0)
            if chosen:
                budget = None if seconds is None else left
                delve.run(chosen, tasks(sizes), store=store, n_jobs=1, time_budget=budget, progressbar=True)
    return delve.Study.load(store)


def on_surfaces(store: Path, seconds: str | None) -> delve.Study:
    """Searches, sparse Bayes and the machine on Hwang's functions with 8192 cases."""
    budget = None if seconds is None else float(seconds)
    methods, losses = study_methods.many_rows(), ("squared", "absolute")
    return delve.run(methods, surfaces(), losses, store=store, n_jobs=1, time_budget=budget, progressbar=False)


def rehearsal() -> delve.Study:
    """Cheap methods on a generated task."""
    data = families.family("friedman-1").dataset(1000)
    task = data.prototask().task(64, instances=2, test_cases=64)
    methods = {name: method for name, method in study_methods.plain().items() if not name.startswith("mlp")}
    return delve.run(methods, task, progressbar=False)


def cases(quick: bool) -> list[Case]:
    """The methods, for the list; nobody is timed against anybody."""
    groups = (study_methods.plain, study_methods.sampled, study_methods.rival, study_methods.selecting)
    racers = [Contestant(name, "ours", lambda data: None) for group in groups for name in group()]
    return [Case("DELVE", lambda: None, racers)]


def run(quick: bool, memory: Callable[..., Any]) -> Report:
    seconds = os.environ.get("BENCHMARK_SECONDS")
    study = rehearsal() if quick else go_on(STORE, float(seconds) if seconds else None)
    report = Report()
    for loss in ("squared", "log"):
        report.tables.append((AVERAGES[loss], averages(study, loss)))
    report.tables.append((SECONDS, times(study)))
    rows = judged(study)
    if rows:
        report.tables.append((CLAIMS, rows))
    report.tables.append((WINNERS, winners(study)))
    report.verdicts = verdicts(rows)
    if not quick:
        draw(study, ROOT / "docs" / "images")
        large = on_surfaces(STORE.with_name("study-hwang"), seconds)
        report.tables += [(SURFACES, losses_of(large, "squared")), (SURFACE_WINNERS, winners(large))]
        report.tables.append((SURFACE_SECONDS, times(large)))
        report.tables += [(EVERY.format(loss.capitalize()), losses_of(study, loss)) for loss in ("squared", "log")]
    return report


def averages(study: delve.Study, loss: str) -> list[dict[str, Any]]:
    """A row per method, a column per size; tasks and instances that all methods of a size have met."""
    found: dict[str, dict[str, Any]] = {}
    for size in dict.fromkeys(int(facts.attributes["size"]) for facts in study.tasks.values()):
        names = [name for name, facts in study.tasks.items() if facts.attributes["size"] == size and counted(facts)]
        able = [m for m in study.methods if any(len(study.losses(loss, m, name)) for name in names)]
        if not names or not able:
            continue
        means = study.only(able, names).averages(None, loss).iloc[0]
        for method in able:
            value = means[method]
            found.setdefault(method, {"method": method})[f"{size} cases"] = (
                f"{value:.3f}" if value < BEYOND else f"over {BEYOND:g}"
            )
    return list(found.values())


def counted(facts: Any) -> bool:
    """Whether a task is in the averages: Boston's are not."""
    return bool(facts.design == "hierarchical")


def times(study: delve.Study) -> list[dict[str, Any]]:
    """Median seconds of processor of a fit with its predictions."""
    table = study.to_pandas()
    table = table[table["error"] == ""].pivot_table(index="method", columns="size", values="cpu_seconds")
    return [
        {"method": name} | {f"{size} cases": float(value) for size, value in row.items() if np.isfinite(value)}
        for name, row in table.reindex([m for m in study.methods if m in table.index]).iterrows()
    ]


def winners(study: delve.Study) -> list[dict[str, Any]]:
    """The matrix of counts, a row per method that is beaten."""
    table = study.winners("squared")
    return [{"beaten": name} | {column: int(row[column]) for column in table.columns} for name, row in table.iterrows()]


def verdicts(rows: Iterable[Mapping[str, Any]]) -> list[Verdict]:
    """No claim of the papers is contradicted."""
    counts: dict[str, Counter[str]] = {}
    for row in rows:
        counts.setdefault(row["claim"], Counter())[row["found"]] += 1
    return [
        Verdict(f"{claim}: pairs contradicted, of {sum(found.values())}", found["contradicted"], 0)
        for claim, found in counts.items()
    ]


def draw(study: delve.Study, images: Path) -> None:
    """Pictures of the page on the study."""
    images.mkdir(parents=True, exist_ok=True)
    study.plot_winners().savefig(images / "study-winners.png", dpi=100)
    study.plot_time().savefig(images / "study-time.png", dpi=100)
    for name in ("kin-8nm", "pumadyn-32nm"):
        study.plot(name).savefig(images / f"study-{name}.png", dpi=80)


def losses_of(study: delve.Study, loss: str) -> list[dict[str, Any]]:
    """A row per task: mean and standard error of each method."""
    table = study.table(loss)
    rows = []
    for task in table.index:
        row: dict[str, Any] = {"task": task}
        for method in study.methods:
            mean, error = table.loc[task, (method, "loss")], table.loc[task, (method, "std_error")]
            if np.isfinite(mean):
                row[method] = f"{mean:.3f} ± {error:.3f}" if np.isfinite(error) else f"{mean:.3f}"
        rows.append(row)
    return rows
