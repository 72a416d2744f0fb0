"""Full Bayes for linear models beside NUTS: effective draws per second."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.harness import Case, Contestant, Report, Verdict
from benchmarks.sampler_cases import regression
from benchmarks.sampler_race import best_peer, footnotes, role, table, turns
from benchmarks.sampler_run import Setting
from benchmarks.sampler_worker import FORMS, GIBBS, NUTS

TITLE = "Full Bayes for linear models, beside NUTS"
TEXT = """Effective draws per second of the worst of twelve quantities: log beta, the log evidence
log N(t | 0, I/beta + Phi A^-1 Phi') of the draw's precisions, and predictions at ten new inputs. `rvm N`: 1-D sinc,
noise 0.1, gaussians of r = 2 at the N inputs and a bias, a precision for each weight. `linear N M`: normal columns, one
precision for all weights. Hyperpriors Gamma(0.01, 0.01) throughout. `bs.sample` finds the conjugate blocks in the
model's graph. The peers sample the same posterior in several forms, and the best counts: centred (log alpha, log beta,
w), non-centred (w = z / sqrt(alpha)), and collapsed: (log alpha, log beta), the weights integrated out by hand and
drawn afterwards, exactly, in NumPy and within the time. With one common alpha that collapses further, in the singular
vectors of Phi, to two dimensions and a density of M terms. On PyTensor the collapsed form has a hand-written gradient,
on JAX an automatic one.

Everybody has four chains, one after the other on one core, of as many tuning draws as kept ones: 500, and 150 for the
collapsed form of `rvm`, where a draw takes a tenth of a second (and without the JAX samplers, whose automatic gradient
takes three times as long). The time covers tuning and draws; compilation and a first call are apart ("compiling", with
whatever the caches held), and so is what a call of a few draws takes. Seconds are those of processor, all threads
together ("clock / cpu" is 1 on a machine to itself). Who takes less than 20 s has a second turn with another seed: all
chains are pooled, and the best time counts for both. Effective draws are the smaller of ArviZ's rank-normalised bulk
and tail sizes. "MCSE apart" is the largest difference between a contestant's means and another's in Monte Carlo
standard errors: the lower median over all others that converged (for ours: over the peers). R-hat above 1.1 or more
than 4 MCSE: not sound, and without a time, for a fast wrong sampler is not fast."""
OURS = "bs.sample"
GOAL = 5.0
COLLAPSED_DRAWS = 150
TOO_SLOW = ("NumPyro NUTS, collapsed", "BlackJAX NUTS, collapsed")  # three times the time, see above


def cases(quick: bool) -> list[Case]:
    """Problems and names; the clock is each contestant's own."""
    found = []
    for name in ("rvm 20", "linear 60 5") if quick else ("rvm 200", "linear 1000 100"):
        shared = name.startswith("linear")
        names = [*GIBBS, *(one for one in NUTS if shared or (NUTS[one].form != "spectral" and one not in TOO_SLOW))]
        racers = [Contestant(one, "ours" if role(one) == "ours" else "peer", lambda data: None) for one in names]
        found.append(Case(name, lambda name=name: regression(name), racers, rounds=1 if quick else 2))
    return found


def setting(case: str, name: str, quick: bool) -> Setting:
    """Draws of a contestant."""
    slow = case.startswith("rvm") and name in NUTS and NUTS[name].form == "collapsed"
    n = 100 if quick else COLLAPSED_DRAWS if slow else 500
    return Setting(4, n, n, seed=1)


def run(quick: bool, memory: Callable[..., Any]) -> Report:
    report = Report()
    found = {}
    for case in cases(quick):
        found[case.name] = turns(
            case.name, {c.name: setting(case.name, c.name, quick) for c in case.contestants}, case.rounds
        )
        rows = table(case.name, found[case.name], OURS)
        report.tables.append(("", rows))
        report.seconds[case.name] = {name: one.seconds for name, one in found[case.name].items()}
        report.verdicts += verdicts(case.name, rows)
    report.tables += footnotes(found)
    return report


def verdicts(case: str, rows: list[dict[str, Any]]) -> list[Verdict]:
    """Our speed over that of the best sound peer, and the agreement of means."""
    ours = next(row for row in rows if row["contestant"] == OURS)
    found = []
    spectral = FORMS["spectral"]
    best = best_peer(rows)
    if best is not None:
        found.append(_faster(f"the best peer ({best['contestant']})", case, ours, best))
    if best is not None and spectral in best["contestant"]:
        other = best_peer(row for row in rows if spectral not in row["contestant"])
        if other is not None:
            found.append(_faster(f"the best peer not in singular vectors ({other['contestant']})", case, ours, other))
    found.append(Verdict(f"our means from the peers', MCSE, {case}", ours["MCSE apart"], 4.0))
    return found


def _faster(whom: str, case: str, ours: dict[str, Any], peer: Any) -> Verdict:
    return Verdict(
        f"effective draws per second over those of {whom}, {case}", ours["ESS / s"] / peer["ESS / s"], GOAL, ">="
    )
