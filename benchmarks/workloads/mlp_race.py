"""Networks beside NUTS: effective draws per second of predictions, seed by seed."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import delve_cases
from benchmarks.harness import Case, Contestant, Report, Verdict
from benchmarks.network_cases import log_loss
from benchmarks.sampler_cases import quantities, target
from benchmarks.sampler_race import Outcome, Worth, apart, footnotes, one_turn, pooled, role, worth
from benchmarks.sampler_run import Setting
from benchmarks.sampler_worker import NETWORK, OWN

TITLE = "Networks: sampling weights and hyperparameters"
TEXT = """Posterior of a network of 8 tanh units with direct connections and all its hyperparameters (Rasmussen's
priors, ARD in three layers; 108 parameters), n = 256 cases, 8 inputs. Ours run on `bs.models.mlp` with their defaults;
the second has trajectories of a hundred steps, without windows, from a
new momentum each. The peers have their defaults and the gradient that they find
themselves, on the weights as they are ("centred") and in units of their deviations; NUTS of PyMC also on
`bs.models.mlp`, which has our gradient. Two chains one after the other on one core, 1000 draws of tuning and 1000 kept,
everybody with the same seeds in one run. The effective size is the smaller of bulk and tail of the worst of the outputs
at ten test cases; seconds are of processor and include tuning; compilation is apart. Hidden units may change places, so
weights have no effective size, and predictions have. Log loss: minus the mean log density of the test targets,
standardised, under the mixture of all draws of one run; the median of the seeds. R-hat: the largest of all runs. MCSE
apart: all chains of all seeds pooled, difference of means from the other side's, typical of those who converged."""
GOAL, PER_SECOND = 4.0, 20.0
CASES = 256
PEERS = [
    "nutpie, centred",
    "nutpie, non-centred",
    "NumPyro NUTS, centred",
    "NumPyro NUTS, non-centred",
    "PyMC NUTS, centred",
]
#: a tenth as fast as the others: one seed is enough to know that
ONCE = ("PyMC NUTS, centred",)
#: folder in which turns are kept, so that a run can be cut into pieces; a turn found there is not run again
KEEP = "BENCHMARK_TURNS"


def cases(quick: bool) -> list[Case]:
    """Problems and names; the clock is each contestant's own."""
    family = "kin-8nm" if not quick and delve_cases.there("kin-8nm") else "friedman"
    racers = [Contestant(name, role(name), lambda data: None) for name in [*NETWORK, *PEERS]]
    name = f"mlp {family} {20 if quick else CASES}"
    return [Case(name, lambda: target(name), racers, rounds=1 if quick else 5)]


def turn(case: str, name: str, setting: Setting) -> Outcome:
    """One contestant with one seed, from the folder of earlier turns if it is there."""
    folder = os.environ.get(KEEP)
    path = Path(folder, f"{case} {name} {setting}.pickle".replace("/", "-")) if folder else None
    if path is not None and path.exists():
        kept: Outcome = pickle.loads(path.read_bytes())
        return kept
    found = Outcome(setting)
    one_turn(case, name, setting, found)
    print(f"    {case}, {name}, seed {setting.seed}: {found.why or f'{found.cpu[-1]:.2f} s'}", flush=True)
    if path is not None and found.why is None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pickle.dumps(found))
    return found


def rows(case: str, runs: Mapping[str, list[Outcome]]) -> list[dict[str, Any]]:
    """One row per contestant that ran: medians over its seeds, and how far these spread."""
    each = {name: [worth(quantities(case, one.draws[0])) for one in found] for name, found in runs.items() if found}
    together: dict[str, Worth] = {
        name: worth(quantities(case, pooled([one.draws[0] for one in runs[name]]))) for name in each
    }
    table = []
    for name, worths in each.items():
        found = runs[name]
        speed = [one.ess[one.least] / run.cpu[0] for one, run in zip(worths, found, strict=True)]
        gradients = sum(run.gradients[0] for run in found if run.gradients)
        effective = sum(one.ess[one.least] for one in worths)
        table.append(
            {
                "case": case,
                "contestant": name,
                "role": role(name),
                "ESS / s": median(speed),
                "least": min(speed),
                "most": max(speed),
                "ESS / 1000 gradients": 1000.0 * effective / gradients if gradients else None,
                "seconds": median(run.cpu[0] for run in found),
                "compiling (s)": median(run.compiling[0] for run in found),
                "R-hat": max(one.rhat for one in worths),
                "divergent": sum(run.diverging for run in found),
                "MCSE apart": apart(name, together),
                "log loss": median(log_loss(case, run.draws[0]) for run in found),
                "seeds": len(found),
            }
        )
    return table


def run(quick: bool, memory: Callable[..., Any]) -> Report:
    report = Report()
    outcomes: dict[str, dict[str, Outcome]] = {}
    n = 20 if quick else 1000
    for case in cases(quick):
        names = [one.name for one in case.contestants]
        runs: dict[str, list[Outcome]] = {name: [] for name in names}
        last: dict[str, Outcome] = {}
        for k in range(case.rounds):
            for name in names[k % len(names) :] + names[: k % len(names)]:
                if name in last and (last[name].why is not None or name in ONCE):
                    continue
                last[name] = turn(case.name, name, Setting(2, n, n, 1 + 1000 * k))
                if last[name].why is None:
                    runs[name].append(last[name])
        outcomes[case.name] = last
        table = rows(case.name, runs)
        report.tables.append(("", table))
        report.seconds[case.name] = {name: [run.seconds[0] for run in found] for name, found in runs.items()}
        report.verdicts += verdicts(case.name, table)
    report.tables += footnotes(outcomes)
    return report


def verdicts(case: str, table: list[dict[str, Any]]) -> list[Verdict]:
    """Ours against whichever peer is fastest, converged or not."""
    ours = next(row for row in table if row["contestant"] == OWN)
    found = [Verdict(f"effective draws per second, {case}", ours["ESS / s"], PER_SECOND, ">=")]
    peers = [row for row in table if row["role"] == "peer"]
    if peers:
        best = max(peers, key=lambda row: row["ESS / s"])
        label = f"effective draws per second over those of the best peer ({best['contestant']}), {case}"
        found.append(Verdict(label, ours["ESS / s"] / best["ESS / s"], GOAL, ">="))
        losses = [row["log loss"] for row in peers]
        found.append(Verdict(f"log loss less the best peer's, nats, {case}", ours["log loss"] - min(losses), 0.01))
        found.append(Verdict(f"our means from the peers', MCSE, {case}", ours["MCSE apart"], 4.0))
    return found
