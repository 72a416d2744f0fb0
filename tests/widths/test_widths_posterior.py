"""The posterior of the kernel width beside a comparison: by quadrature, in pictures, reports and files, and refused.

Guards `bayessel.widths._posterior`, `bayessel.widths._posterior_sampling`, `bayessel.widths._posterior_plots`.
"""

import base64
import signal
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.special import logsumexp

import bayessel as bs
from bayessel.errors import SamplingWarning
from bayessel.samplers.run import drawn_blocks
from bayessel.widths import WidthComparison, suggest_widths
from bayessel.widths._posterior import WidthPosterior
from bayessel.widths._posterior_plots import draw_posterior
from bayessel.widths._posterior_sampling import PosteriorSampling

CENTERS = np.linspace(-2.5, 2.5, 6)
QUICK = {"progressbar": False, "n_jobs": 1, "centers": CENTERS}


def cosine(n=120):
    rng = np.random.default_rng(5)
    x = np.linspace(-3, 3, n)
    return x, np.cos(x**2) + rng.uniform(-0.1, 0.1, n)


def compared(**options):
    return bs.compare_widths(*cosine(), "posterior", **QUICK | {"draws": 500, "tune": 300} | options)


@pytest.fixture(scope="module")
def found():
    return compared()


# --- the posterior is evidence times prior --------------------------------------------------------------------------


def rms(values):
    return np.sqrt(np.mean(np.square(values)))


def radial(x, centers, r):
    return np.exp(-(((x[:, None] - centers) / r) ** 2))


def deviations(draws, mean, sd):
    """Distances of mean and standard deviation of (chain, draw) in Monte Carlo standard errors, from batches."""
    batches = np.reshape(draws, (-1, 100))
    first, second = batches.mean(axis=1), ((batches - mean) ** 2).mean(axis=1)
    errors = [part.std(ddof=1) / np.sqrt(len(batches)) for part in (first, second)]
    return np.abs([(first.mean() - mean) / errors[0], (second.mean() - sd**2) / errors[1]])


def moments(grid, log_evidence, median, sd):
    """Mean and standard deviation of log r, from evidence times prior on an even grid that holds all of it."""
    log_p = log_evidence + stats.norm(np.log(median), sd).logpdf(grid)
    p = np.exp(log_p - log_p.max())
    assert max(p[0], p[-1]) < 1e-5
    p /= p.sum()
    mean = p @ grid
    return mean, np.sqrt(p @ (grid - mean) ** 2)


def log_gamma(log_x, shape, rate):
    """Log density of log x for x ~ Gamma, up to a constant."""
    return shape * log_x - rate * np.exp(log_x)


def shared_precision(x, t, grid, median):
    """log p(t | r) of one weight precision and an all but flat constant, α and β on a grid, by dense algebra."""
    n, m = len(t), len(CENTERS)
    d, s = t - t.mean(), t.std()
    at_median = radial(x, CENTERS, median)
    full = s / rms(at_median) / np.sqrt(m)
    log_alpha, log_beta = np.linspace(-12, 8, 81), np.linspace(-1, 9, 81)
    A, B = np.meshgrid(log_alpha, log_beta, indexing="ij")
    prior = log_gamma(A, 0.5, 0.5 * (0.1 * full) ** 2) + log_gamma(B, 0.5, 0.5 * (0.01 * s) ** 2)
    found = []
    for u in grid:
        Phi = np.column_stack([radial(x, CENTERS, np.exp(u)), np.ones(n)])
        gram, pull, square = Phi.T @ Phi, Phi.T @ d, d @ d
        scale = np.ones((*A.shape, m + 1)) * np.exp(A)[..., None]
        scale[..., -1] = (100.0 * s) ** -2
        beta = np.exp(B)
        H = beta[..., None, None] * gram + scale[..., None] * np.eye(m + 1)
        weights = np.linalg.solve(H, (beta[..., None] * pull)[..., None])[..., 0]
        quadratic = beta * (square - weights @ pull)
        log_p = 0.5 * (n * B + np.log(scale).sum(axis=-1) - np.linalg.slogdet(H)[1] - quadratic)
        edge = np.concatenate([log_p[0] + prior[0], log_p[-1] + prior[-1], log_p[:, 0] + prior[:, 0]])
        assert edge.max() < (log_p + prior).max() - 8.0
        found.append(logsumexp(log_p + prior))
    return np.array(found)


