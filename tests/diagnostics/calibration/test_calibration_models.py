"""Every sampler on the linear model and the relevance vector machine, by simulated ranks and by Geweke's test.

The hyperpriors are Gamma(2, 2): draws of Gamma(1e-6, 1e-6) leave double precision. Both tests look at every parameter,
the prior density and the likelihood of the data, at a level of 1 % over the quantities of a test.

Guards `bayessel.diagnostics.calibration._sbc`, `bayessel.diagnostics.calibration._geweke`, `bayessel.samplers.gibbs`,
`bayessel.samplers.persistent_hmc`.
"""

import numpy as np
import pytest
from pymc.step_methods.compound import BlockedStep, StepMethodState
from pymc.util import get_random_generator, get_value_vars_from_user_vars

import bayessel as bs
from bayessel.diagnostics.calibration import geweke, sbc
from bayessel.samplers.conjugacy import logistic
from bayessel.samplers.polya_gamma import polya_gamma, polya_gamma_sum

PRIOR = {"alpha_shape": 2.0, "alpha_rate": 2.0, "beta_shape": 2.0, "beta_rate": 2.0}
LABELS = {"bias_scale": 1.0, "alpha_shape": 2.0, "alpha_rate": 2.0}
ROWS = np.linspace(-1.0, 1.0, 5)
DESIGN = bs.RBFDictionary(ROWS[[0, 2, 4]], width=1.0).design(ROWS)[:, :3]  # neighbours overlap: weights are correlated
TARGET = np.array([0.3, -0.6, 0.2, 1.1, 0.4])

MODELS = {
    "linear": lambda: bs.models.linear(DESIGN, TARGET, **PRIOR),
    "linear, collapsed": lambda: bs.models.linear(DESIGN, TARGET, collapsed=True, **PRIOR),
    "width, collapsed": lambda: bs.models.linear(
        bs.RBFDictionary(ROWS[[0, 2, 4]], 1.0, bias=False),
        TARGET,
        X=ROWS,
        collapsed=True,
        width_prior=(1.0, 0.8),
        **PRIOR,
    ),
    "rvm": lambda: bs.models.rvm(DESIGN, TARGET, **PRIOR),
    "rvm, collapsed": lambda: bs.models.rvm(DESIGN, TARGET, collapsed=True, **PRIOR),
    "logistic": lambda: bs.models.generalised(DESIGN, TARGET > 0, **LABELS),
    # with a precision of its own some weights would be so large that counts leave 64 bits
    "counts": lambda: bs.models.generalised(DESIGN, [2, 0, 1, 3, 1], "negative-binomial", 4.0, bias_scale=1.0),
}
PRECISIONS = ("alpha", "beta")


def found(model):
    return bs.steps(model)


def exact(model):
    return bs.steps(model, split="conjugate")


def gibbs(model):
    return [
        bs.GammaPrecisionGibbs([model[name] for name in PRECISIONS], model=model),
        bs.GaussianWeightsGibbs([model["w"]], model=model),
    ]


def gibbs_and_hmc(model):
    return [
        bs.GammaPrecisionGibbs([model[name] for name in PRECISIONS], model=model),
        bs.PersistentHMC([model["w"]], model=model),
    ]


def hmc(**settings):
    return lambda model: [bs.PersistentHMC(model=model, **settings)]


EXPLICIT = {
    "all Gibbs": gibbs,
    "Gibbs and persistent HMC": gibbs_and_hmc,
    "persistent HMC, nonreversible": hmc(),
    "persistent HMC, metropolis": hmc(accept="metropolis"),
    "persistent HMC, windows": hmc(n_leapfrog=5, window=3),
}
COLLAPSED = {
    "persistent HMC, nonreversible": EXPLICIT["persistent HMC, nonreversible"],
    "persistent HMC, metropolis": EXPLICIT["persistent HMC, metropolis"],
}
FOUND = {"what is found": found}
BY_AUXILIARIES = FOUND | {"Pólya-Gamma variables": exact}
COMBINATIONS = [
    (model, steps)
    for model in MODELS
    for steps in (
        COLLAPSED if "collapsed" in model else BY_AUXILIARIES if model in ("logistic", "counts") else EXPLICIT
    )
]


class PriorOnly(BlockedStep):
    """The posterior of no data at all."""

    name, _state_class = "prior_only", StepMethodState

    def __init__(self, vars, *, model=None, rng=None, blocked=True):
        self.vars = get_value_vars_from_user_vars(vars, model)
        self.rng = get_random_generator(rng)

    def data_changed(self):
        pass

    def step(self, point):
        alpha, beta = self.rng.gamma(2.0, 0.5, size=np.shape(point["alpha_log__"])), self.rng.gamma(2.0, 0.5)
        new = dict(point)
        new["alpha_log__"], new["beta_log__"] = np.log(alpha), np.asarray(np.log(beta))
        if "w" in new:
            new["w"] = self.rng.standard_normal(3) / np.sqrt(alpha)
        return new, [{}]


class WrongShape(bs.GaussianWeightsGibbs):
    """α | w with half a degree of freedom too many; w and β as they should be."""

    def step(self, point):
        point, stats = super().step(point)
        new = dict(point)
        w = new["w"]
        new["alpha_log__"] = np.asarray(np.log(self.rng.gamma(2.0 + 0.5 * w.size + 0.5) / (2.0 + 0.5 * w @ w)))
        return new, stats


