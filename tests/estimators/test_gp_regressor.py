"""GPRegressor: scikit-learn's protocol and checks, bad input, pickles.

Guards `bayessel.estimators.gp`.
"""

import os
import pickle
import subprocess
import sys

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

import bayessel as bs
from bayessel.covariance import Periodic, Standard
from bayessel.errors import VersionWarning
from bayessel.estimators import _process_method
from tests.paths import ROOT
from tests.problems.gp import NEW, SHORT, G, short_run, wave


@pytest.fixture(scope="module")
def sampled():
    return short_run()


CHECKED = {
    "map": G(random_state=0),
    "map, inducing": G(inducing=8),
    "map, as it is": G(standardise=False),
    "mc": G(**SHORT),
}


# --- scikit-learn's own checks ---------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [n if n == "map" else pytest.param(n, marks=pytest.mark.slow) for n in CHECKED])
def test_every_check_of_scikit_learn_passes(name):
    left, count = {}, 0
    for candidate, check in estimator_checks_generator(CHECKED[name]):
        count += 1
        try:
            check(candidate)
        except BaseException as error:
            # the one check that needs a variable set before SciPy is imported runs in the next test
            if not str(error).startswith("SCIPY_ARRAY_API is not set"):
                left[check.func.__name__] = f"{type(error).__name__}: {error}"
    assert count > 45 and left == {}


@pytest.mark.slow
def test_the_array_api_check_passes_where_it_can_run():
    program = (
        "import warnings; warnings.simplefilter('ignore')\n"
        "import bayessel as bs\n"
        "from sklearn.utils.estimator_checks import estimator_checks_generator\n"
        "pairs = list(estimator_checks_generator(bs.GPRegressor()))\n"
        "some = [(e, c) for e, c in pairs if 'array_api' in c.func.__name__]\n"
        "assert some\n"
        "[c(e) for e, c in some]\n"
        "print(len(some), 'passed')"
    )
    environment = os.environ | {"SCIPY_ARRAY_API": "1"}
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.stdout.strip().endswith("passed"), done.stderr[-800:]


@pytest.mark.parametrize("name", CHECKED)
def test_no_tag_skips_a_check(name):
    tags = CHECKED[name].__sklearn_tags__()
    assert (tags.estimator_type, tags.requires_fit, tags.no_validation) == ("regressor", True, False)
    assert (tags.non_deterministic, tags._skip_test, tags.regressor_tags.poor_score) == (False, False, False)
    assert tags.target_tags.required and tags.target_tags.single_output and tags.target_tags.multi_output
    assert tags.input_tags.two_d_array and not (tags.input_tags.sparse or tags.input_tags.allow_nan)


# --- protocol --------------------------------------------------------------------------------------------------


def test_a_column_target_is_ravelled_with_a_warning(rng):
    X, y = wave(rng)
    with pytest.warns(DataConversionWarning, match="column-vector y was passed"):
        model = G(random_state=0).fit(X, y[:, None])
    assert np.array_equal(model.theta_, G(random_state=0).fit(X, y).theta_) and model.predict(X).shape == (30,)


def test_frames_pipelines_searches_and_clones(rng):
    X, y = wave(rng, 40)
    frame = pd.DataFrame(X, columns=["length", "height"])
    model = G(random_state=0).fit(frame, pd.Series(y, name="target"))
    assert list(model.relevance_.index) == ["length", "height"] and model.n_features_in_ == 2
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["height", "length"]])
    pipeline = make_pipeline(StandardScaler(), G(random_state=0))
    search = GridSearchCV(pipeline, {"gpregressor__standardise": [True, False]}, cv=2).fit(frame, y)
    assert search.best_estimator_.predict(frame).shape == (40,) and search.best_score_ > 0.5
    other = clone(G(covariance=Standard(), chains=3, time_budget="2m"))
    assert other.get_params()["chains"] == 3 and other.time_budget == "2m" and not hasattr(other, "theta_")


@pytest.mark.filterwarnings("ignore:.*leave-one-out predictions are unsure")
def test_a_pickled_estimator_predicts_identically(sampled, rng, tmp_path):
    X, y = wave(rng, 25)
    for model in (G(random_state=0).fit(X, y), sampled[0]):
        model.predict(NEW, return_std=True)
        joblib.dump(model, tmp_path / "model.joblib")
        for back in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "model.joblib")):
            np.testing.assert_array_equal(back.predict(NEW, return_std=True), model.predict(NEW, return_std=True))
            out = [fit.leave_one_out().log_densities for fit in (back, model)]
            np.testing.assert_array_equal(*out)
            assert back.status_ is model.status_ and back.log_evidence_ == model.log_evidence_
            assert back.fingerprint_ == model.fingerprint_ and back.version_ == bs.__version__
    model.version_ = "0.0.1"
    stored = pickle.dumps(model)
    model.version_ = bs.__version__
    with pytest.warns(VersionWarning, match=r"GPRegressor was fitted by bayessel 0\.0\.1"):
        pickle.loads(stored)


