"""Decisions that several methods share: each number is what its reason says, and the methods read it.

Guards `bayessel.policy`, `bayessel.criteria._criterion`.
"""

import numpy as np
import pandas as pd
import pytest

from bayessel import policy
from bayessel.basis import RBFDictionary
from bayessel.criteria import CRITERIA
from bayessel.criteria.description_length import MDL_W
from bayessel.criteria.error_estimates import BIC, FPE, GCV, UEV
from bayessel.criteria.evidence import EVIDENCE
from bayessel.criteria.leave_one_out import ELPD_LOO, LOO
from bayessel.diagnostics._bridge import Bridge
from bayessel.fit import Status
from bayessel.gp import fit_map
from bayessel.linear import fit_evidence, fit_ridge, search
from bayessel.widths import _rvm, _selection
from bayessel.widths._problem import Candidate, WidthProblem
from bayessel.widths.curves import needs_attention, scales
from tests.problems.widths import verdict


@pytest.mark.parametrize("criterion", [GCV, LOO, ELPD_LOO, MDL_W])
def test_ratios_of_vanishing_numbers_are_heard_up_to_nine_tenths(criterion):
    assert criterion.has_meaning(100, 90.0) and not criterion.has_meaning(100, 90.1)


@pytest.mark.parametrize("criterion", [UEV, FPE, BIC])
def test_expansions_are_heard_up_to_three_quarters(criterion):
    assert criterion.has_meaning(100, 75.0) and not criterion.has_meaning(100, 75.1)


def test_evidences_do_not_depend_on_rows_left():
    silent = {name for name, one in CRITERIA.items() if not one.has_meaning(100, 100.0)}
    assert silent == {one.name for one in (GCV, LOO, ELPD_LOO, MDL_W, UEV, FPE, BIC)}


def test_errors_of_fits_to_noise_are_seen_through_where_the_shares_say(rng):
    """Columns of noise fitted to noise: with a tenth of the rows left GCV still says that they are worthless.

    UEV is expected not to fall at all, but at a tenth it scatters so much that one in twenty is far below the truth, 1;
    at a quarter it is not.
    """
    n, draws = 120, 200

    def errors(share):
        left = round(share * n)
        S = rng.chisquare(left, size=draws)  # squared residuals of least squares with n - left columns
        return {name: CRITERIA[name].of_sums(n, S, float(left)) for name in (GCV.name, UEV.name)}

    assert errors(policy.NOISE_SHARE_OF_RATIOS)[GCV.name].min() > 1.5
    assert np.quantile(errors(policy.NOISE_SHARE_OF_EXPANSIONS)[UEV.name], 0.05) > 0.6
    assert np.quantile(errors(policy.NOISE_SHARE_OF_RATIOS)[UEV.name], 0.05) < 0.6


def test_ridge_prefers_no_minimum_that_leaves_less():
    x = np.linspace(0, 1, 40)
    Phi = np.exp(-((x[:, None] - x) ** 2) / 0.02**2)
    t = np.sin(9 * x) + 0.3 * np.random.default_rng(4).normal(size=40)
    for name in (GCV.name, UEV.name, FPE.name, BIC.name):
        fit = fit_ridge(Phi, t, criterion=name)
        sound = [CRITERIA[name].has_meaning(40, 40 - float(fit.spectrum.trace_p(one.lam))) for one in fit.optima]
        assert sound == sorted(sound, reverse=True), name  # those that leave too little come last


def test_noise_shares_of_searches_are_in_order():
    """Below certainty other starts are tried; far below, the fit interpolates; a network needs three rows besides."""
    assert 0.0 < policy.NOISE_SHARE_OF_EVIDENCES < policy.NOISE_SHARE_OF_CERTAINTY < 0.5
    assert policy.leaves_noise(30, 27.0, policy.NOISE_SHARE_OF_EVIDENCES)
    assert not policy.leaves_noise(30, 27.1, policy.NOISE_SHARE_OF_EVIDENCES)
    # a variance estimated from three rows is off by a factor of two and a half either way, from two by four
    assert policy.NOISE_ROWS_OF_NETWORKS == 3.0


def peaks(width, gap=8.0):
    """Two peaks of the evidence, `width` apart as a factor, with a valley between that counts."""
    r = np.array([0.5, 1.0, np.sqrt(width), width, 3.0 * width])
    table = pd.DataFrame({EVIDENCE.name: [-20.0, 0.0, -gap, -1.0, -20.0]}, index=pd.Index(r, name="width"))
    return scales(table, EVIDENCE.name)


def test_scales_are_a_factor_apart():
    assert len(peaks(1.49)) == 1 and len(peaks(1.51)) == 2


def test_scales_are_parted_by_strong_odds():
    assert np.exp(policy.STRONG_NATS) == pytest.approx(20.0)
    assert len(peaks(4.0, gap=1.0 + 2.99)) == 1 and len(peaks(4.0, gap=1.0 + 3.01)) == 2


@pytest.mark.parametrize(("second", "said"), [(1.08, "agree to within 8 %"), (1.12, "disagree")])
def test_close_widths_are_one_choice(second, said):
    r = np.array([0.5, 1.0, 1.02, 1.04, second, 4.0])
    table = pd.DataFrame(
        {
            EVIDENCE.name: [-90.0, 0.0, -30.0, -31.0, -32.0, -90.0],
            GCV.name: [9.0, 5.0, 4.0, 3.0, 1.0, 9.0],
            "status": "CONVERGED",
        },
        index=pd.Index(r, name="width"),
    )
    assert said in verdict(table, [EVIDENCE.name, GCV.name])


