"""``bayessel delve run`` compares methods on many tasks, ``bayessel delve report`` says what was found."""

from __future__ import annotations

import argparse
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayessel._check import as_seconds, one_of
from bayessel._files import write_whole
from bayessel.cli import _words as words

if TYPE_CHECKING:
    from rich.console import Console

    from bayessel.diagnostics.delve import Study

#: methods that are quick on a thousand cases
_QUICK = "lin-1,knn-cv-1,gp-map"
#: columns of the table of losses, for each method
_WHAT = ("loss", "std_error", "instances")


def add(commands: Any) -> list[argparse.ArgumentParser]:
    """The command and its two parts."""
    delve = commands.add_parser(
        "delve",
        help="compare methods on many tasks: which is better, by how much, and can we tell",
        description="Compare regression methods on many training sets, and say which differences are real.",
        allow_abbrev=False,
    )
    parts = delve.add_subparsers(title="commands", required=True, metavar="COMMAND")
    return [_add_run(parts), _add_report(parts)]


def _add_run(parts: Any) -> argparse.ArgumentParser:
    from bayessel.cli._methods import NAMES

    run = words.command(
        parts,
        "run",
        _run,
        help="fit methods to training sets and keep their losses",
        description="Fit every method to every training set and keep the losses in a store. The same command goes on "
        "where a killed one stopped; methods and tasks may be added.",
    )
    run.add_argument("--store", required=True, metavar="FOLDER", help="folder that keeps the study")
    run.add_argument("--data", metavar="FOLDER", help="folder of tables name.csv or name.csv.gz, the target last")
    run.add_argument("--tasks", metavar="A,B", help="tables of the folder; default: all")
    run.add_argument(
        "--generated",
        metavar="A,B",
        help="generated data: kin-8nm, pumadyn-32nh, hwang-radial, friedman-1, …; also beside --data",
    )
    run.add_argument("--sizes", metavar="N,N", help="cases of the training sets; default: 64,128,256,512,1024")
    run.add_argument("--instances", metavar="N", help="at most so many training sets per task; default: 8")
    run.add_argument(
        "--methods",
        default=_QUICK,
        metavar="A,B",
        help=f"{', '.join(NAMES)}, or yours as name=package.module:Class; default: {_QUICK}",
    )
    run.add_argument("--losses", metavar="A,B", help="squared, absolute, log; default: all")
    run.add_argument("--fit-budget", metavar="TIME", help="for methods that sample: time per fit, such as 60s")
    run.add_argument("--time-budget", metavar="TIME", help="begin nothing new after this long, such as 2h")
    run.add_argument("--jobs", metavar="N", help="processes; default: all cores where the work is long")
    run.add_argument("--scheduler", metavar="ADDRESS", help="a Dask scheduler whose workers do the work")
    run.add_argument("--retry-failures", action="store_true", help="do again what failed before")
    run.add_argument("--seed", metavar="N", default="0", help="seed of everything random; default: 0")
    return run


def _add_report(parts: Any) -> argparse.ArgumentParser:
    report = words.command(
        parts,
        "report",
        _report,
        help="write what a study found",
        description="Write report.html, and tables of losses, winners and units as .csv, from a store; also while a "
        "study is running.",
    )
    report.add_argument("--store", required=True, metavar="FOLDER", help="folder that keeps the study")
    report.add_argument("--methods", metavar="A,B", help="only these, in this order")
    report.add_argument("--tasks", metavar="A,B", help="only these, by names such as 'kin-8nm 64' or kin-8nm")
    report.add_argument("--losses", metavar="A,B", help="only these, the first on the terminal; default: all")
    report.add_argument("--png", action="store_true", help="write the pictures as files, too")
    report.add_argument("--out", default="report", metavar="FOLDER", help="folder for what is written; default: report")
    return report