def separate_precisions(x, t, centers, grid, median):
    """log p(t | r) of two weights with a precision each, all three precisions on a grid."""
    n = len(t)
    s, at_median = t.std(), radial(x, centers, median)
    rates = (t.std() / rms(at_median[:, 0]) / np.sqrt(2)) ** 2, (s / rms(at_median[:, 1]) / np.sqrt(2)) ** 2
    one, two, B = np.meshgrid(np.linspace(-14, 5, 70), np.linspace(-14, 5, 70), np.linspace(-1, 4, 70), indexing="ij")
    prior = log_gamma(one, 1.0, rates[0]) + log_gamma(two, 1.0, rates[1]) + log_gamma(B, 0.5, 0.5 * (0.01 * s) ** 2)
    found, beta = [], np.exp(B)
    for u in grid:
        Phi = radial(x, centers, np.exp(u))
        (a, c), (_, b) = Phi.T @ Phi
        p, q = Phi.T @ t
        first, second, off = beta * a + np.exp(one), beta * b + np.exp(two), beta * c
        det = first * second - off**2
        explained = beta**2 * (second * p**2 - 2.0 * off * p * q + first * q**2) / det
        log_p = 0.5 * (n * B + one + two - np.log(det) - beta * (t @ t) + explained)
        found.append(logsumexp(log_p + prior))
    return np.array(found)


def test_draws_are_evidence_times_prior():
    x, t = cosine()
    prior = (1.0, 0.8)
    result = compared(width_prior=prior, draws=1500)
    logs, grid = np.log(result.posterior.draws), np.linspace(-1.0, 0.0, 101)
    log_evidence = shared_precision(x, t, grid, prior[0])
    assert deviations(logs, *moments(grid, log_evidence, *prior)).max() < 4.0
    # another prior is seen
    assert deviations(logs, *moments(grid, log_evidence, 1.0, 0.2)).max() > 4.0


@pytest.mark.slow
def test_draws_of_separate_precisions_are_evidence_times_prior():
    rng = np.random.default_rng(8)
    x = np.linspace(-3, 3, 100)
    centers = np.array([-1.0, 1.2])
    t = radial(x, centers, 0.8) @ [1.0, -0.7] + rng.uniform(-0.6, 0.6, 100)
    prior = (0.7, 0.4)
    options = QUICK | {"model": "rvm", "bias": False, "centers": centers, "criteria": "evidence"}
    result = bs.compare_widths(x, t, "posterior", **options, width_prior=prior, draws=1500, tune=400)
    logs, grid = np.log(result.posterior.draws), np.linspace(-1.4, 0.8, 56)
    log_evidence = separate_precisions(x, t, centers, grid, prior[0])
    assert deviations(logs, *moments(grid, log_evidence, *prior)).max() < 4.0
    assert deviations(logs, *moments(grid, log_evidence, 0.7, 0.2)).max() > 4.0


