"""What our Hamiltonian step and the loops around it cost beside the gradients they ask for."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness import Case, Contestant, Race, Report, Role, Verdict, rows
from benchmarks.sampler_cases import Target, target

TITLE = "Samplers: overhead per draw"
TEXT = """The posterior of the 12 parameters of a Gaussian process on n cases, its value and gradient hand-written in
NumPy (one Cholesky factor and one inverse). K updates of one leapfrog step make a draw, so that a draw has K gradients;
the limit is that many calls of the bare function and nothing else, at points of that posterior. What "time / limit" has
above 1 is overhead: the compiled call around the function, leapfrog steps, momentum and decision, statistics, and the
loop around them, that of `pm.sample` or of `bs.sample`, storing and conversion included. One chain on one core. The
time is that of processor of a long run less that of a short one, so that whatever a call costs once is left out; all
take turns in one process, and the least time counts."""
IN_PYMC, IN_OURS, ALONE = "PersistentHMC in pm.sample", "PersistentHMC in bs.sample", "the gradients alone"
ROLES: dict[str, Role] = {IN_PYMC: "ours", IN_OURS: "ours", ALONE: "limit"}
FEW = 2
GRADIENTS = {False: 2500, True: 100}  # by whether it is a rehearsal
UPDATES = (1, 10, 25)
SENSIBLE = 25
GOAL = 1.2

Sampling = Callable[[int], None]


def cases(quick: bool) -> list[Case]:
    gradients = GRADIENTS[quick]
    return [
        Case(
            f"n = {n}, K = {k}",
            lambda n=n, k=k: samplers(target(f"gp {n}"), k),
            [
                Contestant(name, role, lambda data, name=name, k=k: extra(data[name], gradients // k))
                for name, role in ROLES.items()
            ],
            rounds=1 if quick else 5,
        )
        for n in ((20,) if quick else (100, 200))
        for k in UPDATES
    ]


def samplers(density: Target, k: int) -> dict[str, Sampling]:
    """Everybody compiled and called once."""
    found = {name: make(density, k) for name, make in ((IN_PYMC, in_pymc), (IN_OURS, in_ours), (ALONE, alone))}
    for sample in found.values():
        sample(FEW)
    return found


def extra(sample: Sampling, draws: int) -> float:
    """Seconds of processor of `draws` draws: of a run of so many and a few less that of a run of the few."""
    start = time.process_time()
    sample(FEW)
    middle = time.process_time()
    sample(FEW + draws)
    return (time.process_time() - middle) - (middle - start)


def _model_and_step(density: Target, k: int) -> tuple[Any, Any]:
    """PersistentHMC with a fixed and fitting step size: no tuning in the way."""
    import bayessel as bs
    from benchmarks.sampler_pymc import declare

    model = declare(density)
    with model:
        return model, bs.PersistentHMC(step_size=0.2, persistence=0.9, updates_per_draw=k, tune=False)


def in_pymc(density: Target, k: int) -> Sampling:
    """`pm.sample` with the step."""
    import pymc as pm

    from benchmarks.sampler_pymc import QUIET

    model, step = _model_and_step(density, k)

    def sample(draws: int) -> None:
        with model:
            pm.sample(draws, tune=0, chains=1, step=step, random_seed=1, initvals=_start(density), **QUIET)

    return sample


def in_ours(density: Target, k: int) -> Sampling:
    """`bayessel.sample` with the step."""
    import bayessel as bs

    model, step = _model_and_step(density, k)

    def sample(draws: int) -> None:
        options: dict[str, Any] = {"step": step, "random_seed": 1, "initvals": _start(density), "progressbar": False}
        bs.sample(model, draws, tune=0, chains=1, cores=1, **options)

    return sample


def alone(density: Target, k: int) -> Sampling:
    """The function and nothing else."""
    call = density.value_and_gradient
    assert call is not None
    points = [_start(density)["q"] + 0.1 * z for z in np.random.default_rng(1).standard_normal((64, density.size))]

    def sample(draws: int) -> None:
        for j in range(draws * k):
            call(points[j % 64])

    return sample


def _start(density: Target) -> dict[str, Any]:
    return {"q": np.full(density.size, -1.0)}


def measure(case: Case) -> Race:
    """Everybody by turns; the contestants time themselves."""
    found, data, runners = Race(), case.data(), list(case.contestants)
    for k in range(case.rounds):
        shift = k % len(runners)
        for runner in runners[shift:] + runners[:shift]:
            seconds = float(runner.run(data))
            found.seconds.setdefault(runner.name, []).append(seconds)
            found.cpu.setdefault(runner.name, []).append(seconds)
    return found


def run(quick: bool, memory: Callable[..., Any]) -> Report:
    report = Report(tables=[("", [])])
    for case in cases(quick):
        outcome = measure(case)
        draws = GRADIENTS[quick] // int(case.name.split()[-1])
        limit = outcome.best(ALONE)
        more = {
            name: {
                "overhead per draw (µs)": 1e6 * (outcome.best(name) - limit) / draws,
                "gradients per draw (µs)": 1e6 * limit / draws,
            }
            for name in (IN_PYMC, IN_OURS)
        }
        report.seconds[case.name] = outcome.seconds
        for row in rows(case, outcome, more):
            del row["cpu / ours"]
            report.tables[0][1].append(row)
        if quick or case.name == f"n = 200, K = {SENSIBLE}":
            for name in (IN_PYMC, IN_OURS):
                label = f"time of {name} over that of the gradients, {case.name}"
                report.verdicts.append(Verdict(label, outcome.ratio(name, ALONE), GOAL))
    return report
