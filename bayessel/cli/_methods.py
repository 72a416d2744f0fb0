"""Methods of a study by name: baselines, networks, Gaussian processes, and this library's linear models."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

#: name -> what makes the estimator, from a time budget per fit or None
_Maker = Callable[[Any], Any]


def _of(module: str, name: str, **settings: Any) -> _Maker:
    """An estimator that needs no time budget."""

    def make(budget: Any) -> Any:
        return getattr(import_module(module), name)(**settings)

    return make


def _budgeted(module: str, name: str, **settings: Any) -> _Maker:
    """An estimator that goes on until its time is up."""

    def make(budget: Any) -> Any:
        more = {} if budget is None else {"time_budget": budget}
        return getattr(import_module(module), name)(**settings, **more)

    return make


def _support_vectors(budget: Any) -> Any:
    """Support vector regression, its three settings by cross-validation, on standardised inputs and target."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVR

    grid = {
        "svr__C": [1.0, 10.0, 100.0],
        "svr__gamma": ["scale", 0.01, 0.1],
        "svr__epsilon": [0.01, 0.1, 0.3],
    }
    search = GridSearchCV(make_pipeline(StandardScaler(), SVR()), grid, scoring="neg_mean_squared_error")
    return TransformedTargetRegressor(search, transformer=StandardScaler())


def _standardised(maker: _Maker, budget: Any) -> Any:
    """On inputs of mean 0 and variance 1: for methods with the same width for all inputs."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), maker(budget))


_BASELINES, _ESTIMATORS = "bayessel.baselines", "bayessel.estimators"
MAKERS: dict[str, _Maker] = {
    "lin-1": _of(_BASELINES, "LinearBaseline"),
    "knn-cv-1": _of(_BASELINES, "KNNRegressorCV"),
    # as Rasmussen (1996, section 3.5) set them, bagged and not
    "mars": _of(_BASELINES, "MARSRegressor", max_functions=15, max_degree=8),
    "mars-bag": _of(_BASELINES, "BaggedMARSRegressor"),
    "mlp-ese": _budgeted(_ESTIMATORS, "MLPRegressor", inference="early-stopping"),
    "mlp-mc": _budgeted(_ESTIMATORS, "MLPRegressor", inference="mc"),
    "mlp-evidence": _budgeted(_ESTIMATORS, "MLPRegressor", inference="evidence"),
    "gp-map": _of(_ESTIMATORS, "GPRegressor", inference="map"),
    "gp-mc": _budgeted(_ESTIMATORS, "GPRegressor", inference="mc", cores=1),
    "evidence": partial(_standardised, _of(_ESTIMATORS, "EvidenceRegressor", width="fit")),
    "abf": _of(_ESTIMATORS, "EvidenceRegressor", width="ard"),
    "rvm": partial(_standardised, _of(_ESTIMATORS, "RVMRegressor", width="fit")),
    "sffs": _of(_ESTIMATORS, "BasisSearchRegressor", strategy="sffs"),
    "ols": _of(_ESTIMATORS, "ForwardSelectionRegressor", method="ols"),
    "svm": _support_vectors,
}
#: names that carry numbers
_SEARCHES = re.compile(r"pta\(\d+,\d+\)|oscil(\(\d+\))?")
NAMES = (*MAKERS, "pta(1,0)", "pta(2,1)", "oscil(5)")


def split_names(text: str) -> list[str]:
    """Words of a comma list, in which brackets may hold commas."""
    return [word.strip() for word in re.split(r",(?![^(]*\))", text) if word.strip()]


def methods(text: str, budget: Any = None) -> dict[str, Any]:
    """Estimators by name.

    Parameters
    ----------
    text
        Names with commas between; ``name=package.module:Class`` is an estimator of your own with its default settings.
    budget
        Time per fit, for those that go on until their time is up.
    """
    found = {word.partition("=")[0].strip(): _method(word, budget) for word in split_names(text)}
    if not found:
        raise ValueError(f"--methods names none; there are {', '.join(NAMES)}")
    return found


def _method(word: str, budget: Any) -> Any:
    name, equals, place = (part.strip() for part in word.partition("="))
    if equals:
        return _own(place)
    try:
        if _SEARCHES.fullmatch(name):
            return _of(_ESTIMATORS, "BasisSearchRegressor", strategy=name)(budget)
        if name not in MAKERS:
            raise ValueError(f"--methods knows {', '.join(NAMES)}, or yours as name=package.module:Class; got {name!r}")
        return MAKERS[name](budget)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"method {name!r} is not part of this installation: {error}") from error


def _own(place: str) -> Any:
    module, colon, name = place.partition(":")
    if not colon:
        raise ValueError(f"a method of your own is name=package.module:Class, got {place!r} after the sign")
    try:
        return getattr(import_module(module), name)()
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{place} cannot be imported: {error}") from error
