"""The clauses of `tests/test_contract_of_fits.py` see broken engines: every assertion of theirs catches at least one.

Engines here are the mean of the target, or the shares of its labels: they keep the contract until a member is replaced.

Guards `bayessel.fit`.
"""

from __future__ import annotations

import ast
import inspect
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from bayessel._fingerprint import fingerprint
from bayessel.fit import Evidence, Fit, LeaveOneOut, Status, worst
from bayessel.prediction import ClassPrediction, Prediction
from tests import test_contract_of_fits as contract
from tests.problems.engines import Engine, design
from tests.test_contract_of_fits import NEW, WAVE


class MeanFit(Fit):
    """The mean of the target with normal noise."""

    notes: Any = (Status.AT_BOUND,)
    optima: Any = (1.0, 2.0)
    history: Any = ({"step": 1},)
    seconds: Any = 0.01

    def __init__(self, rows: np.ndarray, target: np.ndarray) -> None:
        self.rows, self.target = rows, target

    @property
    def status(self) -> Status:
        return worst(self.notes)

    @property
    def n_rows(self) -> int:
        return len(self.target)

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.rows, self.target)

    @property
    def target_fingerprint(self) -> str:
        return fingerprint(self.target)

    @property
    def noise(self) -> float:
        return float(self.target.std())

    @property
    def evidence(self) -> Evidence | None:
        value = norm.logpdf(self.target, self.target.mean(), self.noise).sum()
        return Evidence(value, "type2", 0.1, ("mean",), ("nothing",))

    def predict(self, rows: Any) -> Prediction:
        mean = np.full(len(rows), self.target.mean())
        return Prediction.normal(mean, self.noise**2, self.noise**2 / len(self.target))

    def leave_one_out(self) -> LeaveOneOut:
        n = len(self.target)
        errors = (self.target - self.target.mean()) * n / (n - 1)
        return LeaveOneOut.normal(errors, np.full(n, self.noise**2), self.target)


class ShareFit(MeanFit):
    """The shares of two labels."""

    @property
    def predicts_labels(self) -> bool:
        return True

    def predict(self, rows: Any) -> Any:
        return ClassPrediction(np.array([0, 1]), np.tile([0.25, 0.75], (len(rows), 1)))


def _mean_left_out(fit: Any, rows: Any, target: np.ndarray, i: int) -> tuple[float, float]:
    return float(np.delete(target, i).mean()), fit.noise**2


def engine_of(kind: type[Fit]) -> Engine:
    return Engine("mean", kind, (kind,), rows=design, left_out=_mean_left_out)


Clause = Callable[[Engine, Fit], None]
CLAUSES: dict[str, Clause] = {
    "fields": lambda engine, fit: contract.has_every_field(fit, WAVE),
    "names": lambda engine, fit: contract.names_its_data(fit),
    "evidence": lambda engine, fit: contract.says_what_its_evidence_is(fit),
    "advice": lambda engine, fit: contract.gives_advice(fit),
    "description": lambda engine, fit: contract.describes_itself(fit),
    "predictions": lambda engine, fit: contract.predicts(fit, design(NEW), len(NEW), None),
    "labels": lambda engine, fit: contract.predicts(fit, design(NEW), len(NEW), None),
    "left out": lambda engine, fit: contract.leaves_rows_out(fit, WAVE.y, (len(WAVE.y),), normal=True),
    "refits": lambda engine, fit: contract.equals_refits(fit, engine, design(WAVE.X), WAVE.y),
    "apart": lambda engine, fit: contract.knows_data_apart(engine, WAVE),
    "units": lambda engine, fit: contract.follows_units(engine, WAVE, 2.0**10),
    "order": lambda engine, fit: contract.ignores_order(engine, WAVE, np.arange(len(WAVE.y))[::-1], None),
    "columns": lambda engine, fit: contract.ignores_order(engine, WAVE, None, np.arange(9)[::-1]),
}
#: where the assertions of each clause stand
FUNCTIONS: dict[str, tuple[Callable[..., None], ...]] = {
    "fields": (contract.has_every_field,),
    "names": (contract.names_its_data,),
    "evidence": (contract.says_what_its_evidence_is,),
    "advice": (contract.gives_advice,),
    "description": (contract.describes_itself,),
    "predictions": (contract.predicts,),
    "labels": (contract.predicts_labels,),
    "left out": (contract.leaves_rows_out, contract.leaves_whole_distributions),
    "refits": (contract.equals_refits,),
    "apart": (contract.knows_data_apart,),
    "units": (contract.follows_units, contract.same_predictions),
    "order": (contract.ignores_order, contract.same_predictions),
    "columns": (contract.ignores_order, contract.same_predictions),
}


