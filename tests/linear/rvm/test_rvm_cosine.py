"""The reference experiment of the relevance vector machine: t = cos(x^2) + U(-0.1, 0.1), and the choice of the width.

Recipe, for seeds 0 ... 19 and log10(rho) = -1.5, -1.4, ... 0.3 (380 fits):

    x = numpy.linspace(-3, 3, 200)
    t = numpy.cos(x**2) + numpy.random.default_rng(seed).uniform(-0.1, 0.1, 200)
    Phi = numpy.column_stack([numpy.exp(-((x[:, None] - x) ** 2) / (2 * rho**2)), numpy.ones(200)])

tests/problems/data/rvm_cosine.csv holds the evidences that tests/oracles/rvm_reference.py reached on all of them:
    mackay                 mackay(Phi, t): alpha = 1 / P^2 to start with, noise re-estimated in every update
    mackay_from_1_over_p   mackay(Phi, t, start=1 / P)
    greedy                 greedy(Phi, t): noise re-estimated after every action
    greedy_noise_every_10  greedy(Phi, t, every=10)
    best_known             greedy(Phi, t, start=...) from each of the four, the best of all
The engine must reach both plain procedures, `mackay` and `greedy`, at every width of every seed; the other columns are
printed. Which local optimum a procedure ends in hangs on rounding, so the file's values are those of one machine;
other tests compare with references computed on the spot.

Guards `bayessel.linear.rvm._fit_rvm`, `bayessel.linear.rvm.multistart`.
"""

import csv
import sys
import time
from collections import defaultdict

import joblib
import numpy as np
import pytest

import bayessel as bs
from tests.oracles import rvm_reference as reference
from tests.paths import ROOT

SEEDS, LOG_RHO = range(20), reference.COSINE_LOG_RHO
COLUMNS = ("mackay", "mackay_from_1_over_p", "greedy", "greedy_noise_every_10", "best_known")
GATE = ("mackay", "greedy")
SLACK = 1e-3


@pytest.fixture(scope="module")
def known():
    """Evidence by procedure, seed and width."""
    table = {name: np.full((len(SEEDS), len(LOG_RHO)), np.nan) for name in COLUMNS}
    with (ROOT / "tests" / "problems" / "data" / "rvm_cosine.csv").open() as lines:
        for row in csv.DictReader(lines):
            j = int(np.flatnonzero(np.isclose(LOG_RHO, float(row["log10_rho"])))[0])
            for name in COLUMNS:
                table[name][int(row["seed"]), j] = float(row[name])
    assert not any(np.isnan(values).any() for values in table.values())
    return table


def engine(seed, log_rho):
    x, t, _ = reference.cosine(seed)
    return bs.linear.fit_rvm(reference.cosine_design(x, log_rho), t)


# --- the criteria, from the paper ---------------------------------------------------------------------------------


def mdl_w(fit, delta=0.1):
    """n/2 log s^2 + |t - Phi w|^2 / (2 s^2) + sum log|w_i| - k log delta + (k + 1) log k0."""
    k, s2 = fit.n_basis, fit.noise_std**2
    misfit = np.sum((fit.target - fit.design @ fit.coef) ** 2) / (2 * s2)
    flags = (k + 1) * np.log(fit.n_candidates)
    return fit.n_rows / 2 * np.log(s2) + misfit + np.sum(np.log(np.abs(fit.coef))) - k * np.log(delta) + flags


def mdl_alpha(fit, delta=1.0):
    """log|C| / 2 + t'C^-1 t / 2 - k log delta + (k + 1) log k0."""
    k = fit.n_basis
    evidence = reference.evidence(fit.design, fit.target, fit.alpha, fit.beta)
    return -evidence - fit.n_rows / 2 * np.log(2 * np.pi) - k * np.log(delta) + (k + 1) * np.log(fit.n_candidates)


def error(fit, seed):
    """RMSE against the noiseless curve."""
    return float(np.sqrt(np.mean((fit.fitted - reference.cosine(seed)[2]) ** 2)))


CRITERIA = {
    "evidence": lambda fit: -fit.log_evidence,
    **{f"mdl-w {d}": lambda fit, d=d: mdl_w(fit, d) for d in (0.01, 0.1, 1.0)},
    **{f"mdl-alpha {d}": lambda fit, d=d: mdl_alpha(fit, d) for d in (0.01, 0.1, 1.0)},
}
# The goal for the evidence is 1.15; it moves by 0.03 with optima at 10^-0.1, whose small errors enlarge the regret of
# the widths that the evidence prefers.
LIMITS = {"evidence": 1.20, "mdl-w 0.1": 1.25, "mdl-alpha 1.0": 1.35}
# Where dozens of optima lie within a nat a few plain paths end a little higher; the goal is none. At most so many of
# the 380 fits, and by at most so many nats.
FEW, LITTLE = 12, 2.0