def test_an_input_that_matters_little_has_a_wide_width(tmp_path):
    rng = np.random.default_rng(2)
    X = rng.uniform(-1.5, 1.5, size=(70, 2))
    y = np.cos(2.0 * X[:, 1] ** 2) + 0.1 * rng.standard_normal(70)
    options = QUICK | {"centers": 20, "names": ["idle", "busy"], "criteria": "evidence"}
    result = bs.compare_widths(X, y, "posterior", per_input=True, draws=400, tune=300, **options)
    posterior = result.posterior
    assert posterior.draws.shape == (4, 400, 2) and list(posterior.table.index) == ["idle", "busy"]
    assert posterior.quantile(0.5)[0] > 3.0 * posterior.quantile(0.5)[1]
    assert_allclose(posterior.prior_median, X.std(axis=0))
    assert "Posterior of the widths: busy, median" in result.verdict()
    assert "4 chains of 400 draws of the widths" in result.facts()
    low, high = result.plot().axes[0].get_xlim()
    assert low < posterior.quantile(0.01)[1] and high > posterior.quantile(0.99)[0]
    back = WidthComparison.from_netcdf(result.to_netcdf(tmp_path / "r.nc"))
    assert back.posterior.inputs == ("idle", "busy")
    pd.testing.assert_frame_equal(back.posterior.table, posterior.table)


# --- what it says ---------------------------------------------------------------------------------------------------


def test_numbers_are_those_of_the_draws(found):
    posterior = found.posterior
    width = posterior.trace.posterior["width"].values
    assert_array_equal(posterior.draws, width)
    row = posterior.table.loc["width"]
    assert_allclose(row["mean"], width.mean())
    assert_allclose([row["low"], row["median"], row["high"]], np.quantile(width, [0.025, 0.5, 0.975]))
    assert_allclose([posterior.mean, posterior.quantile(0.5)], [row["mean"], row["median"]])
    assert posterior.verdict == "usable" and row["r_hat"] < 1.01 and row["ess_bulk"] > 400
    # default prior: about the spread of the input
    assert_allclose([posterior.prior_median, posterior.prior_log_sd], [cosine()[0].std(), 1.5])


def test_text_picture_and_report_have_it(found, tmp_path):
    sentence = found.posterior.sentences()[0]
    assert sentence.startswith("Posterior of the width: median r = ") and "log-normal prior: median 1.747" in sentence
    assert sentence in found.verdict() and sentence in str(found.posterior)
    assert "4 chains of 500 draws of the width" in found.facts()
    axes = [ax for ax in found.plot().axes if ax.get_title(loc="left") == "posterior of the width"]
    assert len(axes) == 1 and axes[0].get_xlim() == found.plot().axes[0].get_xlim()
    assert len(found.plot(["loo"]).axes) == 2
    page = found.to_html(tmp_path / "r.html").read_text()
    assert ">The posterior of the width</h2>" in page and sentence in page
    assert page.count("<img") == len(found.criteria) + len(found.fits) + 1
    picture = page.split('<img alt="Posterior of the width: median')[1].partition("base64,")[2].partition('"')[0]
    assert base64.b64decode(picture).decode().rstrip().endswith("</svg>")
    without = replace(found, posterior=None)
    assert "osterior" not in without.verdict() + without.facts() + without.to_html(tmp_path / "w.html").read_text()


def test_histogram_is_a_density_of_the_logarithm(found):
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    ax.set_xscale("log")
    ax.set_xlim(0.01, 100.0)
    draw_posterior(ax, found.posterior)
    heights, edges, _ = ax.patches[0].get_data()
    assert_allclose(heights @ np.diff(np.log(edges)), 1.0)
    assert edges[0] <= found.posterior.draws.min() * (1 + 1e-9)
    prior = next(line for line in ax.lines if line.get_label() == "prior")
    u, density = np.log(prior.get_xdata()), prior.get_ydata()
    assert_allclose(density, stats.norm(np.log(found.posterior.prior_median), 1.5).pdf(u), rtol=1e-9)


def test_file_gives_back_the_draws(found, tmp_path):
    back = WidthComparison.from_netcdf(found.to_netcdf(tmp_path / "r.nc"))
    assert_array_equal(back.posterior.draws, found.posterior.draws)
    assert set(back.posterior.trace.groups) == set(found.posterior.trace.groups)
    assert back.posterior.trace.attrs["verdict"] == "usable"
    assert str(back.posterior) == str(found.posterior) and back.verdict() == found.verdict()
    assert back.to_html(tmp_path / "b.html").read_text() == found.to_html(tmp_path / "f.html").read_text()


