"""What a trace says of its run, in words: how it ended, and where the time went."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from bayessel.chains.findings import Finding, few
from bayessel.diagnostics._trace import run_attributes, statistics


def status_advice(trace: Any) -> str:
    return str(run_attributes(trace).get("advice", "") or "")


def unfinished(trace: Any) -> list[Finding]:
    """A run that ended before its plan."""
    status = str(run_attributes(trace).get("status", "complete"))
    if status == "complete":
        return []
    return [Finding("status", f"The run ended early: {status}.", status_advice(trace), problem=False)]


def time_spent(
    table: pd.DataFrame, trace: Any, seconds: float | None, steps: dict[str, float], total: int
) -> list[Finding]:
    """Where the time went, and what it bought."""
    ess = table["ess_bulk"].dropna()
    said = []
    if seconds and len(ess):
        said.append(
            f"{seconds:.3g} s of sampling bought {ess.min() / seconds:.3g} effective draws per second of "
            f"{ess.idxmin()}, the slowest, and {ess.median() / seconds:.3g} of the median variable."
        )
    if (spent := sum(steps.values())) > 0.0:
        parts = sorted(steps.items(), key=lambda item: -item[1])
        said.append(f"Time went to {few([f'{name} ({s / spent:.0%})' for name, s in parts], 4)}.")
    gradients = statistics(trace).get("n_steps")
    if gradients is not None and len(ess) and (count := float(np.sum(gradients))) > 0.0:
        said.append(f"{count / total:.3g} gradient evaluations per draw, {count / ess.min():.3g} per effective one.")
    return [Finding("time", " ".join(said), problem=False)] if said else []