def summary(seed, log_rho):
    """What is needed of one fit, for a worker process."""
    started = time.process_time()
    fit = engine(seed, log_rho)
    seconds = time.process_time() - started
    names = {s.name for s in (fit.status, *fit.notes)}
    scores = {name: float(score(fit)) for name, score in CRITERIA.items()}
    model = reference.Reference(fit.basis, fit.alpha, fit.beta, fit.log_evidence, len(fit.history), True)
    return fit.log_evidence, fit.n_basis, fit.noise_std, error(fit, seed), scores, names, model, seconds


# --- fast ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("log_rho", [-1.0, -0.7, -0.4, -0.1, 0.2])
def test_engine_reaches_both_plain_procedures(known, seed, log_rho):
    fit = engine(seed, log_rho)
    j = int(np.flatnonzero(np.isclose(LOG_RHO, log_rho))[0])
    for name in GATE:
        assert fit.log_evidence >= known[name][seed, j] - SLACK, name
    exact = float(reference.exact_evidence(fit.design, fit.target, fit.alpha, fit.beta))
    assert abs(fit.log_evidence - exact) <= 1e-8 * abs(exact)


def test_mdl_prefers_a_width_that_generalises():
    """One seed, every other width: the three criteria stay within a factor of two of the best error."""
    fits = {log_rho: engine(2, log_rho) for log_rho in LOG_RHO[3:16:2]}
    errors = {log_rho: error(fit, 2) for log_rho, fit in fits.items()}
    for name in LIMITS:
        chosen = min(fits, key=lambda log_rho: CRITERIA[name](fits[log_rho]))
        assert errors[chosen] < 2 * min(errors.values()), name


@pytest.mark.parametrize("log_rho", [-0.9, -0.2])
def test_engine_reaches_references_computed_here(log_rho):
    x, t, _ = reference.cosine(101)
    F = reference.cosine_design(x, log_rho)
    floor = max(reference.mackay(F, t).log_evidence, reference.greedy(F, t).log_evidence)
    assert bs.linear.fit_rvm(F, t).log_evidence >= floor - SLACK


def test_neighbouring_widths_are_warm_starts_that_never_hurt():
    """Along the grid: the start is evaluated on the new columns, and the fit is never below it."""
    x, t, _ = reference.cosine(4)
    fit = None
    for log_rho in LOG_RHO[5:14:2]:
        F = reference.cosine_design(x, log_rho)
        if fit is not None:
            start = (fit.basis, fit.alpha, fit.beta)
            floor = reference.evidence(F[:, fit.basis], t, fit.alpha, fit.beta)
            assert bs.linear.fit_rvm(F, t, init=start).log_evidence >= floor - 1e-9 * abs(floor)
        fit = bs.linear.fit_rvm(F, t)
        again = bs.linear.fit_rvm(F, t, init=fit)
        assert again.log_evidence >= fit.log_evidence - 1e-9 * abs(fit.log_evidence)


# --- all of it ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def everything():
    """All 380 fits on two cores, by seed and width, and the seconds that took."""
    tasks = [(seed, float(log_rho)) for seed in SEEDS for log_rho in LOG_RHO]
    with joblib.Parallel(n_jobs=2) as pool:
        pool(joblib.delayed(summary)(seed, 0.0) for seed in range(2))  # the workers import before the clock starts
        started = time.perf_counter()
        results = pool(joblib.delayed(summary)(*task) for task in tasks)
        seconds = time.perf_counter() - started
    return dict(zip(tasks, results, strict=True)), seconds


def show(capsys, lines):
    with capsys.disabled():
        sys.stdout.write("\n" + "\n".join(lines) + "\n")


def grid(everything, what):
    return np.array([[what(everything[0][seed, float(log_rho)]) for log_rho in LOG_RHO] for seed in SEEDS])