@pytest.mark.filterwarnings("ignore:NO_BETTER_THAN_CONSTANT")
def test_a_pickle_is_of_the_size_of_the_data(rng):
    X, y = rng.normal(size=(300, 3)), rng.normal(size=300)
    model = G(random_state=0).fit(X, y)
    model.predict(X, return_std=True)
    assert len(pickle.dumps(model)) < 8 * 300 * 20  # a factor alone has 8 · 300 · 300 bytes


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"inference": "mcmc"}, ValueError, "inference must be one of 'auto', 'map', 'mc', got 'mcmc'"),
        ({"inference": None}, ValueError, "inference must be one of"),
        ({"covariance": "rbf"}, TypeError, r"covariance must be a bayessel.covariance.Covariance, such as .*got 'rbf'"),
        ({"covariance": Standard}, TypeError, "covariance must be a bayessel.covariance.Covariance"),
        ({"time_budget": "soon"}, ValueError, "time_budget must be seconds, or text such as"),
        ({"time_budget": -1.0}, ValueError, "time_budget must be positive"),
        ({"random_state": "one"}, TypeError, "random_state must be an integer"),
        ({"random_state": -3}, ValueError, "random_state must be at least 0"),
        ({"standardise": "no"}, TypeError, "standardise must be True or False"),
        ({"progressbar": 1}, TypeError, "progressbar must be True or False"),
        ({"draws": 0}, ValueError, "draws must be at least 1"),
        ({"tune": -1}, ValueError, "tune must be at least 0"),
        ({"chains": 2.0}, TypeError, "chains must be an integer"),
        ({"n_states": 0}, ValueError, "n_states must be at least 1"),
        ({"cores": 0}, ValueError, "cores must be at least 1"),
        ({"sampler": "nuts"}, ValueError, "sampler must be one of 'tuned', '1996'"),
        ({"inducing": 0}, ValueError, "inducing must be at least 1"),
        ({"inducing": 5, "inference": "mc"}, ValueError, "inducing is for inference='auto' or 'map'"),
        ({"inducing": 5, "method": "dense"}, ValueError, "method='dense' has none"),
        ({"inference": "mc", "method": "vecchia"}, ValueError, "inference='mc' computes with all rows at once"),
        ({"method": "sparse"}, ValueError, "method must be one of"),
        ({"neighbours": 0}, ValueError, "neighbours must be at least 1"),
        ({"method": "vecchia", "likelihood": "student"}, ValueError, "methods for many rows are for"),
        ({"method": "vecchia", "covariance": Periodic()}, ValueError, "method='vecchia' takes sums of"),
    ],
)
def test_bad_parameters_are_refused_at_the_door(rng, arguments, error, text):
    X, y = wave(rng, 10)
    with pytest.raises(error, match=text):
        G(**arguments).fit(X, y)


@pytest.mark.parametrize(
    ("X", "y", "error", "text"),
    [
        ([[np.nan], [1.0]], [0.0, 1.0], ValueError, "NaN"),
        ([[0.0], [1.0]], [0.0, np.inf], ValueError, "infinity"),
        ([0.0, 1.0], [0.0, 1.0], ValueError, "Expected 2D array"),
        ([[0.0], [1.0]], [0.0, 1.0, 2.0], ValueError, "inconsistent numbers of samples"),
        ([["a"], ["b"]], [0.0, 1.0], ValueError, "must be numeric"),
        (np.empty((0, 1)), [], ValueError, "0 sample"),
        ([[0.0], [1.0]], np.ones((2, 2, 2)), ValueError, "dim 3"),
        ([[0.0], [1.0]], None, ValueError, "requires y"),
        ([[0.0], [1.0]], [1e200, 0.0], ValueError, "rescale"),
        ([[0.0], [1.0]], [1j, 0.0], ValueError, "Complex data not supported"),
        (
            np.zeros((_process_method.MOST_ROWS + 1, 1)),
            np.zeros(_process_method.MOST_ROWS + 1),
            ValueError,
            "needs 10 GB; use method='vecchia'",
        ),
    ],
)
def test_bad_data_is_refused_at_the_door(X, y, error, text):
    with pytest.raises(error, match=text):
        G(method="dense").fit(X, y)


def test_bad_calls_after_the_fit(rng):
    for call in ("predict", "predict_median", "predictive"):
        with pytest.raises(NotFittedError):
            getattr(G(), call)([[0.0]])
    for call in ("leave_one_out", "to_pymc", "continue_fit"):
        with pytest.raises(NotFittedError):
            getattr(G(), call)()
    for name in ("log_evidence_", "model_evidence_", "pareto_k_", "relevance_"):
        with pytest.raises(NotFittedError):
            getattr(G(), name)
    X, y = wave(rng)
    model = G(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="1 features"):
        model.predict([[0.0]])
    with pytest.raises(ValueError, match="quantiles must be probabilities"):
        model.predict(NEW, return_quantiles=[0.5, 1.0])
    with pytest.raises(TypeError, match="return_std must be True or False"):
        model.predict(NEW, return_std="yes")
    with pytest.raises(TypeError, match="widen must be True or False"):
        model.log_predictive_density(X, y, widen="a bit")
    with pytest.raises(TypeError, match="noise must be True or False"):
        model.predictive(NEW, noise=None)
