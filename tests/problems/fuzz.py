"""Calls with extreme arguments, by families: what `tests/test_fuzz.py` makes thousands of.

A family makes one call from a generator: arrays of every scale, dtype and layout, settings that are mostly sensible. It
returns what was computed as a mapping name -> array, with the shape each must have; an array whose shape is None may
hold infinities or NaN.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd

import bayessel as bs
from bayessel import covariance
from bayessel.basis import width
from bayessel.diagnostics import bridge_sampling, compare, mdl_alpha, mdl_w, nml, prequential
from bayessel.fit import Status
from bayessel.linear import RidgeState
from bayessel.linear.latent import fit_latent, fit_latent_rvm
from bayessel.prediction import ClassPrediction, Prediction

#: sizes of numbers: mostly harmless, else up to the ends of what a double can hold
SCALES = (1.0,) * 8 + (5e-324, 1e-310, 1e-300, 1e-160, 1e-80, 1e-30, 1e-8, 1e8, 1e30, 1e80, 1e155, 1e200, 1e300)
OFFSETS = (0.0,) * 8 + (1.0, 1e3, 1e6, 1e9, 1e12, 1e30, 1e300)
ROWS, FEW_ROWS, COLUMNS = (0, 1, 2, 3, 5, 8, 8, 12, 12), (0, 1, 2, 5, 8), (0, 1, 1, 2, 2, 3, 5, 15)
#: of arrays; the last of each are refused
FLAWS = ("zero column", "same column", "constant", "integers", "mixed", "nan", "inf")
DTYPES = ("float32", "int64", "bool", "object", "longdouble", "float16", "complex")
#: settings nobody means
NONSENSE = (-1, 0, 1, 2.5, np.nan, np.inf, -np.inf, "x", None, True, (), [], 1e300, 1e-300, b"a", object())
#: integers beyond doubles, in place of numbers; as a count they would be meant
HUGE = (10**400, 2**63)

Answer = Mapping[str, tuple[Any, tuple[int, ...] | None]]


class Draw:
    """Random arguments from one generator; keeps every array it gave away, to see whether it was changed."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        #: calm draws have arrays that fit each other and sensible settings: only sizes of numbers and layouts are odd
        self.calm = bool(rng.random() < 0.7)
        self.given: list[tuple[Any, Any]] = []
        self.said: dict[str, Any] = {}

    def one(self, choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def rows(self, choices: tuple[int, ...] = ROWS) -> int:
        return int(self.one([n for n in choices if n > 1 or not self.calm]))

    def setting(self, *sensible: Any) -> Any:
        """A sensible setting; now and then nonsense."""
        odd = NONSENSE + (HUGE if isinstance(sensible[0], float) else ())
        value = self.one(odd) if not self.calm and self.chance(0.1) else self.one(sensible)
        self.said[f"setting {len(self.said)}"] = value
        return value

    def array(self, *shape: int, what: str = "array") -> Any:
        """Numbers of some scale, with some flaw, dtype and layout."""
        rng, scale, offset = self.rng, self.one(SCALES), self.one(OFFSETS)
        with np.errstate(all="ignore"):
            values = rng.normal(size=shape) * scale + offset * (scale if self.chance(0.5) else 1.0)
            flaw = self.one(("",) * 8 + FLAWS[: 5 if self.calm else None])
            if values.size:
                if flaw in ("nan", "inf"):
                    values.flat[int(rng.integers(values.size))] = float(flaw)
                elif flaw == "zero column":
                    values[..., 0] = 0.0
                elif flaw == "same column":
                    values[..., -1] = values[..., 0]
                elif flaw == "constant":
                    values[:] = values.flat[0]
                elif flaw == "integers":
                    values = np.round(rng.normal(size=shape) * 3.0)
                elif flaw == "mixed":
                    values = values * 10.0 ** rng.integers(-40, 40, size=shape[-1:])
            dtype = self.one(("float64",) * 10 + DTYPES[: 5 if self.calm else None])
            found = values.astype(dtype)
        layout = self.one(("C",) * 6 + ("F", "strided", "reversed", "read-only", "list", "frame"))
        if layout == "F":
            found = np.asfortranarray(found)
        elif layout == "strided" and found.ndim:
            found = np.repeat(found, 2, axis=0)[::2]
        elif layout == "reversed" and found.ndim:
            found = found[::-1]
        elif layout == "read-only":
            found.flags.writeable = False
        elif layout == "list":
            found = found.tolist()
        elif layout == "frame" and found.ndim == 2:
            found = pd.DataFrame(found)
        self.said[what] = f"{dtype} {shape} {layout}, scale {scale:g}, offset {offset:g}, {flaw or 'no flaw'}"
        self.given.append((found, _kept(found)))
        return found

    def design(self, n: int | None = None) -> tuple[Any, Any, int, int]:
        """A design and a target: (Phi, t, N, M); now and then their rows differ in number."""
        n, m = self.rows() if n is None else n, self.rows(COLUMNS)
        more = 0 if self.calm else int(self.one((0,) * 10 + (1, -1)))
        t = self.array(max(n + more, 0), *((1,) if not self.calm and self.chance(0.1) else ()), what="target")
        return self.array(n, m, what="design"), t, n, m

    def untouched(self) -> list[str]:
        return [repr(now)[:80] for now, before in self.given if not _same(now, before)]


def _kept(value: Any) -> Any:
    return value.copy(deep=True) if isinstance(value, pd.DataFrame) else np.array(value, dtype=object, copy=True)


def _same(now: Any, before: Any) -> bool:
    now = now.to_numpy(dtype=object) if isinstance(now, pd.DataFrame) else np.array(now, dtype=object)
    before = before.to_numpy(dtype=object) if isinstance(before, pd.DataFrame) else before
    return bool(
        now.shape == before.shape
        and all(a is b or a == b or a != a for a, b in zip(now.flat, before.flat, strict=True))
    )


def of_fit(fit: Any, rows: Any, n: int, outputs: tuple[int, ...] = ()) -> Answer:
    """What must be finite of a fit: predictions always, the evidence where nothing is remarked."""
    there = fit.predict(rows)
    found: dict[str, tuple[Any, tuple[int, ...] | None]] = {}
    if isinstance(there, ClassPrediction):
        found["probabilities"] = (there.probabilities, (n, len(there.classes)))
    else:
        assert isinstance(there, Prediction)
        found |= {"mean": (there.mean, (n, *outputs)), "std": (there.std, (n, *outputs))}
    fit.describe()
    fit.leave_one_out() if fit.fingerprint and n > 1 else None
    if fit.evidence is not None and fit.status is Status.CONVERGED:
        found["evidence"] = (fit.evidence.value, ())
    return found


def evidence(d: Draw) -> Answer:
    A, t, n, _ = d.design()
    return of_fit(
        bs.linear.fit_evidence(
            A, t, centre=d.setting(False, True), method=d.setting("profile", "mackay", "em"), max_steps=d.setting(50)
        ),
        A,
        n,
    )


def ridge(d: Draw) -> Answer:
    A, t, n, _ = d.design()
    if d.chance(0.3):
        found = bs.linear.criteria(A, t, d.setting(1.0, 0.0, 1e-12, 1e300), centre=d.setting(False, True))
        return {name: (value, None) for name, value in found.items()}
    kind = d.setting("gcv", "loo", "uev", "fpe", "bic")
    penalty = d.setting("global", "local") if kind == "gcv" else "global"
    return of_fit(bs.linear.fit_ridge(A, t, criterion=kind, penalty=penalty, centre=d.setting(False, True)), A, n)


def rvm(d: Draw) -> Answer:
    A, t, n, _ = d.design()
    return of_fit(
        bs.linear.fit_rvm(
            A,
            t,
            init=d.setting("auto", "greedy"),
            max_steps=d.setting(50),
            restarts=d.setting(0),
            centre=d.setting(False, True),
        ),
        A,
        n,
    )


def search(d: Draw) -> Answer:
    A, t, n, _ = d.design()
    strategy = d.setting("pta(1,0)", "pta(2,1)", "sffs", "oscil(3)")
    return of_fit(bs.linear.search(A, t, strategy, centre=d.setting(False, True), max_steps=d.setting(40)), A, n)


def forward(d: Draw) -> Answer:
    A, t, n, _ = d.design()
    method, stop = d.setting("ols", "rfs", "backward"), d.setting("gcv", "bic", None)
    return of_fit(bs.linear.forward_select(A, t, method, stop, centre=d.setting(False, True)), A, n)


def loomi(d: Draw) -> Answer:
    A, _, n, _ = d.design()
    y = d.rng.choice([-1, 1], size=n) if d.chance(0.8) else d.array(n, what="labels")
    return of_fit(bs.linear.fit_loomi(A, y, patience=d.setting(1, 3), penalty=d.setting(1e-6, 0.0)), A, n)


def latent(d: Draw) -> Answer:
    A, t, n, _ = d.design()
    name = d.setting("logit", "probit", "poisson", "student", "gaussian")
    if name in ("logit", "probit") and d.chance(0.9):
        t = d.rng.choice([0, 1], size=n)
    elif name == "poisson" and d.chance(0.9):
        t = d.rng.poisson(d.one((0.1, 3.0, 200.0)), size=n)
    if d.chance(0.4):
        fit = fit_latent_rvm(A, t, name, inference=d.setting("auto", "type2"), max_steps=d.setting(20))
    else:
        weights = d.setting(None, None, 1.0, 2.5)
        fit = fit_latent(A, t, name, inference=d.setting("auto", "type2"), sample_weight=weights)
    if name == "poisson":
        means, variances = fit.latent(A)  # expected counts may be no numbers
        return {"mean": (means[0], (n,)), "variance": (variances[0], (n,))}
    return of_fit(fit, A, n)


def abf(d: Draw) -> Answer:
    X, t, n, _ = d.design(d.rows(FEW_ROWS))
    return of_fit(
        bs.linear.fit_abf(X, t, n_starts=d.setting(1), max_steps=d.setting(8), shared=d.setting(False, True)), X, n
    )


def stream(d: Draw) -> Answer:
    (A, t, n, m), (B, s, k, _) = d.design(), d.design()
    B = d.array(k, m, what="second block")
    fit = bs.linear.fit_evidence_stream(
        [(A, t), (B, s)], centre=d.setting(False, True), arithmetic=d.setting("auto", "qr", "gram")
    )
    return of_fit(fit, A, n)


def incremental(d: Draw) -> Answer:
    A, t, n, m = d.design()
    state = RidgeState(A, t, d.setting(1.0, 1e-8, 0.0), centre=d.setting(False, True))
    for _ in range(3):
        step = d.one(("add_row", "remove_row", "add_column", "remove_column"))
        if step == "add_row":
            state.add_row(d.array(m, what="row"), d.one((0.5, 1e300, np.nan, "x")))
            n += 1
        elif step == "remove_row":
            state.remove_row(d.setting(0, 1))
            n -= 1
        elif step == "add_column":
            state.add_column(d.array(n, what="column"), d.setting(1.0))
            m += 1
        else:
            state.remove_column(d.setting(0, 1))
            m -= 1
    return {"coef": (state.coef, (m,)), "sum_squares": (state.sum_squares, ())}


def projection(d: Draw) -> Answer:
    A, t, n, _ = d.design()
    return of_fit(bs.linear.project(A, t, d.setting(0.1, 1.0), centre=d.setting(False, True)), A, n)


def process(d: Draw) -> Answer:
    X, t, n, _ = d.design(d.rows(FEW_ROWS))
    if d.chance(0.3):
        return of_fit(bs.gp.fit_inducing(X, t, n_inducing=d.setting(3), max_evaluations=d.setting(10)), X, n)
    if d.chance(0.3):
        near = bs.gp.fit_vecchia(
            X, t, neighbours=d.setting(3), n_inducing=d.setting(0, 3), max_evaluations=d.setting(10)
        )
        return of_fit(near, X, n)
    return of_fit(
        bs.gp.fit_map(X, t, starts=d.setting(1), max_evaluations=d.setting(15), prior=d.setting("default", None)), X, n
    )


def network(d: Draw) -> Answer:
    X, t, n, _ = d.design(d.rows(FEW_ROWS))
    if d.chance(0.5):
        fit: Any = bs.mlp.fit_network_evidence(X, t, hidden=d.setting(1, 2), n_starts=1, random_state=d.setting(0))
    else:
        fit = bs.mlp.fit_early_stopping(
            X, t, hidden=d.setting(1), n_networks=(2, 2), max_evaluations=10, random_state=d.setting(0)
        )
    return of_fit(fit, X, n, np.shape(t)[1:])


def estimator(d: Draw) -> Answer:
    X, y, n, _ = d.design(d.rows(FEW_ROWS))
    size = d.setting(0.5, 1.0, 2.0, 1e-300, 1e300)
    make = d.one((
        lambda: bs.EvidenceRegressor(width=size),
        lambda: bs.RVMRegressor(width=size, init="greedy"),
        lambda: bs.BasisSearchRegressor(width=size, progressbar=False),
        lambda: bs.ForwardSelectionRegressor(width=size),
        lambda: bs.RidgeRBFRegressor(width=size),
        lambda: bs.GPRegressor(random_state=0, progressbar=False),
        lambda: bs.GPRegressor(likelihood="student"),
        lambda: bs.MLPRegressor("early-stopping", hidden=1, time_budget=0.02, random_state=0, progressbar=False),
    ))  # fmt: skip
    model = make().fit(X, y)
    d.said["estimator"] = type(model).__name__
    mean, std = model.predict(X, return_std=True)
    return {"mean": (mean, (n,)), "std": (std, (n,))}


def classifier(d: Draw) -> Answer:
    X, _, n, _ = d.design(d.rows(FEW_ROWS))
    y = d.rng.choice(["a", "b"], size=n) if d.chance(0.8) else d.array(n, what="labels")
    size = d.setting(1.0, 1e-300, 1e300)
    make = d.one((
        lambda: bs.LOOMIClassifier(width=size),
        lambda: bs.EvidenceClassifier(width=size),
        lambda: bs.EvidenceClassifier(),
        lambda: bs.RVMClassifier(width=size, inference="type2"),
        bs.GPClassifier,
    ))  # fmt: skip
    model = make().fit(X, y)
    d.said["classifier"] = type(model).__name__
    return {"probabilities": (model.predict_proba(X), (n, len(model.classes_)))}


def widths(d: Draw) -> Answer:
    X, y, _, _ = d.design(d.rows(FEW_ROWS))
    grid = [d.setting(0.5, 1.0), d.setting(2.0, 4.0)]
    found = bs.compare_widths(X, y, grid, model=d.setting("evidence", "rvm", "search"), progressbar=False, n_jobs=1)
    found.facts()
    return {"rows": (len(found.table), ())}


def reading(d: Draw) -> Answer:
    A, t, _, _ = d.design()
    one, other = bs.linear.fit_evidence(A, t), bs.linear.fit_rvm(A, t, restarts=0)
    kind = d.one(("compare", "mdl", "nml", "prequential", "bridge"))
    if kind == "compare":
        return {"rows": (len(compare({"a": one, "b": other}, by=d.setting("evidence", "loo", "mdl-w"))), ())}
    if kind == "mdl":
        return {"w": (mdl_w(other, d.setting(0.1, 1e-300)), None), "alpha": (mdl_alpha(other, d.setting(1.0)), None)}
    if kind == "nml":
        return {"nml": (nml(one, None), None)}
    if kind == "bridge":
        draws = d.array(2, 40, 2, what="draws")
        found = bridge_sampling(lambda x: -0.5 * float((x / 1e150) @ (x / 1e150)), draws)
        return {"bridge": (found.log_evidence, None)}
    return {"nats": (prequential(A, t, bs.linear.fit_evidence, random_state=0, orders=1).nats, None)}


def functions(d: Draw) -> Answer:
    X, centers, n = d.array(d.rows(), 2, what="X"), d.array(d.rows(), 2, what="centers"), 0
    n, m = len(X), len(centers)
    if d.chance(0.2):
        return {"width": (width(**{d.one(("rho", "tau", "lengthscale", "omega")): d.setting(1.0, 1e-310, 1e300)}), ())}
    kind = d.setting("gaussian", "cauchy", "multiquadric", "inverse-multiquadric")
    basis = bs.RBFDictionary(centers, d.setting(1.0, 1e-310, 1e300, (1.0, 2.0)), kind=kind, bias=d.setting(True, False))
    bias = int(basis.bias is True)
    return {"design": (basis.design(X), (n, m + bias))}


def kernels(d: Draw) -> Answer:
    X = d.array(d.rows(), 2, what="X")
    kernel = d.one((covariance.Standard, covariance.Matern32, covariance.Periodic, covariance.RationalQuadratic))()
    kernel = kernel + covariance.Noise() if kernel.__class__ is not covariance.Standard else kernel
    size = bs.gp.Marginal(np.zeros((2, 2)), np.zeros(2), kernel).size
    theta = d.array(size, what="theta")
    value, slope = bs.gp.Marginal(X, d.array(len(X), what="t"), kernel).value_and_gradient(theta)
    return {"value": (value, None), "slope": (slope, None)}


def formulas(d: Draw) -> Answer:
    A, t, n, _ = d.design()
    alpha, beta = d.setting(1.0, 1e-30, 1e30), d.setting(1.0, 1e-30, 1e30)
    there = bs.linear.posterior(A, t, alpha, beta, centre=d.setting(False, True)).predict(A)
    return {
        "mean": (there.mean, (n,)),
        "variance": (there.variance, (n,)),
        "evidence": (bs.linear.log_evidence(A, t, alpha, beta), None),
    }


def predictions(d: Draw) -> Answer:
    n = d.rows()
    scale, width = d.one(SCALES), abs(d.one(SCALES))
    with np.errstate(all="ignore"):
        mean, variance = scale * d.rng.normal(size=n), np.maximum(width * d.rng.random(n), 5e-324)
    there = Prediction.normal(mean, variance)
    with np.errstate(all="ignore"):
        y = d.one((mean, mean + np.sqrt(variance), d.rng.normal(size=n) * d.one(SCALES)))
    return {
        "mean": (there.mean, (n,)),
        "std": (there.std, (n,)),
        "quantile": (there.quantile(d.one((0.1, 0.5, 1e-300, 1.0 - 1e-16))), (n,)),
        "log density": (there.log_density(y), None),
        "log cdf": (there.log_cdf(y), None),
    }


WRONG = (
    ("draws", -1), ("draws", "x"), ("draws", 2.5), ("draws", np.nan), ("tune", -1), ("chains", 0), ("cores", 0),
    ("cores", "x"), ("random_seed", -1), ("random_seed", "x"), ("time_budget", "x"), ("time_budget", -1.0),
)  # fmt: skip


def sampling(d: Draw) -> Answer:
    """Arguments that must be refused before a model is compiled."""
    wrong = d.one(WRONG)
    d.said[wrong[0]] = wrong[1]
    model = bs.models.linear(np.eye(3), np.arange(3.0))
    bs.sample(model, **{"draws": 5, "tune": 5, "chains": 1, "progressbar": False, wrong[0]: wrong[1]})
    raise AssertionError(f"{wrong} was accepted")


FAMILIES: dict[str, Callable[[Draw], Answer]] = {
    made.__name__: made
    for made in (
        evidence, ridge, rvm, search, forward, loomi, latent, abf, stream, incremental, projection, process, network,
        estimator,
        classifier, widths, reading, functions, kernels, formulas, predictions, sampling,
    )
}  # fmt: skip


@contextmanager
def watched() -> Iterator[list[str]]:
    """What a call changed of the state that all of a process share."""
    changed: list[str] = []
    errors, filters, state = np.geterr(), list(warnings.filters), np.random.get_state()  # noqa: NPY002
    yield changed
    if np.geterr() != errors:
        changed.append(f"np.geterr() became {np.geterr()}")
        np.seterr(**errors)
    if list(warnings.filters) != filters:
        changed.append("warnings.filters changed")
    if not all(np.array_equal(a, b) for a, b in zip(np.random.get_state(), state, strict=True)):  # noqa: NPY002
        changed.append("NumPy's global generator moved")