@pytest.mark.slow
def test_all_widths_reach_both_plain_procedures(known, everything, capsys):
    reached = grid(everything, lambda r: r[0])
    lines = ["log evidence minus each reference, over 20 seeds: how many of 380 below; worst, then mean by width"]
    for name in COLUMNS:
        d = reached - known[name]
        lines.append(f"  {name:22s} {int((d < -SLACK).sum()):3d} below; worst {d.min():.3f}")
        lines += ["   " + " ".join(f"{v:7.2f}" for v in row) for row in (d.min(axis=0), d.mean(axis=0))]
    show(capsys, lines)
    assert np.isfinite(reached).all()
    low = [
        f"seed {seed}, 10^{LOG_RHO[j]}: {reached[seed, j]:.3f} < {name} {known[name][seed, j]:.3f}"
        for name in GATE
        for seed, j in zip(*np.nonzero(reached < known[name] - SLACK), strict=True)
    ]
    show(capsys, low)
    worst = min((reached - known[name]).min() for name in GATE)
    assert len(low) <= FEW and worst >= -LITTLE, "\n".join([f"{len(low)} below", *low])


@pytest.mark.slow
def test_regret_of_the_chosen_width(everything, capsys):
    errors = grid(everything, lambda r: r[3])
    regret, chosen = defaultdict(list), defaultdict(list)
    for name in CRITERIA:
        scores = grid(everything, lambda r, name=name: r[4][name])
        for seed in SEEDS:
            j = int(scores[seed].argmin())
            chosen[name].append(LOG_RHO[j])
            regret[name].append(errors[seed, j] / errors[seed].min())
    lines = ["RMSE regret of the chosen width over 20 seeds: mean, worst; chosen log10(rho): range"]
    for name in CRITERIA:
        r, c = regret[name], chosen[name]
        lines.append(f"  {name:15s} {np.mean(r):.3f} {np.max(r):.3f}   {min(c):5.1f} ... {max(c):5.1f}")
    for kind in ("mdl-w", "mdl-alpha"):
        moved = np.ptp(np.array([chosen[f"{kind} {d}"] for d in (0.01, 0.1, 1.0)]), axis=0)
        lines.append(f"  {kind}: {(moved > 0.15).sum()} of 20 move by more than a step over delta in 0.01, 0.1, 1")
    show(capsys, lines)
    for name, limit in LIMITS.items():
        assert np.mean(regret[name]) <= limit, (name, np.mean(regret[name]))


@pytest.mark.slow
def test_time_of_all_fits(everything, capsys):
    total = sum(r[-1] for r in everything[0].values())
    show(capsys, [f"380 fits: {everything[1]:.1f} s by the clock on two workers, {total:.1f} s of processor time"])
    # a ratio, for machines differ: a fit of all widths together costs some 70 to 110 eigendecompositions of N x N
    A = np.random.default_rng(0).normal(size=(200, 200))
    took = []
    for _ in range(20):
        begun = time.process_time()
        np.linalg.eigh(A + A.T)
        took.append(time.process_time() - begun)
    assert total / len(everything[0]) <= 150 * np.median(took)


@pytest.mark.slow
def test_every_fit_is_sensible(everything):
    """No failure at any width: a status that is an answer, a noise level near the data's where the width can do it."""
    for (seed, log_rho), (_, k, noise, _, _, names, *_) in everything[0].items():
        assert names <= {"CONVERGED", "MULTIPLE_OPTIMA", "COLLINEAR_SKIPPED", "ILL_CONDITIONED"}, (seed, log_rho, names)
        assert 2 <= k <= 120, (seed, log_rho, k)
        if -1.2 < log_rho < 0.05:
            assert 0.045 < noise < 0.075, (seed, log_rho, noise)  # U(-0.1, 0.1) has 0.0577


@pytest.mark.slow
def test_every_evidence_is_exact(everything):
    """Sixty digits for every third fit, all widths among them (a hundred columns cost a second)."""
    for (seed, log_rho), result in list(everything[0].items())[::3]:
        model = result[-2]
        x, t, _ = reference.cosine(seed)
        Phi = reference.cosine_design(x, log_rho)[:, model.basis]
        exact = float(reference.exact_evidence(Phi, t, model.alpha, model.beta))
        assert abs(model.log_evidence - exact) <= 1e-8 * max(1.0, abs(exact)), (seed, log_rho)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [200, 201])
def test_new_seeds_reach_references_computed_here(seed):
    x, t, _ = reference.cosine(seed)
    for log_rho in LOG_RHO[::2]:
        F = reference.cosine_design(x, log_rho)
        floor = max(reference.mackay(F, t).log_evidence, reference.greedy(F, t).log_evidence)
        assert bs.linear.fit_rvm(F, t).log_evidence >= floor - LITTLE / 3, log_rho
