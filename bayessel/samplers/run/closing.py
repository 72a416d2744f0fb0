"""What is said of a run when it has ended: the verdict on its draws, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np
import xarray as xr

from bayessel.chains.findings import few
from bayessel.chains.verdict import NOT_YET, USABLE, Judgement, judged
from bayessel.samplers.run.kernel import Kernel

#: elements that are looked at closely at most, the slowest of all: a tenth of a second for four chains of 1000 draws
MOST = 100


def unidentified(kernel: Kernel) -> list[str]:
    """Variables of which chains may differ though they agree in what the model predicts."""
    return [name for step in kernel.steps for name in getattr(step, "unidentified", ())]


def judge(result: xr.DataTree, leave_out: Sequence[str] = ()) -> Judgement:
    """Judge the draws of a run, and write the verdict into the attributes of its result."""
    began = perf_counter()
    posterior = result["posterior"].to_dataset()
    seen = {str(name): value.values for name, value in result["sample_stats"].data_vars.items()}
    other = [name for name, value in posterior.data_vars.items() if value.dtype.kind not in "biuf" or name in leave_out]
    found = judged(posterior.drop_vars(other), {k: v for k, v in seen.items() if v.dtype.kind in "biuf"}, MOST)
    table = found.table
    numbers = {
        "largest_r_hat": table["r_hat"].max(),
        "smallest_ess_bulk": table["ess_bulk"].min(),
        "smallest_ess_tail": table["ess_tail"].min(),
    }
    result.attrs |= {
        "verdict": found.verdict,
        **{name: float(value) for name, value in numbers.items() if np.isfinite(value)},
        "divergences": divergences(seen),
        "verdict_elements": f"{len(table)} of {found.elements}",
        "verdict_time": perf_counter() - began,
    }
    if reasons := [_sentence(one) for one in found.findings]:
        result.attrs["verdict_reasons"] = "\n".join(reasons)
    return found


def divergences(seen: dict[str, Any]) -> int:
    """Divergent transitions after tuning."""
    return int(np.sum(seen["diverging"])) if "diverging" in seen else 0


def closing_lines(found: Judgement, diverged: int) -> str:
    """Two lines: how the chains have mixed, and what to do."""
    size = f"{found.chains} chain{'s' if found.chains != 1 else ''} of {found.draws} draws"
    looked = len(found.table)
    among = f" (slowest {looked} of {found.elements} numbers)" if looked < found.elements else ""
    parts = [part for part in (found.worst, f"{diverged or 'no'} divergence{'s' if diverged != 1 else ''}") if part]
    said = f"Do not use these draws yet. {found.problems[0].advice}" if found.verdict == NOT_YET else _what_to_do(found)
    return f"{size}: {', '.join(parts)}{among}\n{said}"


def warning(found: Judgement) -> str:
    """What stands against using the draws, in a warning; empty where nothing does, or nobody can tell."""
    return f"{_what_to_do(found)}; bs.diagnostics.convergence(trace) says more" if found.verdict == NOT_YET else ""


def _what_to_do(found: Judgement) -> str:
    if found.verdict == USABLE:
        return "Nothing stands against using these draws."
    first = found.problems[0]
    if found.verdict != NOT_YET:
        return f"No verdict: {_sentence(first)}"
    others = [one.kind for one in found.problems[1:]]
    more = f" Also: {few(others)}" if others else ""
    return f"Do not use these draws yet. {_sentence(first)}{more}".rstrip(".")


def _sentence(finding: Any) -> str:
    return f"{finding.text} {finding.advice}".strip()
