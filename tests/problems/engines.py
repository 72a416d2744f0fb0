"""Every engine with the fits it makes: what `tests/test_contract_of_fits.py` walks over.

A new engine is one entry of `ENGINES`; a class of fits that no entry makes is a failing test.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import bayessel as bs
from bayessel._fingerprint import fingerprint
from bayessel.errors import NumericalWarning
from bayessel.estimators._data_units import FitInDataUnits
from bayessel.estimators._latent_mixture import LatentMixture
from bayessel.estimators._latent_radial import RadialInDataUnits
from bayessel.estimators._latent_regression import LatentInDataUnits
from bayessel.estimators._mixed_process import MixedProcess
from bayessel.estimators._sampled_networks import SampledNetworks
from bayessel.estimators._sampled_process import ProcessInDataUnits, SampledProcess
from bayessel.estimators._several_processes import SeveralProcesses
from bayessel.estimators._witnessed_networks import WitnessedNetworks
from bayessel.estimators.averaged_fit import AveragedFit
from bayessel.estimators.latent_member import LatentMember, weighed
from bayessel.estimators.radial_class_fit import RadialClassFit
from bayessel.estimators.radial_latent_fit import RadialLatentFit
from bayessel.estimators.referenced_fit import ReferencedFit
from bayessel.estimators.several_targets import SeveralTargets
from bayessel.fit import Fit, worst
from bayessel.gp import Predictor
from bayessel.gp.inducing.inducing_fit import InducingFit
from bayessel.gp.latent import fit_latent_process
from bayessel.gp.latent.latent_fit import LatentProcessFit
from bayessel.gp.map_result import GPFit
from bayessel.gp.vecchia.vecchia_fit import VecchiaFit
from bayessel.linear import LinearFit, RidgeFit, RVMFit
from bayessel.linear.forward.result import ForwardFit
from bayessel.linear.incremental import IncrementalFit
from bayessel.linear.integrated.mixture import IntegratedFit
from bayessel.linear.latent import LatentFit, fit_latent, fit_latent_rvm
from bayessel.linear.loomi.result import LOOMIFit
from bayessel.linear.projection import Projection
from bayessel.linear.selection.result import SearchFit
from bayessel.linear.several_outputs import SeveralOutputs
from bayessel.linear.widths import fit_rvm_width
from bayessel.linear.widths.result import WidthFit
from bayessel.mlp.early_stopping_result import EarlyStoppingEnsemble
from bayessel.mlp.evidence_result import NetworkEvidenceFit
from bayessel.widths._fit_at_width import FitAtWidth
from bayessel.widths._gp import fit_at as _gp_at
from bayessel.widths._problem import Candidate, WidthProblem

#: places and width of the functions that engines on designs are offered
_CENTERS, _WIDTH = np.random.default_rng(5).uniform(-2.0, 2.0, size=(9, 2)), 1.5


def design(X: np.ndarray) -> np.ndarray:
    """Nine gaussians at places that the data do not move."""
    return np.exp(-((X[:, None, :] - _CENTERS) ** 2).sum(axis=2) / _WIDTH**2)


def inputs(X: np.ndarray) -> np.ndarray:
    """The inputs as they are."""
    return X


@dataclass(frozen=True, eq=False)
class Engine:
    """One engine with one setting.

    Attributes
    ----------
    name : str
    make : callable
        (rows, target) -> fit.
    results : tuple of types
        Classes of the fits it makes.
    rows : callable
        Inputs (N, D) -> what the engine takes, and its fits predict at.
    target : callable
        Targets of a problem -> what the engine takes.
    left_out : callable or None
        (fit, rows, target, i) -> mean and variance of row i from the others, hyperparameters held, by refitting.
    outputs : bool
        Whether the target may have several columns.
    units, order, columns : float or None
        Relative precision to which evidence and predictions follow a change of units, an order of the rows and one of
        the columns; None where the engine does not promise it.
    slow : bool
        Whether fits take seconds: they are made in the slow suite.
    stream : bool
        Whether the rows are seen once: fits know no names of the data and leave no row out.
    """

    name: str
    make: Callable[[Any, Any], Fit]
    results: tuple[type, ...]
    rows: Callable[[np.ndarray], Any] = design
    target: Callable[[np.ndarray], Any] = field(default=lambda y: y)
    left_out: Callable[[Any, Any, Any, int], tuple[float, float]] | None = None
    outputs: bool = False
    units: float | None = 1e-7
    order: float | None = 1e-7
    columns: float | None = 1e-7
    slow: bool = False
    stream: bool = False

    def fit(self, rows: Any, target: Any) -> Fit:
        """Fit in silence: remarks are in the status, and looked at there."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NumericalWarning)
            return self.make(rows, target)