def hand_made(draws, **named):
    given = {"trace": None, "inputs": (), "prior_median": np.array(1.0), "prior_log_sd": np.array(1.5)} | named
    return WidthPosterior(np.asarray(draws, dtype=float), **given)


def test_a_posterior_beyond_the_grid_is_said():
    widths = hand_made(np.r_[np.full(30, 0.5), np.full(70, 3.0)].reshape(4, 25))
    assert "70 % of the posterior lies beyond the widths compared." in widths.sentences([0.1, 2.0])
    assert not any("beyond" in said for said in widths.sentences([0.1, 4.0]))
    assert "Too few draws to judge" in widths.sentences()[0]


def test_of_many_inputs_the_ends_are_said():
    names = tuple("abcdef")
    draws = np.ones((2, 10, 6)) * [3.0, 9.0, 2.0, 5.0, 7.0, 4.0]
    many = hand_made(draws, inputs=names, prior_median=np.ones(6), prior_log_sd=np.ones(6))
    assert many.sentences()[-1] == (
        "Posterior of 6 widths: narrowest of c, median 2, 95 % between 2 and 2; widest of b, median 9, 95 % between 9 "
        "and 9."
    )


def test_draws_that_should_not_be_used_warn(tmp_path):
    with pytest.warns(SamplingWarning, match="the posterior of the width should not be used yet: ") as heard:
        short = compared(draws=100, tune=100, criteria="evidence")
    assert heard[0].filename == __file__ and len(heard) == 1
    assert short.posterior.verdict == "do not use"
    said = short.posterior.sentences()[0]
    assert (
        said == f"Do not use the posterior of the width yet: {short.posterior.reasons[0]}" and said in short.verdict()
    )
    assert short.posterior.reasons[0] in short.to_html(tmp_path / "r.html").read_text().replace("&gt;", ">")


# --- the comparison beside it, seeds, stores, interruptions ---------------------------------------------------------


def test_the_comparison_is_that_of_suggested_widths(found):
    x, y = cosine()
    alone = bs.compare_widths(x, y, **QUICK)
    pd.testing.assert_frame_equal(alone.table, found.table)
    assert list(alone.table.index) == list(suggest_widths(x)) and alone.posterior is None


def test_draws_depend_on_the_seed_alone(found):
    again, other = compared(n_jobs=2), compared(random_state=1)
    assert_array_equal(again.posterior.draws, found.posterior.draws)
    assert (other.posterior.draws != found.posterior.draws).any()


def test_a_store_keeps_the_chains(found, tmp_path, monkeypatch):
    stored = compared(store=tmp_path / "fits")
    assert_array_equal(stored.posterior.draws, found.posterior.draws)
    again = compared(store=tmp_path / "fits")
    assert again.posterior.trace.attrs["resumed_draws"] == 4 * 800
    assert_array_equal(again.posterior.draws, found.posterior.draws)
    with pytest.raises(ValueError, match="posterior-gaussian"):
        compared(store=tmp_path / "fits", width_prior=(1.0, 1.0))


def stop_after(monkeypatch, least):
    """Ctrl-C when every chain has made so many draws, tuning included."""
    enter, done = drawn_blocks.DrawnBlocks.enter, {}

    def stopping(self, block):
        enter(self, block)
        done[block.chain] = block.after.done
        if len(done) == 4 and min(done.values()) > least:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(drawn_blocks.DrawnBlocks, "enter", stopping)


