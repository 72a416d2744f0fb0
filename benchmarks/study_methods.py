"""Methods of the full study: those of the command line by name, and all that share the widths of every function.

Barrio, Romero and Belanche (2010) give all their methods the same dictionary: a gaussian at every training input, one
width per input from the evidence of all of them (`abf`). So these widths are found once per training set and kept, in
memory and in the folder that BENCHMARK_PARTS names; the seconds of a method are without them but for `abf`'s first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPRegressor
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

import bayessel as bs
from bayessel._fingerprint import fingerprint
from bayessel.cli._methods import MAKERS
from benchmarks.peers import Array
from benchmarks.search_fits import kept

#: seconds of processor that networks are given for a training case, and least
PER_CASE, LEAST = 1.0 / 64.0, 2.0
SELECTING = ("abf", "pta(1,0)", "pta(2,1)", "sffs", "oscil(5)", "rvm", "ols")
#: rows beyond which widths are those of all functions on the first few of them: each step costs their cube
MANY, FEW = 2048, 400
#: rows of the cross-validation that settles the machine's three settings
SETTLED_ON = 1024


def seconds(size: int) -> float:
    """Time of a network for a training set, as the thesis has it in proportion to its size."""
    return max(LEAST, PER_CASE * size)


def common_widths(X: Array, t: Array) -> Array:
    """One width per input at the highest evidence of all functions together."""
    if len(X) > MANY:
        X, t = X[:FEW], t[:FEW]

    def find() -> list[float]:
        return list(bs.linear.fit_abf(X, t, n_starts=1, max_steps=100, centre=False).widths)

    key = fingerprint(X, t)
    if key not in _known:
        _known[key] = np.array(kept(f"widths-{key}", find))
    return _known[key]


_known: dict[str, Array] = {}


class OnCommonWidths(RegressorMixin, BaseEstimator):
    """What the paper's methods share: inputs in [-1, 1], targets without their mean, a gaussian at every input."""

    def __init__(self, method: str = "abf") -> None:
        self.method = method

    def fit(self, X: Array, y: Array) -> OnCommonWidths:
        """Fit the method to the dictionary."""
        self.low_, self.span_ = X.min(axis=0), np.maximum(np.ptp(X, axis=0), 1e-300)
        self.mean_, self.scale_ = y.mean(), y.std()
        inputs, t = self._inputs(X), (y - self.mean_) / self.scale_
        self.dictionary_ = bs.RBFDictionary(inputs, common_widths(inputs, t), bias=False)
        self.fit_ = self._fit(self.dictionary_.design(inputs), t)
        self.n_basis_, self.status_ = len(self.fit_.basis), self.fit_.status
        return self

    def _inputs(self, X: Array) -> Array:
        return np.asarray(2.0 * (X - self.low_) / self.span_ - 1.0)

    def _fit(self, F: Array, t: Array) -> Any:
        if self.method == "abf":
            return bs.linear.fit_evidence(F, t)
        if self.method == "rvm":
            return bs.linear.fit_rvm(F, t)
        if self.method == "ols":
            return bs.linear.forward_select(F, t, method="ols", stop="cv")
        return bs.linear.search(F, t, self.method, within=0.0)

    def predict(self, X: Array, return_std: bool = False) -> Any:
        """Mean, and standard deviation of a new observation, in units of y."""
        there = self.fit_.predict(self.dictionary_.design(self._inputs(X)))
        mean, std = there.mean, there.std
        mean = self.mean_ + self.scale_ * mean
        return (mean, self.scale_ * std) if return_std else mean