def _without(rows: np.ndarray, target: np.ndarray, i: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    keep = np.arange(len(target)) != i
    return rows[keep], target[keep], rows[i : i + 1]


def _linear(centre: bool) -> Callable[..., tuple[float, float]]:
    """Retrain with the precisions held."""

    def left_out(fit: Any, rows: np.ndarray, target: np.ndarray, i: int) -> tuple[float, float]:
        A, t, row = _without(rows, target, i)
        there = bs.linear.posterior(A, t, fit.alpha, fit.beta, centre=centre).predict(row)
        return float(there.mean[0]), float(there.variance[0])

    return left_out


def _columns(centre: bool) -> Callable[..., tuple[float, float]]:
    """Retrain on the columns in use with the precisions held."""

    def left_out(fit: Any, rows: np.ndarray, target: np.ndarray, i: int) -> tuple[float, float]:
        return _linear(centre)(fit, rows[:, fit.basis], target, i)

    return left_out


def _process(fit: Any, rows: np.ndarray, target: np.ndarray, i: int) -> tuple[float, float]:
    """Condition a dense Gaussian process on the other rows."""
    A, t, row = _without(rows, target, i)
    there = Predictor(A, t, fit.covariance, fit.theta)(row)
    return float(there.mean[0]), float(there.variance[0])


def _labels(y: np.ndarray) -> np.ndarray:
    """Two classes of about equal size from a target with any values."""
    labels = np.where(y > np.median(y), 1, -1)
    labels[np.argmax(y)], labels[np.argmin(y)] = 1, -1
    return labels


def _indicators(y: np.ndarray) -> np.ndarray:
    """The same classes as 0 and 1."""
    return np.where(_labels(y) > 0, 1.0, 0.0)


def _thirds(y: np.ndarray) -> np.ndarray:
    """Three classes of about equal size."""
    return np.digitize(y, np.quantile(y, [1.0 / 3.0, 2.0 / 3.0]))


def _estimated(make: Callable[[], Any], inside: bool = False) -> Callable[[Any, Any], Fit]:
    """The fit of an estimator, or the one in standardised units inside it."""

    def fit(X: np.ndarray, t: np.ndarray) -> Fit:
        found = make().fit(X, t).fit_
        return found.inner if inside else found

    return fit


def _gp(**settings: Any) -> Any:
    return bs.GPRegressor(random_state=0, progressbar=False, **settings)


def _mlp(**settings: Any) -> Any:
    return bs.MLPRegressor(hidden=2, random_state=0, progressbar=False, **settings)


#: enough chains to see shapes and sums, not to be right
_SHORT = {"inference": "mc", "draws": 30, "tune": 30, "cores": 1}


def _rvm_width(X: np.ndarray, t: np.ndarray) -> Fit:
    return fit_rvm_width(X, t, init="greedy", n_scan=3, n_starts=1)


def _changed(rows: np.ndarray, target: np.ndarray) -> IncrementalFit:
    """A column that comes and goes, and a row that goes and comes."""
    state = bs.linear.RidgeState(rows, target, 0.5)
    state.add_column(np.ones(len(rows)), 1.0)
    state.add_row(np.ones(rows.shape[1] + 1), 1.0)
    state.remove_row(len(rows))
    state.remove_column(rows.shape[1])
    return state.fit(beta=4.0)


def _weighed_widths(X: np.ndarray, target: np.ndarray) -> Fit:
    members = []
    for r in (0.5, 2.0):
        d = bs.RBFDictionary(X, r).without_bias()
        members.append(LatentMember(d, (fit_latent(d.columns(X), target, "student"),), log_prior=-np.log(2.0)))
    kept = weighed(members)
    notes = kept[0].fits[0].notes
    return RadialLatentFit(kept, worst(notes), notes, fingerprint(X, target))


def _several(rows: np.ndarray, target: np.ndarray) -> Fit:
    if target.ndim == 1:
        return bs.linear.fit_evidence(rows, target)
    return SeveralOutputs(tuple(bs.linear.fit_evidence(rows, t) for t in target.T))


def _project(rows: np.ndarray, target: np.ndarray) -> Fit:
    return bs.linear.project(rows, target, 0.1)


ENGINES = (
    Engine("evidence", bs.linear.fit_evidence, (LinearFit,), left_out=_linear(False)),
    Engine(
        "evidence, centred",
        lambda A, t: bs.linear.fit_evidence(A, t, centre=True),
        (LinearFit,),
        left_out=_linear(True),
    ),
    Engine(
        "evidence, mackay",
        lambda A, t: bs.linear.fit_evidence(A, t, method="mackay"),
        (LinearFit,),
        units=1e-3,
        order=1e-3,
        columns=1e-3,
    ),
    Engine(
        "evidence of a stream",
        lambda A, t: bs.linear.fit_evidence_stream([(A, t)], centre=False),
        (LinearFit,),
        stream=True,
    ),
    Engine("ridge", bs.linear.fit_ridge, (RidgeFit,), left_out=_linear(False)),
    Engine(
        "ridge, centred",
        lambda A, t: bs.linear.fit_ridge(A, t, centre=True, criterion="loo"),
        (RidgeFit,),
        left_out=_linear(True),
    ),
    Engine("ridge, local", lambda A, t: bs.linear.fit_ridge(A, t, penalty="local"), (RidgeFit,), columns=None),
    Engine("ridge, after changes", _changed, (IncrementalFit,), left_out=_linear(False), units=None),
    Engine("evidence, several outputs", _several, (LinearFit, SeveralOutputs), outputs=True),
    Engine("rvm", bs.linear.fit_rvm, (RVMFit,), left_out=_columns(False)),
    Engine("rvm, centred", lambda A, t: bs.linear.fit_rvm(A, t, centre=True), (RVMFit,), left_out=_columns(True)),
    Engine("forward", lambda A, t: bs.linear.forward_select(A, t, "rfs"), (ForwardFit,)),
    Engine("search", bs.linear.search, (SearchFit,), left_out=_columns(False)),
    Engine("search, centred", lambda A, t: bs.linear.search(A, t, centre=True), (SearchFit,), left_out=_columns(True)),
    Engine("loomi", bs.linear.fit_loomi, (LOOMIFit,), target=_labels, units=None),
    Engine("latent", fit_latent, (LatentFit,), target=_indicators, units=None, order=1e-6, columns=1e-6),
    Engine(
        "latent, normal noise",
        lambda A, t: fit_latent(A, t, "gaussian"),
        (LatentFit,),
        units=None,
        order=1e-3,
        columns=1e-3,
    ),
    Engine(
        "latent, student", lambda A, t: fit_latent(A, t, "student"), (LatentFit,), units=None, order=1e-2, columns=1e-2
    ),
    Engine("latent rvm", fit_latent_rvm, (LatentFit,), target=_indicators, units=None, order=1e-3, columns=1e-3),
    Engine(
        "EvidenceClassifier",
        _estimated(bs.EvidenceClassifier),
        (RadialClassFit,),
        rows=inputs,
        target=_labels,
        units=None,
        order=1e-3,
        columns=1e-3,
    ),
    Engine(
        "RVMClassifier, three classes",
        _estimated(lambda: bs.RVMClassifier(width=2.0)),
        (RadialClassFit,),
        rows=inputs,
        target=_thirds,
        units=None,
        order=1e-3,
        columns=1e-3,
    ),
    Engine("projection", _project, (Projection,), units=None),
    Engine(
        "abf",
        lambda X, t: bs.linear.fit_abf(X, t, n_starts=1),
        (WidthFit,),
        rows=inputs,
        units=1e-3,
        order=1e-3,
        columns=1e-3,
    ),
    Engine(
        "rvm width",
        _rvm_width,
        (WidthFit,),
        rows=inputs,
        units=None,  # seconds a fit: the machine at one width promises these
        order=None,
        columns=None,
    ),
    Engine(
        "gp",
        lambda X, t: bs.gp.fit_map(X, t),
        (GPFit,),
        rows=inputs,
        left_out=_process,
        units=None,
        order=1e-3,
        columns=1e-3,
    ),
    Engine(
        "gp, maximum likelihood",
        lambda X, t: bs.gp.fit_map(X, t, prior=None),
        (GPFit,),
        rows=inputs,
        left_out=_process,
        units=None,
        order=None,
        columns=None,
    ),
    Engine(
        "latent process, labels",
        lambda X, t: fit_latent_process(X, (t > 0.0) * 1.0, "probit"),
        (LatentProcessFit,),
        rows=inputs,
        target=_labels,
        units=None,
        order=1e-3,
        columns=None,
    ),
    Engine(
        "latent process, heavy tails",
        lambda X, t: fit_latent_process(X, t, "student"),
        (LatentProcessFit,),
        rows=inputs,
        units=None,
        order=1e-3,
        columns=None,
    ),
    Engine(
        "latent mixture, labels",
        _estimated(lambda: bs.GPClassifier(standardise=False), inside=True),
        (LatentMixture,),
        rows=inputs,
        target=_labels,
        units=None,
        order=None,
        columns=None,
    ),
    Engine(
        "latent mixture, heavy tails",
        _estimated(lambda: bs.GPRegressor(likelihood="student")),
        (LatentInDataUnits,),
        rows=inputs,
        units=None,
        order=None,
        columns=None,
    ),
    Engine(
        "vecchia",
        lambda X, t: bs.gp.fit_vecchia(X, t, neighbours=5, tol=1e-5),
        (VecchiaFit,),
        rows=inputs,
        units=None,
        order=1e-3,
        columns=1e-3,
    ),
    Engine(
        "vecchia, every row a neighbour",
        lambda X, t: bs.gp.fit_vecchia(X, t, neighbours=40, n_inducing=0, tol=1e-5),
        (VecchiaFit,),
        rows=inputs,
        left_out=_process,
        units=None,
        order=1e-3,
        columns=1e-3,
    ),
    Engine(
        "inducing",
        lambda X, t: bs.gp.fit_inducing(X, t, n_inducing=6),
        (InducingFit,),
        rows=inputs,
        units=None,
        order=None,
        columns=None,
    ),
    Engine(
        "network evidence",
        lambda X, t: bs.mlp.fit_network_evidence(X, t, hidden=2, n_starts=1, random_state=0),
        (NetworkEvidenceFit,),
        rows=inputs,
        outputs=True,
        units=None,
        order=None,
        columns=None,
    ),
    Engine(
        "early stopping",
        lambda X, t: bs.mlp.fit_early_stopping(X, t, hidden=2, n_networks=(3, 3), max_evaluations=60, random_state=0),
        (EarlyStoppingEnsemble,),
        rows=inputs,
        outputs=True,
        units=None,
        order=None,
        columns=None,
    ),
    Engine(
        "EvidenceRegressor",
        _estimated(bs.EvidenceRegressor),
        (IntegratedFit,),
        rows=inputs,
        units=1e-3,
        order=1e-3,
        columns=1e-3,
    ),
    Engine(
        "BasisSearchRegressor",
        _estimated(bs.BasisSearchRegressor),
        (ReferencedFit,),
        rows=inputs,
        units=1e-3,
        order=1e-3,
        columns=1e-3,
    ),
    Engine(
        "mixed process",
        _estimated(lambda: _gp(standardise=False), inside=True),
        (MixedProcess, GPFit),
        rows=inputs,
        units=None,
        order=1e-3,
        columns=1e-3,
    ),
    Engine(
        "average",
        _estimated(lambda: bs.average({f"r {r}": bs.EvidenceRegressor(width=r) for r in (1.0, 4.0)}, n_jobs=1)),
        (AveragedFit,),
        rows=inputs,
        units=1e-5,
        order=1e-5,
        columns=1e-5,
    ),
    Engine(
        "fit at a width",
        lambda X, t: _gp_at(WidthProblem(X, t, X, True, ()), Candidate("gaussian", _WIDTH)),
        (FitAtWidth,),
        rows=inputs,
        units=1e-3,
        order=1e-3,
        columns=1e-3,
    ),
    Engine("GPRegressor", _estimated(_gp), (ProcessInDataUnits,), rows=inputs, units=1e-3, order=1e-3, columns=1e-3),
    Engine(
        "GPRegressor, several outputs",
        _estimated(lambda: _gp(inference="map")),
        (ProcessInDataUnits, SeveralProcesses),
        rows=inputs,
        outputs=True,
        units=1e-3,
        order=1e-3,
        columns=1e-3,
    ),
    Engine("widths weighed", _weighed_widths, (RadialLatentFit,), rows=inputs, units=None, order=1e-3, columns=1e-3),
    Engine(
        "EvidenceRegressor, heavy tails",
        _estimated(lambda: bs.EvidenceRegressor(likelihood="student")),
        (RadialInDataUnits,),
        rows=inputs,
        units=1e-3,
        order=1e-3,
        columns=1e-3,
    ),
    Engine(
        "EvidenceRegressor, several outputs",
        _estimated(bs.EvidenceRegressor),
        (IntegratedFit, SeveralTargets),
        rows=inputs,
        outputs=True,
        units=1e-3,
        order=1e-3,
        columns=1e-3,
    ),
    Engine(
        "MLPRegressor by evidence",
        _estimated(lambda: _mlp(inference="evidence", time_budget=0.5)),
        (FitInDataUnits,),
        rows=inputs,
        outputs=True,
        units=None,  # how many starts the time allows may differ
        order=None,
        columns=None,
    ),
    Engine(
        "sampled process",
        _estimated(lambda: _gp(**_SHORT, standardise=False), inside=True),
        (SampledProcess,),
        rows=inputs,
        units=None,
        order=None,
        columns=None,
        slow=True,
    ),
    Engine(
        "sampled networks",
        _estimated(lambda: _mlp(**_SHORT, standardise=False), inside=True),
        (SampledNetworks,),
        rows=inputs,
        outputs=True,
        units=None,
        order=None,
        columns=None,
        slow=True,
    ),
    Engine(
        "networks beside their reference",
        _estimated(lambda: _mlp(**_SHORT | {"inference": "auto"}, standardise=False), inside=True),
        (WitnessedNetworks,),
        rows=inputs,
        units=None,
        order=None,
        columns=None,
        slow=True,
    ),
)