def test_ctrl_c_amid_the_tuning_keeps_the_comparison(tmp_path, monkeypatch):
    stop_after(monkeypatch, 10)
    part = compared(tune=20_000, criteria="evidence")
    assert part.interrupted and part.posterior.n_draws == 0 and len(part.table) == 25
    assert "interrupted before there were draws of the width" in part.verdict()
    back = WidthComparison.from_netcdf(part.to_netcdf(tmp_path / "r.nc"))
    assert back.posterior.draws.shape == (4, 0) and back.verdict() == part.verdict()


def test_ctrl_c_amid_the_draws_keeps_them(found, tmp_path, monkeypatch):
    stop_after(monkeypatch, 1000)
    part = compared(draws=20_000)
    made = part.posterior.n_draws
    assert part.interrupted and part.posterior.interrupted and 0 < made < 20_000
    assert len(part.table) == len(found.table)
    assert f"The chains were interrupted after {made} draws each." in part.verdict()
    assert "The run was interrupted" not in part.verdict()


def test_ctrl_c_before_any_draw_keeps_the_comparison(found, tmp_path, monkeypatch):
    def stopping(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("bayessel.samplers.run.sampling.sample", stopping)
    part = compared()
    pd.testing.assert_frame_equal(part.table, found.table)
    assert part.interrupted and part.posterior.n_draws == 0 and np.isnan(part.posterior.mean)
    assert "interrupted before there were draws of the width" in part.verdict()
    part.plot()
    back = WidthComparison.from_netcdf(part.to_netcdf(tmp_path / "r.nc"))
    assert back.posterior.draws.shape == (4, 0) and back.verdict() == part.verdict()
    assert part.to_html(tmp_path / "p.html").read_text() == back.to_html(tmp_path / "b.html").read_text()


def test_ctrl_c_amid_the_widths_leaves_the_posterior_out(monkeypatch):
    from bayessel.widths import _evidence

    real, calls = _evidence.fit_evidence, []

    def stopping(spectrum):
        calls.append(1)
        if len(calls) > 3:
            raise KeyboardInterrupt
        return real(spectrum)

    monkeypatch.setattr(_evidence, "fit_evidence", stopping)
    monkeypatch.setattr(PosteriorSampling, "run", lambda *_: pytest.fail("it was sampled"))
    part = compared()
    assert part.interrupted and part.posterior is None and len(part.table) == 3


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            {"model": "gp", "centers": None},
            ValueError,
            "samples the width of model='evidence' or model='rvm', got model='gp'",
        ),
        ({"model": "search"}, ValueError, "samples the width of model='evidence' or model='rvm', got model='search'"),
        ({"kind": ("gaussian", "cauchy")}, ValueError, "one kind of function, got 'gaussian', 'cauchy'"),
        ({"widths": "posteriors"}, TypeError, "widths must be numbers, got the string 'posteriors'.*or 'posterior' to"),
        ({"widths": [1.0], "width_prior": (1.0, 1.0)}, ValueError, "width_prior .* goes with widths='posterior'"),
        ({"widths": None, "per_input": True}, ValueError, "per_input .* goes with widths='posterior'"),
        ({"per_input": "yes"}, TypeError, "per_input must be True or False"),
        ({"width_prior": 3.0}, TypeError, "width_prior must be None or a pair"),
        ({"width_prior": (-1.0, 1.0)}, ValueError, "the median of width_prior must be positive"),
        ({"draws": 0}, ValueError, "draws must be at least 1"),
        ({"tune": -1}, ValueError, "tune must be at least 0"),
        ({"chains": 2.5}, TypeError, "chains must be an integer"),
        ({"X": np.ones(120)}, ValueError, "all rows of X are equal"),
    ],
)
def test_bad_input_is_refused_before_any_fit(change, error, message, monkeypatch):
    from bayessel.widths import _compare

    monkeypatch.setattr(_compare._Sweep, "run", lambda *_: pytest.fail("it was fitted"))
    x, y = cosine()
    with pytest.raises(error, match=message):
        bs.compare_widths(**{"X": x, "y": y, "widths": "posterior", "criteria": "evidence"} | QUICK | change)
