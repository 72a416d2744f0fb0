"""From the rows of a run to JSON, and from the JSON of all workloads to one page of Markdown."""

from __future__ import annotations

import json
import math
import os
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.harness import Report, Verdict

INTRO = """# Benchmarks

`make bench` runs everything below (about two hours, most of them slow peers of `rvm` and `samplers`) and writes this
page; after that `make bench ARGS="--only tall"` renews one section. Peers that are no dependency come with
`pip install -e '.[bench]'`, or live in an interpreter of their own that the environment variable `PEERS_PYTHON` names;
missing ones are skipped. `make bench ARGS="--quick"` is a rehearsal on tiny problems that leaves the page alone.

How it is measured: the contestants of a case take turns (A B C, B C A, ...) in one process, after one lap that does not
count; the best of all rounds is compared, so only **ratios** are shown (and for samplers, each in a process of its own,
effective draws per second, which is what they are known by). Every contestant has the same number of BLAS threads; each
section says how many, when it ran and how busy the machine was. "limit" is bare BLAS or LAPACK doing the arithmetic
that no method of the kind can avoid: nobody can be much below 1 there. Memory is the high-water mark of a fresh
process, minus what it held after building the data. A "median ratio" is that over the rounds, "cpu / ours" compares
processor time, all threads together: where they differ from the ratio of the best times, the machine was busy or the
threads waited for each other.
"""


def machine(threads: int) -> dict[str, Any]:
    """What the numbers depend on."""
    cpu = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), cpu)
    except OSError:
        pass
    packages = {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "blas threads": threads,
        "python": platform.python_version(),
    } | packages


def load() -> float:
    """Processes that want a core, over the last minute; NaN where the system does not say."""
    try:
        return os.getloadavg()[0]
    except OSError:
        return math.nan


def record(
    name: str,
    title: str,
    text: str,
    report: Report,
    *,
    quick: bool,
    threads: int,
    loads: tuple[float, float],
    took: float,
) -> dict[str, Any]:
    """Everything about one workload's run, ready for JSON."""
    return {
        "workload": name,
        "title": title,
        "text": text,
        "when": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "quick": quick,
        "machine": machine(threads),
        "load before and after": list(loads),
        "took seconds": took,
        "tables": [{"title": head, "rows": body} for head, body in report.tables],
        "verdicts": [vars(v) | {"met": v.met} for v in report.verdicts],
        "seconds": report.seconds,
    }


def save(entry: Mapping[str, Any], folder: Path) -> Path:
    """Write one workload's record; a rehearsal goes to a file of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{entry['workload']}{'.quick' if entry['quick'] else ''}.json"
    path.write_text(json.dumps(_plain(entry), indent=1, allow_nan=False) + "\n")
    return path


def _plain(value: Any) -> Any:
    """Numbers that JSON has no word for become text."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def cell(value: Any) -> str:
    """Three digits say enough about a ratio; an evidence keeps its decimals."""
    if value is None:
        return ""
    if isinstance(value, bool | str | int):
        return str(value)
    if not math.isfinite(value):
        return str(value)
    size = abs(value)
    if size >= 1000:
        return f"{value:,.2f}" if size < 1e7 else f"{value:.4g}"
    if 0 < size < 1e-3:
        return f"{value:.1e}"
    return f"{value:.3g}" if size < 100 else f"{value:.1f}"


def markdown_table(body: Iterable[Mapping[str, Any]]) -> str:
    """Rows as a Markdown table; the columns are the keys in order of first appearance, empty ones left out."""
    body = list(body)
    columns = list(dict.fromkeys(key for row in body for key in row if row[key] is not None))
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for row in body:
        lines.append("| " + " | ".join(cell(row.get(key)).replace("|", "\\|") for key in columns) + " |")
    return "\n".join(lines)


def promise(v: Mapping[str, Any]) -> str:
    """One line about a promise."""
    sign = {"<=": "at most", ">=": "at least"}[v["sense"]]
    value = float(v["value"])
    return f"- {'met' if v['met'] else '**missed**'}: {v['label']}: {cell(value)} ({sign} {cell(v['bound'])})"