def _run(arguments: argparse.Namespace) -> int:
    """Make methods and tasks, run, show."""
    from bayessel.cli._methods import methods
    from bayessel.diagnostics import delve

    console = words.console()
    budget = arguments.fit_budget
    as_seconds(budget)
    chosen = methods(arguments.methods, budget)
    tasks = _tasks(arguments)
    losses = tuple(words.comma_list(arguments.losses) or delve.LOSSES)
    jobs = words.number_of(arguments.jobs, "--jobs", int)
    with words.scheduler(arguments.scheduler) as client:
        study = delve.run(
            chosen,
            tasks,
            losses,
            store=arguments.store,
            executor=client,
            n_jobs=jobs,
            time_budget=arguments.time_budget,
            progressbar=not arguments.quiet,
            random_state=words.number_of(arguments.seed, "--seed", int),
            retry_failures=arguments.retry_failures,
        )
    _show(study, losses[0], console, arguments.quiet)
    if study.remaining:
        console.print(f"{study.remaining} units are left: the same command goes on with them.")
    console.print(f"\nStore: {arguments.store}; bayessel delve report --store {arguments.store}", soft_wrap=True)
    return 130 if study.interrupted else 0


def _tasks(arguments: argparse.Namespace) -> list[Any]:
    from bayessel.diagnostics import delve

    if arguments.data is None and arguments.generated is None:
        raise ValueError("nothing to learn from: give --data FOLDER, or --generated kin-8nm, or both")
    if arguments.data is None and arguments.tasks is not None:
        raise ValueError("--tasks chooses among the tables of --data FOLDER; generated ones are named by --generated")
    text = words.comma_list(arguments.sizes)
    sizes = None if text is None else [words.number_of(word, "--sizes", int) for word in text]
    instances = words.number_of(arguments.instances, "--instances", int)
    tasks = []
    if arguments.data is not None:
        tasks += delve.load(arguments.data, words.comma_list(arguments.tasks), sizes, instances)
    for name in words.comma_list(arguments.generated) or []:
        from bayessel.diagnostics.delve import families

        found = delve.divided(families.family(name).dataset(), sizes, instances)
        if not found:
            raise ValueError(f"--generated {name}: no size of {sizes} leaves two training sets")
        tasks += found
    return tasks


def _report(arguments: argparse.Namespace) -> int:
    """Read, show, write."""
    import pandas as pd

    from bayessel.cli._methods import split_names
    from bayessel.diagnostics.delve import Study

    console = words.console()
    study = Study.load(arguments.store)
    if arguments.methods is not None or arguments.tasks is not None:
        methods = None if arguments.methods is None else split_names(arguments.methods)
        study = study.only(methods, words.comma_list(arguments.tasks))
    wanted = words.comma_list(arguments.losses) or study.losses_kept
    losses = tuple(one_of(name, "--losses", study.losses_kept) for name in wanted)
    study = replace(study, losses_kept=losses)
    with words.folder(arguments.out) as folder:
        _show(study, losses[0], console, arguments.quiet)
        for name in losses:
            table = study.table(name)
            table.columns = pd.Index([f"{method} {what}" for method in study.methods for what in _WHAT])
            write_whole(folder / f"losses-{name}.csv", table.to_csv().encode())
            write_whole(folder / f"winners-{name}.csv", study.winners(name).to_csv().encode())
        write_whole(folder / "units.csv", study.to_pandas().to_csv(index=False).encode())
        if arguments.png:
            _pictures(study, folder)
        console.print(f"\nReport: {study.to_html(folder / 'report.html')}", soft_wrap=True)
    return 0


def _pictures(study: Study, folder: Path) -> None:
    from bayessel.pages.page import png

    for loss in study.losses_kept:
        for name in dict.fromkeys(task.prototask for task in study.tasks.values()):
            file = re.sub(r"[^\w.()-]+", "-", f"{name}-{loss}")
            write_whole(folder / f"{file}.png", png(study.plot(name, loss)))
        write_whole(folder / f"winners-{loss}.png", png(study.plot_winners(loss)))


def _show(study: Study, loss: str, console: Console, quiet: bool) -> None:
    """The verdict, and average losses by size."""
    for sentence in study.verdict():
        console.print(sentence)
    average = study.averages("size", loss)
    if quiet or not len(average):
        return
    table = words.table(("method", *(str(size) for size in average.index)), left=("method",))
    for method in study.methods:
        values = average[method].to_numpy(dtype=float)
        best = average[list(study.methods)].min(axis=1).to_numpy(dtype=float)
        cells = [
            "–" if not np.isfinite(v) else f"{v:.3f}{'*' if v == b else ' '}" for v, b in zip(values, best, strict=True)
        ]
        table.add_row(method, *cells)
    console.print()
    console.print(table)
    console.print(f"average {loss} loss by cases in the training set; * best of its column")