def prior_only(model):
    return [PriorOnly(model.free_RVs, model=model)]


def wrong_shape(model):
    return [
        bs.GammaPrecisionGibbs([model["alpha"], model["beta"]], model=model),
        WrongShape([model["w"]], model=model),
    ]


# --- the fast suite: enough to see a gross mistake --------------------------------------------------------------------


@pytest.fixture(scope="module")
def linear():
    return MODELS["linear"]()


def test_a_few_ranks_of_the_linear_model(linear):
    ranks = sbc(linear, found, 50, 31, thin=4, tune=40, random_seed=1, progressbar=False)
    assert ranks.ok, ranks.text


@pytest.mark.parametrize(
    ("name", "rest"),
    [("logistic", "gamma_precision_gibbs"), pytest.param("counts", "persistent_hmc", marks=pytest.mark.slow)],
)
def test_a_few_ranks_and_a_short_joint_test_of_labels_and_counts(name, rest):
    """Weights by Pólya-Gamma variables, their precision by Gibbs, or r by HMC; with half the ω the test fails."""
    model = MODELS[name]()
    assert [step.name for step in exact(model)] == ["polya_gamma_gibbs", rest]
    ranks = sbc(model, exact, 50, 31, thin=3, tune=30, random_seed=1, progressbar=False)
    assert ranks.ok, ranks.text
    joint = geweke(model, exact, 300, thin=3, tune=30, marginal=1500, random_seed=1, progressbar=False)
    assert joint.ok, joint.text


@pytest.mark.parametrize("name", ["logistic", "counts"])
def test_a_joint_test_sees_wrong_polya_gamma_variables(name, monkeypatch):
    monkeypatch.setattr(logistic, "polya_gamma", lambda c, rng: 0.6 * polya_gamma(c, rng))
    monkeypatch.setattr(logistic, "polya_gamma_sum", lambda b, c, rng: 1.8 * polya_gamma_sum(b, c, rng))
    assert not geweke(MODELS[name](), exact, 300, thin=1, tune=30, marginal=1500, random_seed=1, progressbar=False).ok


def test_a_short_joint_test_of_the_linear_model(linear):
    joint = geweke(linear, gibbs_and_hmc, 200, thin=4, tune=100, marginal=1000, random_seed=1, progressbar=False)
    assert joint.ok, joint.text


def test_a_few_replications_see_a_sampler_of_the_prior_and_a_wrong_shape(linear):
    ranks = sbc(linear, prior_only, 50, 31, thin=1, tune=1, random_seed=1, progressbar=False)
    assert ranks.failed == ["log likelihood"]
    joint = geweke(linear, prior_only, 200, tune=0, marginal=1000, random_seed=1, progressbar=False)
    assert {name.partition(" (")[0] for name in joint.failed} == {"log likelihood"}
    assert not geweke(linear, wrong_shape, 800, thin=1, tune=0, marginal=2000, random_seed=1, progressbar=False).ok


# --- the proof: make test-slow ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("model", "steps"), COMBINATIONS)
def test_ranks_are_uniform(model, steps):
    """One false alarm in a hundred runs of all combinations together."""
    make_steps = (EXPLICIT | COLLAPSED | BY_AUXILIARIES)[steps]
    # persistent momentum wants some tuning and makes neighbours unlike each other; conditionals forget in a few draws
    thin, tune = (10, 200) if "HMC" in steps or model == "counts" else (5, 80)
    options = {"thin": thin, "tune": tune, "level": 0.01 / len(COMBINATIONS), "random_seed": 20, "progressbar": False}
    result = sbc(MODELS[model](), make_steps, 500, 31, **options)
    print(f"\n{model}: {steps} ({result.seconds:.0f} s)\n{result}\n{result.table}")  # noqa: T201
    assert result.ok, result.text
    assert np.abs(result.similarity).max() < 0.25


@pytest.mark.slow
@pytest.mark.parametrize(("model", "steps"), COMBINATIONS)
def test_the_joint_distribution_is_left_invariant(model, steps):
    make_steps = (EXPLICIT | COLLAPSED | BY_AUXILIARIES)[steps]
    result = geweke(MODELS[model](), make_steps, 2500, thin=2, tune=400, random_seed=20, progressbar=False)
    print(f"\n{model}: {steps} ({result.seconds:.0f} s)\n{result}\n{result.table.head(6)}")  # noqa: T201
    assert result.ok, result.text


@pytest.mark.slow
@pytest.mark.parametrize("model", ["linear", "linear, collapsed", "rvm, collapsed"])
def test_a_sampler_of_the_prior_fails(model):
    declared = MODELS[model]()
    ranks = sbc(declared, prior_only, 500, 31, thin=1, tune=1, random_seed=3, progressbar=False)
    assert ranks.failed == ["log likelihood"] and ranks.table.iloc[0][["chi2_p", "ecdf_p"]].max() < 1e-4
    joint = geweke(declared, prior_only, 1000, tune=0, random_seed=3, progressbar=False)
    assert {name.partition(" (")[0] for name in joint.failed} == {"log likelihood"}


@pytest.mark.slow
def test_a_wrong_shape_in_one_conditional_fails():
    declared = MODELS["linear"]()
    assert not sbc(declared, wrong_shape, 1000, 31, thin=4, tune=100, random_seed=4, progressbar=False).ok
    assert not geweke(declared, wrong_shape, 2000, thin=2, tune=0, random_seed=4, progressbar=False).ok