def evidence(**changes: Any) -> Any:
    """A member: the evidence with some of its fields replaced."""
    return property(lambda fit: replace(MeanFit.evidence.fget(fit), **changes))


def evidence_plus(more: Callable[[Any], float]) -> Any:
    def changed(fit: Any) -> Evidence:
        found = MeanFit.evidence.fget(fit)
        return replace(found, value=found.value + more(fit))

    return property(changed)


def prediction(change: Callable[[Any, Prediction], Any]) -> Any:
    """A member: what is predicted, changed by a function of the fit and the honest prediction."""
    return lambda fit, rows: change(fit, MeanFit.predict(fit, rows))


def shares(change: Callable[[ClassPrediction], Any]) -> Any:
    return lambda fit, rows: change(ShareFit.predict(fit, rows))


def shifted(mean: Callable[[Any], float] = lambda fit: 0.0, factor: Callable[[Any], float] = lambda fit: 1.0) -> Any:
    """A member: predictions with another mean, or wider by a factor."""
    return prediction(
        lambda fit, there: Prediction.normal(there.mean + mean(fit), there.variance * factor(fit), None),
    )


def left_out(**changes: Callable[[np.ndarray], np.ndarray]) -> Any:
    """A member: leave-one-out with some of its arrays changed."""

    def changed(fit: Any) -> LeaveOneOut:
        honest = MeanFit.leave_one_out(fit)
        return replace(honest, **{name: change(getattr(honest, name)) for name, change in changes.items()})

    return changed


def transformed(change: Callable[[np.ndarray], np.ndarray], **changes: Any) -> Any:
    """A member: leave-one-out with other probability integral transforms."""

    class Transformed(LeaveOneOut):
        @property
        def pit(self) -> np.ndarray:
            return change(super().pit)

    def changed(fit: Any) -> LeaveOneOut:
        found = left_out(**changes)(fit)
        return Transformed(found.errors, found.variances, found.log_densities, found.prediction)

    return changed


def spoilt(value: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda array: np.concatenate([[value], array[1:]])


class Dense(Prediction):
    def log_density(self, y: Any) -> np.ndarray:
        return super().log_density(y) + 0.1


class Late(Prediction):
    def quantile(self, q: Any) -> np.ndarray:
        return super().quantile(q) + 0.1


class Shapeless(Prediction):
    @property
    def variance(self) -> np.ndarray:
        return super().variance[:1]


class Sure(ClassPrediction):
    def log_density(self, y: Any) -> np.ndarray:
        return super().log_density(y) + 0.1


class Stranger:
    """Every member of a fit, but no fit."""

    def __init__(self, rows: Any, target: Any) -> None:
        self._fit = MeanFit(rows, target)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._fit, name)


def counted() -> Callable[[Any], str]:
    """Names that no two fits share."""
    names = iter(range(1000))
    made: dict[int, str] = {}
    kept: list[Any] = []

    def name(fit: Any) -> str:
        if id(fit) not in made:
            kept.append(fit)
            made[id(fit)] = f"{next(names):016x}"
        return made[id(fit)]

    return name


