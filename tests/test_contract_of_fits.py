"""Every engine on every problem of a common list meets the contract of `bayessel.fit`.

A clause is a function that raises AssertionError where a fit breaks it; `tests/test_broken_engines.py` has a broken
engine for each of its assertions.

Guards `bayessel._fingerprint`, `bayessel.fit`, `bayessel.prediction`, `bayessel.status`.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import bayessel
from bayessel._fingerprint import fingerprint
from bayessel.fit import Evidence, Fit, LeaveOneOut, Status, worst
from bayessel.prediction import ClassPrediction, Prediction
from tests.problems.engines import ENGINES, Engine
from tests.test_layers import PURE

KINDS = {
    "type2",
    "type2-laplace",
    "type2-ep",
    "type2-vecchia",
    "plug-in",
    "bound",
    "laplace",
    "laplace-bound",
    "laplace-vecchia",
    "third-level",
    "grid",
    "sampled",
    "exact",
}
#: new rows at which every fit predicts
NEW = np.random.default_rng(8).uniform(-2.0, 2.0, size=(4, 2))


@dataclass(frozen=True, eq=False)
class Data:
    """Inputs and a target."""

    name: str
    X: np.ndarray
    y: np.ndarray

    @classmethod
    def made(cls, name: str, n: int, target: Callable[[np.ndarray, np.random.Generator], np.ndarray]) -> Data:
        rng = np.random.default_rng(n)
        X = rng.uniform(-2.0, 2.0, size=(n, 2))
        return cls(name, X, target(X, rng))


def wave(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * rng.normal(size=len(X))


WAVE = Data.made("more rows than functions", 24, wave)
PROBLEMS = (
    WAVE,
    Data.made("fewer rows than functions", 6, wave),
    Data.made("one row", 1, wave),
    Data.made("constant target", 24, lambda X, rng: np.full(len(X), 3.0)),
    Data.made("noise alone", 24, lambda X, rng: rng.normal(size=len(X))),
    Data.made("several outputs", 24, lambda X, rng: np.column_stack([wave(X, rng), X[:, 1] ** 2])),
)


@cache
def fitted(engine: Engine, problem: Data) -> Fit | str:
    """The fit, or what the engine says it needs instead."""
    if problem.y.ndim == 2 and not engine.outputs:
        return "one output"
    try:
        return engine.fit(engine.rows(problem.X), engine.target(problem.y))
    except ValueError as error:
        return str(error)


# --- the clauses ---------------------------------------------------------------------------------------------------


def has_every_field(fit: Fit, data: Data) -> None:
    assert isinstance(fit, Fit)
    assert isinstance(fit.notes, tuple)
    assert all(isinstance(note, Status) for note in fit.notes)
    # of data that say little it is no news that chains disagree: it stands in the notes alone
    little = {Status.CONSTANT_TARGET, Status.TOO_FEW_ROWS} & set(fit.notes)
    heard = [note for note in fit.notes if not (little and note is Status.CHAINS_DISAGREE)]
    assert fit.status is worst(heard), f"status {fit.status} is not the worst of {fit.notes}"
    assert isinstance(fit.n_rows, int | np.integer)
    assert fit.n_rows == len(data.y)
    assert isinstance(fit.optima, tuple)
    assert isinstance(fit.history, tuple)
    assert all(isinstance(entry, Mapping) for entry in fit.history), f"history of {type(fit.history[0])}"
    assert isinstance(fit.seconds, float)
    assert 0.0 <= fit.seconds < np.inf


def names_its_data(fit: Fit) -> None:
    assert re.fullmatch("[0-9a-f]{16}", fit.fingerprint), f"fingerprint {fit.fingerprint!r}"
    assert re.fullmatch("[0-9a-f]{16}", fit.target_fingerprint), f"target_fingerprint {fit.target_fingerprint!r}"


def says_what_its_evidence_is(fit: Fit) -> None:
    if fit.evidence is None:
        assert np.isnan(fit.log_evidence)
        return
    evidence = fit.evidence
    assert isinstance(evidence, Evidence)
    assert evidence.kind in KINDS, evidence
    assert isinstance(evidence.value, float | np.floating)
    assert np.isfinite(evidence.value) or fit.status is not Status.CONVERGED, f"{evidence} without a remark"
    np.testing.assert_equal(fit.log_evidence, float(evidence))
    assert evidence.error is None or evidence.error >= 0.0
    for names in (evidence.maximised, evidence.integrated):
        assert isinstance(names, tuple)
        assert all(isinstance(name, str) for name in names)


def gives_advice(fit: Fit) -> None:
    said = {note for note in {fit.status, *fit.notes} if note is not Status.CONVERGED}
    assert len(fit.advice) == len(said)
    assert all(any(text.startswith(f"{note.name}: ") for text in fit.advice) for note in said)


def describes_itself(fit: Fit) -> None:
    text = fit.describe()
    assert isinstance(text, str)
    assert text.strip() == text
    assert str(fit.n_rows) in text
    assert fit.status.name in text
    assert fit.evidence is None or fit.evidence.kind in text
    assert all(advice in text for advice in fit.advice)


def predicts(fit: Fit, rows: Any, n: int, outputs: int | None) -> None:
    there = fit.predict(rows)
    if fit.predicts_labels:
        predicts_labels(there, n)
        return
    assert isinstance(there, Prediction)
    shape = (n,) if outputs is None else (n, outputs)
    assert there.mean.shape == shape, f"means {there.mean.shape}, rows {shape}"
    assert there.variance.shape == shape, f"variances {there.variance.shape}, rows {shape}"
    assert np.isfinite(there.mean).all()
    assert (there.variance > 0.0).all()
    assert np.isfinite(there.variance).all()
    if there.function_variances is not None:
        assert (there.function_variances >= 0.0).all()
        assert (there.function.variance <= there.variance * (1.0 + 1e-9)).all()
    if len(there.means) == 1:
        y = there.mean + 0.7 * there.std
        np.testing.assert_allclose(there.log_density(y), norm.logpdf(y, there.mean, there.std), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(there.quantile(0.9), norm.ppf(0.9, there.mean, there.std), rtol=1e-9, atol=1e-12)


def predicts_labels(there: Any, n: int) -> None:
    assert isinstance(there, ClassPrediction)
    assert there.probabilities.shape == (n, len(there.classes))
    assert (there.probabilities >= 0.0).all()
    np.testing.assert_allclose(there.probabilities.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(there.log_density(there.mode), np.log(there.probabilities.max(axis=1)))


def leaves_rows_out(fit: Fit, target: np.ndarray, shape: tuple[int, ...], normal: bool) -> None:
    out = fit.leave_one_out()
    assert isinstance(out, LeaveOneOut)
    assert out.errors.shape == shape, f"{out.errors.shape}, {shape}"
    assert out.variances.shape == shape, f"{out.variances.shape}, {shape}"
    assert out.log_densities.shape == shape[:1]
    if fit.status is Status.CONVERGED:
        assert np.isfinite(out.errors).all()
        assert (out.variances > 0.0).all()
        assert np.isfinite(out.log_densities).all()
    known = np.isfinite(out.errors) & np.isfinite(out.variances) & (out.variances > 0.0)
    if normal and known.any():
        expected = norm.logpdf(out.errors, 0.0, np.sqrt(np.where(known, out.variances, np.nan)))
        expected = expected.reshape(len(expected), -1).sum(axis=1)  # outputs of a row are taken as independent
        rows = np.isfinite(expected)
        np.testing.assert_allclose(out.log_densities[rows], expected[rows], rtol=1e-8, atol=1e-10)
    if fit.predicts_labels:
        assert out.prediction is None, "labels have no distribution function"
    else:
        leaves_whole_distributions(out, target, known)


def leaves_whole_distributions(out: LeaveOneOut, target: np.ndarray, known: np.ndarray) -> None:
    """Errors and variances are those of `prediction`, and so are the probability integral transforms."""
    assert isinstance(out.prediction, Prediction)
    there = out.prediction
    assert there.mean.shape == target.shape, f"{there.mean.shape}, {target.shape}"
    size = 1.0 + np.abs(target[known]) + np.sqrt(out.variances[known])
    np.testing.assert_allclose((there.mean[known] + out.errors[known]) / size, target[known] / size, atol=1e-9)
    np.testing.assert_allclose(there.variance[known], out.variances[known], rtol=1e-8)
    assert out.pit.shape == target.shape
    assert np.isnan(out.pit[~known]).all()
    weights = 1.0 / len(there.means) if there.log_weights is None else np.exp(there.log_weights)
    with np.errstate(invalid="ignore"):
        below = (weights * norm.cdf(target, there.means, np.sqrt(there.variances))).sum(axis=0)
    exact = known & (np.sqrt(out.variances) > 1e-9 * np.abs(target))  # others are decided by rounding
    np.testing.assert_allclose(out.pit[exact], below[exact], rtol=1e-6, atol=1e-7)


def equals_refits(fit: Fit, engine: Engine, rows: Any, target: np.ndarray) -> None:
    out = fit.leave_one_out()
    for i in (0, len(target) // 2, len(target) - 1):
        mean, variance = engine.left_out(fit, rows, target, i)
        np.testing.assert_allclose(out.errors[i], target[i] - mean, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(out.variances[i], variance, rtol=1e-7)


def knows_data_apart(engine: Engine, data: Data) -> None:
    rows, target = engine.rows(data.X), engine.target(data.y)
    other_rows = rows.copy()
    other_rows[0, 0] += 0.125
    fit, again = engine.fit(rows, target), engine.fit(rows, target)
    moved, changed = engine.fit(other_rows, target), engine.fit(rows, engine.target(data.y[::-1].copy()))
    assert fit.fingerprint == again.fingerprint
    assert fit.target_fingerprint == again.target_fingerprint
    assert moved.fingerprint != fit.fingerprint
    assert moved.target_fingerprint == fit.target_fingerprint
    assert changed.fingerprint != fit.fingerprint
    assert changed.target_fingerprint != fit.target_fingerprint


def same_predictions(a: Any, b: Any, scale: float, tolerance: float) -> None:
    size = float(np.abs(b.mean).max()) + 1e-300
    np.testing.assert_allclose(a.mean / scale, b.mean, rtol=tolerance, atol=tolerance * size)
    if isinstance(b, Prediction):
        np.testing.assert_allclose(a.std / scale, b.std, rtol=tolerance)


def follows_units(engine: Engine, data: Data, scale: float) -> None:
    rows, new = engine.rows(data.X), engine.rows(NEW)
    here, there = engine.fit(rows, engine.target(data.y)), engine.fit(rows, engine.target(scale * data.y))
    same_predictions(there.predict(new), here.predict(new), scale, engine.units)
    if here.evidence is not None:
        shifted = here.log_evidence - len(data.y) * np.log(scale)
        np.testing.assert_allclose(there.log_evidence, shifted, rtol=0, atol=engine.units * max(1.0, abs(shifted)))


def ignores_order(engine: Engine, data: Data, rows: np.ndarray | None, columns: np.ndarray | None) -> None:
    A, new, target = engine.rows(data.X), engine.rows(NEW), engine.target(data.y)
    here = engine.fit(A, target)
    tolerance = engine.order if columns is None else engine.columns
    if columns is None:
        there, new_there = engine.fit(A[rows], target[rows]), new
    else:
        there, new_there = engine.fit(A[:, columns], target), new[:, columns]
    same_predictions(there.predict(new_there), here.predict(new), 1.0, tolerance)
    if here.evidence is not None:
        size = max(1.0, abs(here.log_evidence))
        np.testing.assert_allclose(there.log_evidence, here.log_evidence, rtol=0, atol=tolerance * size)


# --- the engines ---------------------------------------------------------------------------------------------------


def engines(wanted: Callable[[Engine], Any] = lambda engine: True) -> list[Any]:
    marks = {True: [pytest.mark.slow], False: []}
    return [pytest.param(engine, marks=marks[engine.slow], id=engine.name) for engine in ENGINES if wanted(engine)]


@pytest.mark.filterwarnings("ignore::bayessel.errors.NumericalWarning")  # of few draws
@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
@pytest.mark.parametrize("engine", engines())
def test_a_fit_meets_the_contract(engine, problem):
    fit = fitted(engine, problem)
    if isinstance(fit, str):
        # only what cannot be fitted at all may be refused, and the reason is said
        assert problem.name in ("one row", "several outputs", "constant target", "fewer rows than functions"), fit
        assert len(fit) > 20 or problem.name == "several outputs"
        return
    outputs = problem.y.shape[1] if problem.y.ndim == 2 else None
    has_every_field(fit, problem)
    says_what_its_evidence_is(fit)
    gives_advice(fit)
    describes_itself(fit)
    predicts(fit, engine.rows(NEW), len(NEW), outputs)
    if not engine.stream:
        names_its_data(fit)
        there = fit.predict(engine.rows(NEW))
        normal = isinstance(there, Prediction) and len(there.means) == 1
        leaves_rows_out(fit, engine.target(problem.y), problem.y.shape, normal)


@pytest.mark.parametrize("engine", engines(lambda engine: engine.left_out))
def test_leave_one_out_is_what_refitting_gives(engine):
    fit = fitted(engine, WAVE)
    assert isinstance(fit, Fit)
    equals_refits(fit, engine, engine.rows(WAVE.X), engine.target(WAVE.y))


@pytest.mark.parametrize("engine", engines(lambda engine: not engine.stream))
def test_fingerprints_tell_data_apart(engine):
    knows_data_apart(engine, WAVE)


@pytest.mark.parametrize("shape", [(300_000,), (30_000, 9), (3, 200_000)], ids=str)
def test_every_number_of_large_data_is_in_their_name(rng, shape):
    """Large arrays are named part by part: a change in any of them is another name, and storage is none."""
    whole = rng.normal(size=shape)
    name = fingerprint(whole)
    assert fingerprint(np.asfortranarray(whole)) == fingerprint(whole[::-1][::-1]) == name
    for place in np.linspace(0, whole.size - 1, 9).astype(int):
        other = whole.copy()
        other.flat[place] += 1.0
        assert fingerprint(other) != name, f"number {place} of {whole.size}"


@pytest.mark.parametrize("scale", [2.0**10, 2.0**-20])
@pytest.mark.parametrize("engine", engines(lambda engine: engine.units))
def test_a_change_of_units_moves_the_evidence_by_its_logarithm(engine, scale):
    follows_units(engine, WAVE, scale)


@pytest.mark.parametrize("engine", engines(lambda engine: engine.order))
def test_the_order_of_the_rows_does_not_matter(engine, rng):
    ignores_order(engine, WAVE, rng.permutation(len(WAVE.y)), None)


@pytest.mark.parametrize("engine", engines(lambda engine: engine.columns))
def test_the_order_of_the_columns_does_not_matter(engine, rng):
    ignores_order(engine, WAVE, None, rng.permutation(engine.rows(NEW).shape[1]))


# --- nobody is forgotten -------------------------------------------------------------------------------------------


def concrete(base: type) -> Iterator[type]:
    for child in base.__subclasses__():
        yield from concrete(child)
        if child.__module__.startswith("bayessel.") and not inspect.isabstract(child) and "status" in _fields(child):
            yield child


def _fields(kind: type) -> set[str]:
    """Fields and properties that a class itself says."""
    return {
        name
        for one in kind.__mro__[:-1]
        if one is not Fit
        for name in (*vars(one).get("__annotations__", ()), *vars(one))
    }


def forgotten(made: set[type]) -> set[str]:
    """Classes of fits that no engine makes; bases of others are no results."""
    layers = sorted({layer.split(".")[0] for layer in PURE | {"estimators"}} - {"fit"})
    for layer in layers:
        module = importlib.import_module(f"bayessel.{layer}")
        for found in pkgutil.walk_packages(getattr(module, "__path__", []), f"{module.__name__}."):
            importlib.import_module(found.name)
    # what stands for a trace in a comparison is no result of an engine
    kinds = {kind for kind in concrete(Fit) if not kind.__module__.startswith("bayessel.diagnostics.")}
    bases = {base for kind in kinds for base in kind.__mro__[1:]}
    return {f"{kind.__module__}.{kind.__name__}" for kind in kinds - (bases - made) - made}


def test_every_class_of_fits_has_an_engine():
    made = {kind for engine in ENGINES for kind in engine.results}
    assert forgotten(made) == set()


def test_a_forgotten_class_is_seen():
    made = {kind for engine in ENGINES for kind in engine.results}
    one = bayessel.linear.RidgeFit
    assert forgotten(made - {one}) == {f"{one.__module__}.RidgeFit"}


@pytest.mark.parametrize("engine", engines())
def test_engines_make_what_they_say(engine):
    fit = fitted(engine, WAVE)
    assert type(fit) in engine.results