class SupportVectors(RegressorMixin, BaseEstimator):
    """Support vector regression on inputs in units of the common widths, settings by cross-validation."""

    def fit(self, X: Array, y: Array) -> SupportVectors:
        """Settle C, width and tube, then fit to all rows."""
        self.low_, self.span_ = X.min(axis=0), np.maximum(np.ptp(X, axis=0), 1e-300)
        self.mean_, self.scale_ = y.mean(), y.std()
        inputs, t = 2.0 * (X - self.low_) / self.span_ - 1.0, (y - self.mean_) / self.scale_
        self.widths_ = common_widths(inputs, t)
        grid = {"C": [1.0, 10.0, 100.0], "gamma": [0.25, 1.0, 4.0], "epsilon": [0.03, 0.1, 0.3]}
        # 3 folds: the grid is coarse, and fits without an end are stopped
        search = GridSearchCV(SVR(max_iter=1_000_000), grid, scoring="neg_mean_squared_error", cv=3, refit=False)
        search.fit((inputs / self.widths_)[:SETTLED_ON], t[:SETTLED_ON])
        self.fit_ = SVR(**search.best_params_).fit(inputs / self.widths_, t)
        self.n_basis_ = len(self.fit_.support_)
        return self

    def predict(self, X: Array) -> Array:
        """In units of y."""
        inputs = 2.0 * (X - self.low_) / self.span_ - 1.0
        return np.asarray(self.mean_ + self.scale_ * self.fit_.predict(inputs / self.widths_))


class StoppedEarly(RegressorMixin, BaseEstimator):
    """An ensemble of scikit-learn's networks that stop early, as many as there is time for; standardised inside."""

    def __init__(self, seconds: float = 2.0, random_state: int | None = None) -> None:
        self.seconds = seconds
        self.random_state = random_state

    def fit(self, X: Array, y: Array) -> StoppedEarly:
        """Train one network after the other, three at least."""
        rng = np.random.default_rng(self.random_state)
        self.inputs_ = StandardScaler().fit(X)
        self.mean_, self.scale_ = y.mean(), y.std()
        Z, t = self.inputs_.transform(X), (y - self.mean_) / self.scale_
        # as many weights as two thirds of the rows, the rule of `mlp-ese`
        hidden = int(np.clip(round(2.0 * len(t) / 3.0 / (X.shape[1] + 2)), 6, 250))
        self.networks_: list[MLPRegressor] = []
        began = time.process_time()
        while len(self.networks_) < 3 or time.process_time() - began < self.seconds:
            one = MLPRegressor(
                hidden_layer_sizes=(hidden,),
                activation="tanh",
                early_stopping=True,
                validation_fraction=1 / 3,
                n_iter_no_change=20,
                max_iter=2000,
                learning_rate_init=0.01,
                random_state=int(rng.integers(2**31)),
            )
            self.networks_.append(one.fit(Z, t))
        return self

    def predict(self, X: Array) -> Array:
        """Mean of all networks."""
        Z = self.inputs_.transform(X)
        return np.asarray(self.mean_ + self.scale_ * np.mean([one.predict(Z) for one in self.networks_], axis=0))


def _timed(name: str) -> Callable[[int], Any]:
    """A method that is given its time by the size of the training set."""
    inference = {"mlp-mc": "mc", "mlp-ese": "early-stopping"}[name]

    def make(size: int) -> Any:
        more = {"chains": 1} if inference == "mc" else {}
        return bs.MLPRegressor(inference, time_budget=seconds(size), **more)

    return make


def plain() -> Mapping[str, Any]:
    """Methods of the thesis that every task meets."""
    names = ("lin-1", "knn-cv-1", "mars", "mars-bag", "gp-map")
    return {name: MAKERS[name](None) for name in names} | {name: _timed(name) for name in ("mlp-ese", "mlp-mc")}


def rival() -> Mapping[str, Any]:
    """Scikit-learn's ensembles with the time of `mlp-ese`."""
    return {"mlp-ese, scikit-learn": lambda size: StoppedEarly(seconds(size))}


def sampled() -> Mapping[str, Any]:
    """What the thesis, too, keeps for smaller training sets."""
    return {"gp-mc": MAKERS["gp-mc"](None)}


def many_rows() -> Mapping[str, Any]:
    """Those of the paper's methods that it could run on 8192 cases."""
    return {name: method for name, method in selecting().items() if name not in ("abf", "ols")}


def selecting() -> Mapping[str, Any]:
    """The paper's, on the common widths."""
    return {name: OnCommonWidths(name) for name in SELECTING} | {"svm": SupportVectors()}