CALM: dict[str, Any] = {"notes": ()}
# Clause -> what is broken -> the members that break it.
BROKEN: dict[str, dict[str, Mapping[str, Any] | type]] = {
    "fields": {
        "no fit": Stranger,
        "notes are a list": {"notes": [Status.AT_BOUND], "status": Status.AT_BOUND},
        "notes are words": {"notes": ("at bound",), "status": Status.CONVERGED},
        "status is not the worst note": {"status": Status.CONVERGED},
        "rows are a real number": {"n_rows": 24.0},
        "a row too few": {"n_rows": 23},
        "optima are a list": {"optima": [1.0]},
        "history is a list": {"history": [{}]},
        "history is of words": {"history": ("a step",)},
        "seconds are a word": {"seconds": "1 s"},
        "seconds are negative": {"seconds": -1.0},
    },
    "names": {
        "data without a name": {"fingerprint": ""},
        "target without a name": {"target_fingerprint": ""},
    },
    "evidence": {
        "none, but a number of it": {"evidence": None, "log_evidence": 1.0},
        "a bare number": {"evidence": property(lambda fit: type("Number", (float,), {"value": 1.0})(1.0))},
        "an unknown kind": {"evidence": evidence(kind="guess")},
        "a value that is an array": {"evidence": evidence(value=np.ones(1))},
        "no number, and no remark": {**CALM, "evidence": evidence(value=np.nan)},
        "two values": {"log_evidence": 1.0},
        "a negative error": {"evidence": evidence(error=-1.0)},
        "names in a list": {"evidence": evidence(maximised=["alpha"])},
        "names that are numbers": {"evidence": evidence(integrated=(1,))},
    },
    "advice": {
        "no advice": {"advice": ()},
        "advice on something else": {"advice": ("INTERRUPTED: go on",)},
    },
    "description": {
        "no text": {"describe": lambda fit: 3},
        "an empty line": {"describe": lambda fit: Fit.describe(fit) + "\n"},
        "rows are not said": {"describe": lambda fit: Fit.describe(fit).replace("24", "some")},
        "status is not said": {"describe": lambda fit: Fit.describe(fit).replace("AT_BOUND", "")},
        "kind of the evidence is not said": {"describe": lambda fit: Fit.describe(fit).replace("type2", "")},
        "advice is not given": {"describe": lambda fit: "\n".join(Fit.describe(fit).splitlines()[:2])},
    },
    "predictions": {
        "an array": {"predict": prediction(lambda fit, there: there.mean)},
        "one row for all": {"predict": lambda fit, rows: MeanFit.predict(fit, rows[:1])},
        "one variance for all": {"predict": prediction(lambda fit, there: Shapeless(there.means, there.variances))},
        "means without end": {"predict": shifted(mean=lambda fit: np.inf)},
        "no variance": {"predict": shifted(factor=lambda fit: 0.0)},
        "variance without end": {"predict": shifted(factor=lambda fit: np.inf)},
        "a negative variance of the function": {
            "predict": prediction(lambda fit, there: replace(there, function_variances=-there.variances))
        },
        "a function less sure than its observations": {
            "predict": prediction(lambda fit, there: replace(there, function_variances=2.0 * there.variances))
        },
        "another density": {"predict": prediction(lambda fit, there: Dense(there.means, there.variances))},
        "other quantiles": {"predict": prediction(lambda fit, there: Late(there.means, there.variances))},
    },
    "labels": {
        "numbers in place of labels": {"predict": MeanFit.predict},
        "a label too many": {"predict": shares(lambda there: replace(there, classes=np.arange(3)))},
        "a negative probability": {
            "predict": shares(lambda there: replace(there, probabilities=np.tile([-0.5, 1.5], (4, 1))))
        },
        "shares that are not all": {
            "predict": shares(lambda there: replace(there, probabilities=np.full((4, 2), 0.4)))
        },
        "another density": {"predict": shares(lambda there: Sure(there.classes, there.probabilities))},
    },
    "left out": {
        "an array": {"leave_one_out": lambda fit: fit.target},
        "a column of errors": {"leave_one_out": left_out(errors=lambda e: e[:, None])},
        "one variance": {"leave_one_out": left_out(variances=lambda v: v[0])},
        "one density": {"leave_one_out": left_out(log_densities=lambda d: d.sum())},
        "an error without end": {**CALM, "leave_one_out": left_out(errors=spoilt(np.inf))},
        "no variance": {**CALM, "leave_one_out": left_out(variances=spoilt(0.0))},
        "a density without end": {**CALM, "leave_one_out": left_out(log_densities=spoilt(-np.inf))},
        "another density": {"leave_one_out": left_out(log_densities=lambda d: d + 1.0)},
        "distributions of labels": {"predicts_labels": True},
        "no distributions": {"leave_one_out": left_out(prediction=lambda there: None)},
        "one distribution": {"leave_one_out": left_out(prediction=lambda there: Prediction.normal(1.0, 1.0))},
        "distributions of another mean": {"leave_one_out": left_out(prediction=lambda there: there.scaled(0.1, 1.0))},
        "distributions of another variance": {
            "leave_one_out": left_out(prediction=lambda there: replace(there, variances=1.1 * there.variances))
        },
        "one integral transform for all": {"leave_one_out": transformed(lambda pit: pit[:1])},
        "an integral transform of a row without a prediction": {
            "leave_one_out": transformed(lambda pit: np.full(len(pit), 0.5), variances=spoilt(np.inf)),
        },
        "integral transforms of the upper tail": {"leave_one_out": transformed(lambda pit: 1.0 - pit)},
    },
    "refits": {
        "errors of rows that were fitted": {"leave_one_out": left_out(errors=lambda e: e * 23 / 24)},
        "another variance": {"leave_one_out": left_out(variances=lambda v: 1.1 * v)},
    },
    "apart": {
        "a new name for every fit": {"fingerprint": property(counted())},
        "a new name of the target for every fit": {"target_fingerprint": property(counted())},
        "inputs that do not count": {"fingerprint": property(lambda fit: fingerprint(fit.target))},
        "a target named after the inputs": {"target_fingerprint": MeanFit.fingerprint},
        "a target that does not count": {"fingerprint": property(lambda fit: fingerprint(fit.rows))},
        "one name for all targets": {"target_fingerprint": "0" * 16},
    },
    "units": {
        "a mean with a unit": {"predict": shifted(mean=lambda fit: 1.0)},
        "a noise with a unit": {"predict": shifted(factor=lambda fit: 1.0 + 1.0 / fit.noise)},
        "an evidence that forgets the unit": {"evidence": evidence_plus(lambda fit: 24.0 * np.log(fit.noise))},
    },
    "order": {
        "the first row counts more in the mean": {"predict": shifted(mean=lambda fit: 0.1 * fit.target[0])},
        "the first row counts more in the noise": {"predict": shifted(factor=lambda fit: np.exp(fit.target[0]))},
        "the first row counts more in the evidence": {"evidence": evidence_plus(lambda fit: fit.target[0])},
    },
    "columns": {
        "the first column counts more in the mean": {"predict": shifted(mean=lambda fit: fit.rows[0, 0])},
        "the first column counts more in the noise": {"predict": shifted(factor=lambda fit: np.exp(fit.rows[0, 0]))},
        "the first column counts more in the evidence": {"evidence": evidence_plus(lambda fit: fit.rows[0, 0])},
    },
}  # fmt: skip