def section(entry: Mapping[str, Any]) -> str:
    """One workload on the page."""
    parts = [f"## {entry['title']} (`{entry['workload']}`)", entry["text"].strip()]
    for table in entry["tables"]:
        parts += [table["title"]] if table["title"] else []
        parts.append(markdown_table(table["rows"]))
    parts.append("\n".join(promise(v) for v in entry["verdicts"]))
    before, after = entry["load before and after"]
    threads = entry["machine"]["blas threads"]
    parts.append(
        f"<sub>{entry['when']}, {threads} BLAS threads, load {cell(before)} to {cell(after)}, "
        f"{cell(entry['took seconds'])} s.</sub>"
    )
    return "\n\n".join(part for part in parts if part)


def faster_peers(entries: Iterable[Mapping[str, Any]]) -> list[str]:
    """One line per peer that is faster than we are anywhere, with the range of its time over ours."""
    lines = []
    for entry in entries:
        found: dict[str, list[float]] = {}
        for table in entry["tables"]:
            for row in table["rows"]:
                if row.get("role") == "peer" and row.get("time / ours") is not None:
                    found.setdefault(row["contestant"], []).append(float(row["time / ours"]))
        for name, ratios in found.items():
            wins = [r for r in ratios if r < 1.0]
            if wins:
                spread = cell(min(wins)) + (f" to {cell(max(wins))}" if len(wins) > 1 else "")
                where = f"in {len(wins)} of {len(ratios)} cases (`{entry['workload']}`)"
                lines.append(f"- {name} takes {spread} of our time {where}")
    return lines


_HEAD = re.compile(r"^## .*\(`(\w+)`\)$", re.MULTILINE)
_OF = re.compile(r"\(`(\w+)`\)")
LOSSES = "## Where we do not win"


def sections(page: str) -> dict[str, str]:
    """The sections of a page, by workload."""
    heads = list(_HEAD.finditer(page))
    ends = [*(head.start() for head in heads), len(page)][1:]
    return {head[1]: page[head.start() : end].strip() for head, end in zip(heads, ends, strict=True)}


def _losses(entries: Sequence[Mapping[str, Any]], before: str) -> list[str]:
    """Promises missed and peers that are faster; of workloads without a record those that the page has named."""
    found = [
        f"- {v['label']} (`{e['workload']}`): {cell(float(v['value']))} against {cell(v['bound'])}"
        for e in entries
        for v in e["verdicts"]
        if not v["met"]
    ] + faster_peers(entries)
    renewed = {e["workload"] for e in entries}
    old = before.partition(LOSSES)[2].partition("\n## ")[0].splitlines()
    return found + [line for line in old if (of := _OF.search(line)) and of[1] not in renewed]


def page(entries: Iterable[Mapping[str, Any]], names: Sequence[str] = (), before: str = "") -> str:
    """The whole page, workloads in the order of `names`; the machine is named once, from the newest run.

    Records are not kept for ever: of a workload without one the section of the page before stays as it was.
    """
    entries = list(entries)
    newest = max(entries, key=lambda e: e["when"])
    facts = ", ".join(
        f"{key} {value}" for key, value in newest["machine"].items() if key not in ("cpu", "blas threads")
    )
    there = sections(before) | {entry["workload"]: section(entry) for entry in entries}
    names = list(names) or list(there)
    missing = [name for name in names if name not in there]
    losses = LOSSES + "\n\n" + ("\n".join(_losses(entries, before)) or "Nowhere on this page.")
    machine = f"Machine: {newest['machine']['cpu']}, {facts}."
    gaps = [f"Workloads without a full run yet: {', '.join(f'`{name}`' for name in missing)}."] if missing else []
    return (
        "\n\n".join([INTRO.strip(), machine, *gaps, losses, *(there[name] for name in names if name in there)]) + "\n"
    )


def print_verdicts(verdicts: Iterable[Verdict]) -> None:
    """One line each on the terminal."""
    for v in verdicts:
        print("  " + promise(vars(v) | {"met": v.met}).removeprefix("- "))
