"""From the rows of a run to a record in JSON, and from records to tables in Markdown."""

from __future__ import annotations

import json
import math
import os
import platform
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.harness import Report, Verdict


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
        "command": f"python -m benchmarks --only {name}" + (" --quick" if quick else ""),
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
    path.write_text(json_text(entry))
    return path


def json_text(entry: Mapping[str, Any]) -> str:
    """A record as JSON, a line per row of a table."""
    text = json.dumps(_plain(entry), indent=1, allow_nan=False, ensure_ascii=False)
    flat = re.compile(r"\{[^{}\[\]]*\}")
    return flat.sub(lambda row: re.sub(r"\n\s*", " ", row[0]), text) + "\n"


def read(folder: Path, names: Iterable[str]) -> list[dict[str, Any]]:
    """Records of those workloads that have one."""
    return [json.loads(path.read_text()) for name in names if (path := folder / f"{name}.json").exists()]


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
    """One record in Markdown: its tables, its promises, the machine."""
    parts = [f"## {entry['title']} (`{entry['workload']}`)", entry["text"].strip()]
    for table in entry["tables"]:
        parts += [table["title"]] if table["title"] else []
        parts.append(markdown_table(table["rows"]))
    parts.append("\n".join(promise(v) for v in entry["verdicts"]))
    before, after = entry["load before and after"]
    facts = ", ".join(f"{key} {value}" for key, value in entry["machine"].items())
    parts.append(
        f"`{entry['command']}`, {entry['when']}, load {cell(before)} to {cell(after)}, "
        f"{cell(entry['took seconds'])} s; {facts}."
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


def losses(entries: Iterable[Mapping[str, Any]]) -> list[str]:
    """Promises missed, and peers that are faster anywhere."""
    entries = list(entries)
    missed = [
        f"- {v['label']} (`{e['workload']}`): {cell(float(v['value']))} against {cell(v['bound'])}"
        for e in entries
        for v in e["verdicts"]
        if not v["met"]
    ]
    return missed + faster_peers(entries)


def print_verdicts(verdicts: Iterable[Verdict]) -> None:
    """One line each on the terminal."""
    for v in verdicts:
        print("  " + promise(vars(v) | {"met": v.met}).removeprefix("- "))