@pytest.mark.parametrize(("loss", "said"), [(0.049, "serves them all"), (0.051, "disagree")])
def test_small_losses_are_shrugged_off(loss, said):
    table = pd.DataFrame(
        {
            EVIDENCE.name: [-90.0, 0.0, -40.0, -45.0, -90.0],
            GCV.name: [9.0, 1.0 + loss, 1.04, 1.0, 9.0],
            "status": "CONVERGED",
        },
        index=pd.Index([0.25, 0.5, 1.0, 2.0, 4.0], name="width"),
    )
    assert said in verdict(table, [EVIDENCE.name, GCV.name])


@pytest.mark.parametrize(("gap", "several"), [(0.04, True), (0.06, False)])
def test_minima_within_a_share_are_rivals(monkeypatch, gap, several):
    from bayessel.linear import ridge

    Phi, t = np.random.default_rng(0).normal(size=(30, 3)), np.random.default_rng(1).normal(size=30)
    found = [(0.0, 1.0), (1.0, 1.0 + gap)]
    monkeypatch.setattr(ridge, "local_minima", lambda function, grid: list(found))
    assert (Status.MULTIPLE_OPTIMA in fit_ridge(Phi, t).notes) is several


@pytest.mark.parametrize(("factor", "optima"), [(1.29, 1), (1.31, 2)])
def test_ends_of_searches_near_each_other_are_one_optimum(monkeypatch, factor, optima):
    from bayessel.linear.widths import abf

    x = np.linspace(0, 1, 30)[:, None]
    t = np.sin(9 * x[:, 0]) + 0.1 * np.random.default_rng(2).normal(size=30)
    kept = abf.ABFSearch.conclude
    ends = [(0.0, np.log([0.01, 0.2])), (-0.005, np.log([0.01, 0.2 * factor]))]
    monkeypatch.setattr(abf.ABFSearch, "conclude", lambda self, runs: kept(self, ends))
    assert len(abf.fit_abf(x, t, centers=x).optima) == optima


def test_rivals_of_the_evidence_have_a_chance():
    assert 20_000 < np.exp(policy.RIVAL_NATS) < 25_000


def test_ties_are_above_rounding(rng):
    """The same fit to the same rows in another order differs by less than a tie, and not by nothing."""
    x = np.sort(rng.uniform(0, 6, 3000))
    t = np.sin(2 * x) + 0.2 * rng.normal(size=3000)
    Phi, order = RBFDictionary(np.linspace(0, 6, 20), 0.7).design(x), rng.permutation(3000)
    gap = abs(fit_evidence(Phi, t).log_evidence - fit_evidence(Phi[order], t[order]).log_evidence)
    assert gap < policy.TIE_NATS / 3
    X = x[::60, None]
    a, b = (
        float(fit_map(X[o], t[::60][o], starts=1).model_evidence.value) for o in (np.arange(50), rng.permutation(50))
    )
    assert abs(a - b) < policy.TIE_LAPLACE_NATS


def problem_at(width):
    x = np.linspace(-3, 3, 40)
    t = np.cos(x**2) + 0.1 * np.random.default_rng(3).normal(size=40)
    problem = WidthProblem(x[:, None], t, x[:, None], True, (EVIDENCE.name,))
    return problem, Candidate("gaussian", width)


def test_a_fit_no_better_than_the_optimiser_leaves_is_no_improvement():
    problem, place = problem_at(0.5)
    first = _rvm.evaluate(problem, place)
    assert _rvm.evaluate(problem, place, (first.start,), first.log_evidence - 0.008) is None
    assert _rvm.evaluate(problem, place, (first.start,), first.log_evidence - 0.012) is not None


def test_the_smallest_model_within_a_nat_is_taken():
    problem, place = problem_at(0.5)
    design = problem.dictionary(place, bias=False).design(problem.X)
    found = _selection._best(design, problem.t, True)
    fits = [search(design, problem.t, strategy=one, centre=True, within=0.0) for one in _selection.STRATEGIES]
    best = max(fit.model_evidence for fit in fits)
    seen = {size: point.value for fit in fits for size, point in fit.path.items()}
    assert found.model_evidence > best - 1.0 - 1e-6
    assert all(value < best - 1.0 for size, value in seen.items() if size < len(found.basis))


def test_uncertain_evidences_are_not_believed():
    assert Bridge(0.0, 0.99 * policy.LARGEST_EVIDENCE_ERROR, 10, 10).reliable
    assert not Bridge(0.0, 1.01 * policy.LARGEST_EVIDENCE_ERROR, 10, 10).reliable
    assert policy.LARGEST_EVIDENCE_ERROR == 0.5  # what UNSURE_EVIDENCE says: half a nat
    assert "half a nat" in Status.UNSURE_EVIDENCE.value


def test_statuses_that_need_no_attention():
    quiet = {status for status in Status if not needs_attention(status.name)}
    assert quiet == {Status.CONVERGED, Status.COLLINEAR_SKIPPED, Status.FEW_WELL_DETERMINED, Status.IMPROPER_PRIOR}
    assert not any(status.distrusted for status in quiet)  # nor does an estimator warn of them
    worst = max(status.severity for status in quiet)
    assert worst < Status.MULTIPLE_OPTIMA.severity  # harmless statuses are the first in the list of severities


def test_every_decision_is_read_somewhere():
    from tests.test_layers import sources

    text = "\n".join(source for module, source in sources().items() if module != "bayessel.policy")
    unread = [name for name in vars(policy) if name.isupper() and name not in text]
    assert unread == []