def base(clause: str) -> type[MeanFit]:
    return ShareFit if clause == "labels" else MeanFit


def assertions(clause: str) -> set[int]:
    """Lines of the assertions of a clause."""
    found = set()
    for function in FUNCTIONS[clause]:
        lines, first = inspect.getsourcelines(function)
        for node in ast.walk(ast.parse("".join(lines))):
            called = isinstance(node, ast.Call) and ast.unparse(node.func).startswith("np.testing.")
            if isinstance(node, ast.Assert) or called:
                found.add(first + node.lineno - 1)
    return found


def caught(clause: str, broken: Mapping[str, Any] | type) -> int:
    """The line whose assertion a broken engine fails; 0 where none does."""
    kind = broken if isinstance(broken, type) else type("BrokenFit", (base(clause),), dict(broken))
    engine = engine_of(kind)
    try:
        CLAUSES[clause](engine, engine.fit(design(WAVE.X), WAVE.y))
    except AssertionError as error:
        frames = traceback.extract_tb(error.__traceback__)
        return [frame.lineno or 0 for frame in frames if frame.filename == contract.__file__][-1]
    return 0


@pytest.mark.parametrize("clause", CLAUSES)
def test_an_honest_engine_passes(clause):
    assert caught(clause, {}) == 0
    assert caught(clause, CALM) == 0
    assert caught(clause, {"evidence": None}) == 0


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize(("clause", "what"), [(clause, what) for clause in BROKEN for what in BROKEN[clause]])
def test_a_broken_engine_is_caught(clause, what):
    assert caught(clause, BROKEN[clause][what]) in assertions(clause)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("clause", CLAUSES)
def test_every_assertion_catches_a_broken_engine(clause):
    found = {caught(clause, broken) for broken in BROKEN[clause].values()}
    lines = inspect.getsource(contract).splitlines()
    assert not {line: lines[line - 1].strip() for line in assertions(clause) - found}


def test_every_function_that_asserts_is_a_clause():
    """Helpers of the contract with assertions that no clause lists would have no broken engine."""
    tree = ast.parse(inspect.getsource(contract))
    known = {function.__name__ for functions in FUNCTIONS.values() for function in functions}
    asserting = {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and any(isinstance(inside, ast.Assert) for inside in ast.walk(node))
    }
    assert {name for name in asserting if not name.startswith("test_")} <= known
