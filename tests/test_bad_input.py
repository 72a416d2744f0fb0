"""Bad input at every public door: the type of the exception, and a message that says what was needed and what came.

Guards `bayessel._check`, `bayessel.basis.user_columns`.
"""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError

import bayessel as bs
from bayessel.basis import UserDictionary as Own
from bayessel.cli import main
from bayessel.criteria.registry import OF_RIDGE

L = bs.linear
_rng = np.random.default_rng(0)
PHI, T = _rng.normal(size=(6, 2)), _rng.normal(size=6)
X = PHI
TWO = np.column_stack([T, T])
NAN = np.where(np.arange(12).reshape(6, 2) == 5, np.nan, PHI)
INF = np.where(np.arange(12).reshape(6, 2) == 6, -np.inf, PHI)
HUGE, TINY = 1e150 * PHI, 1e-150 * PHI
SPARSE = scipy.sparse.csr_matrix(PHI)
RAGGED = [[1.0, 2.0], [3.0]]
DATES = pd.date_range("2020", periods=6)
MASKED = np.ma.masked_array(PHI, mask=PHI > 0)
SPECTRUM = L.Spectrum.of(PHI, T)
TALL = np.random.default_rng(1).normal(size=(40_000, 3))

D = bs.RBFDictionary
E, R = bs.EvidenceRegressor, bs.RidgeRBFRegressor
V, Y = ValueError, TypeError

MISSING = r"must be finite, got 1 bad value\(s\), the first \(NaN\) at \[2, 1\]; drop or impute"
INFINITE = r"must be finite, got 1 bad value\(s\), the first \(infinity\) at \[3, 0\]; drop or impute"
RANGE = "has values of size .*, whose squares leave double precision; rescale it"
KIND = "kind must be one of 'gaussian', 'multiquadric', 'inverse_multiquadric', 'cauchy', got"
CRITERION = f"criterion must be one of {', '.join(map(repr, OF_RIDGE))}, got"
METHOD = "method must be one of 'profile', 'mackay', 'em', got"
FLAG = "must be True or False, got"


def state():
    return L.RidgeState(PHI, T, 1.0)


def fitted():
    return E().fit(X, T)


def several():
    return E().fit(X, TWO)


def compare(X=X, y=T, widths=(1.0,), **options):
    return bs.compare_widths(X, y, widths, progressbar=False, **options)


BAD = {
    # dictionaries
    "centers: text": (lambda: D("abc", 1.0), Y, "centers must be numeric, got str.*encode or drop"),
    "centers: None": (lambda: D(None, 1.0), Y, "centers must be numbers, got None"),
    "centers: a number": (lambda: D(3.0, 1.0), V, r"centers must be 2-D .*a single number, 3.0; pass \[\[3.0\]\]"),
    "centers: cube": (lambda: D(np.ones((2, 2, 2)), 1.0), V, r"centers must be 2-D .*shape \(2, 2, 2\)"),
    "centers: none at all": (lambda: D(np.empty((0, 2)), 1.0), V, r"at least one row and one column, got.*\(0, 2\)"),
    "centers: ragged": (lambda: D(RAGGED, 1.0), V, "centers must be a rectangular array.*different lengths"),
    "centers: dates": (lambda: D(DATES, 1.0), Y, "centers must be numeric, got"),
    "centers: masked": (lambda: D(MASKED, 1.0), Y, "centers has masked values; fill them, or drop those rows"),
    "centers: NaN": (lambda: D(NAN, 1.0), V, "centers " + MISSING),
    "centers: sparse": (lambda: D(SPARSE, 1.0), Y, r"centers is a sparse matrix.*pass centers.toarray\(\)"),
    "width: zero": (lambda: D(X, 0), V, "width must be positive and finite, got 0.0"),
    "width: negative": (lambda: D(X, -1.0), V, "width must be positive and finite, got -1.0"),
    "width: infinite": (lambda: D(X, np.inf), V, "width must be positive and finite, got inf"),
    "width: one of two is zero": (lambda: D(X, [1.0, 0.0]), V, "width must be positive and finite, got 0.0"),
    "width: None": (lambda: D(X, None), Y, "width must be a number or 2 numbers, got None"),
    "width: True": (lambda: D(X, True), Y, "width must be a number or 2 numbers, got True"),
    "width: booleans": (lambda: D(X, [True, 1.0]), Y, "width must be a number or 2 numbers, got True or False"),
    "width: text": (lambda: D(X, "wide"), Y, "width must be a number or 2 numbers, got 'wide'"),
    "width: complex": (lambda: D(X, 1 + 2j), V, "width must be real, got complex.*pass .real or .imag"),
    "width: three for two inputs": (lambda: D(X, [1, 2, 3]), V, r"width must be one number or 2 numbers.*\(3,\)"),
    "width: a matrix": (lambda: D(X, np.ones((2, 2))), V, r"width must be one number or 2 numbers.*\(2, 2\)"),
    "kind: unknown": (lambda: D(X, 1.0, kind="box"), V, KIND + " 'box'"),
    "kind: None": (lambda: D(X, 1.0, kind=None), V, KIND + " None"),
    "bias: text": (lambda: D(X, 1.0, bias="no"), Y, f"bias {FLAG} 'no'"),
    "linear: text": (lambda: D(X, 1.0, linear="no"), Y, f"linear {FLAG} 'no'"),
    "design: other number of inputs": (lambda: D(X, 1.0).design(X[:, :1]), V, r"X must have 2 columns.*\(6, 1\)"),
    "design: a number": (lambda: D(X, 1.0).design(3.0), V, "X must be 2-D .*a single number"),
    "design: NaN": (lambda: D(X, 1.0).design(NAN), V, "X " + MISSING),
    "design: missing value of pandas": (
        lambda: D([0.0], 1.0).design(pd.DataFrame({"a": pd.array([1, None, 3], dtype="Int64")})),
        V,
        r"X must be finite.*\[1, 0\]",
    ),
    "join: with a number": (lambda: D(X, 1.0) + 3, Y, "unsupported operand"),
    # widths in other conventions
    "convert: nothing": (lambda: bs.width(), V, "give exactly one of rho, tau, lengthscale, omega; got none"),
    "convert: two": (lambda: bs.width(rho=1, tau=2), V, "give exactly one of .*; got rho, tau"),
    "convert: a list": (lambda: bs.width(rho=[1, 2]), Y, r"rho must be a positive number, got \[1, 2\]"),
    "convert: zero": (lambda: bs.width(omega=0), V, "omega must be positive and finite, got 0.0"),
    "convert: text": (lambda: bs.width(tau="4"), Y, "tau must be a positive number, got '4'"),
    "convert: NaN": (lambda: bs.width(lengthscale=np.nan), V, "lengthscale must be positive and finite, got nan"),
    # columns of one's own
    "own columns: not callable": (lambda: Own(3, ["a"]), Y, "functions must be a callable.*got 3"),
    "own columns: no function": (lambda: Own([], ["a"]), Y, "non-empty list of callables"),
    "own columns: a word among them": (
        lambda: Own([np.sin, "cos"], ["a", "b"]),
        Y,
        "list of callables.*'cos'",
    ),
    "own columns: no names": (lambda: Own(np.sin, []), V, "give one name per column: 1 functions, 0 names"),
    "own columns: names None": (lambda: Own(np.sin, None), Y, "names must be a list.*got None"),
    "own columns: names one word": (
        lambda: Own([np.sin, np.cos], "ab"),
        Y,
        "names must be a list.*got 'ab'",
    ),
    "own columns: bias a word": (lambda: Own(np.sin, ["a", "b"], bias="yes"), Y, f"bias {FLAG} 'yes'"),
    "own columns: lost rows": (
        lambda: Own(lambda X: X[:2], ["a", "b"]).design(X),
        V,
        r"one value per row: 6 rows, got shape \(2, 2\)",
    ),
    "own columns: more than named": (
        lambda: Own(lambda X: X, ["a"]).design(X),
        V,
        "return 2 columns but 1 names",
    ),
    "own columns: NaN": (
        lambda: Own(lambda X: NAN, ["a", "b"]).design(X),
        V,
        "the user's columns " + MISSING,
    ),
    "own columns: nothing returned": (
        lambda: Own(lambda X: None, ["a"]).design(X),
        Y,
        "columns must be .*None",
    ),
    "own columns: words": (lambda: Own(lambda X: ["a"] * 6, ["a"]).design(X), Y, "columns must be numeric"),
    # evidence and posterior of given precisions
    "evidence: NaN": (lambda: L.log_evidence(NAN, T, 1, 1), V, "Phi " + MISSING),
    "evidence: one dimension": (lambda: L.log_evidence(T, T, 1, 1), V, r"Phi must be 2-D .*Phi.reshape\(-1, 1\)"),
    "evidence: no rows": (lambda: L.log_evidence(np.empty((0, 2)), [], 1, 1), V, "Phi must have at least one row"),
    "evidence: Phi None": (lambda: L.log_evidence(None, T, 1, 1), Y, "Phi must be numbers, got None"),
    "evidence: t None": (lambda: L.log_evidence(PHI, None, 1, 1), Y, "t must be numbers, got None"),
    "evidence: t too short": (lambda: L.log_evidence(PHI, T[:5], 1, 1), V, "t must have one value per row.*6.*5"),
    "evidence: two targets": (lambda: L.log_evidence(PHI, TWO, 1, 1), V, r"t must be 1-D.*\(6, 2\)"),
    "evidence: complex": (lambda: L.log_evidence(PHI + 1j, T, 1, 1), V, "Phi must be real, got complex"),
    "evidence: alpha negative": (lambda: L.log_evidence(PHI, T, -1, 1), V, "alpha must be positive, got -1.0"),
    "evidence: alpha zero": (lambda: L.log_evidence(PHI, T, [0, 1], 1), V, "alpha must be positive, got 0.0"),
    "evidence: alpha None": (lambda: L.log_evidence(PHI, T, None, 1), Y, "alpha must be a number or 2 numbers"),
    "evidence: three alphas": (lambda: L.log_evidence(PHI, T, [1, 2, 3], 1), V, "alpha must be one number or 2"),
    "evidence: beta zero": (lambda: L.log_evidence(PHI, T, 1, 0), V, "beta must be positive and finite, got 0.0"),
    "evidence: beta NaN": (lambda: L.log_evidence(PHI, T, 1, np.nan), V, "beta must be positive and finite, got nan"),
    "evidence: beta None": (lambda: L.log_evidence(PHI, T, 1, None), Y, "beta must be a positive number, got None"),
    "evidence: beta True": (lambda: L.log_evidence(PHI, T, 1, True), Y, "beta must be a positive number, got True"),
    "evidence: several betas": (lambda: L.log_evidence(PHI, T, 1, [1, 2]), Y, r"beta must be a positive number.*\[1"),
    "evidence: precisions worlds apart": (lambda: L.log_evidence(PHI, T, 1e300, 1e-300), V, "alpha / beta must lie"),
    "evidence: and the other way": (lambda: L.log_evidence(PHI, T, [1e-300, 1], 1.0), V, "alpha / beta .*rescale"),
    "evidence: huge design": (lambda: L.log_evidence(HUGE, T, 1, 1), V, "Phi " + RANGE),
    "evidence: tiny design": (lambda: L.log_evidence(TINY, T, 1, 1), V, "Phi " + RANGE),
    "evidence: huge target": (lambda: L.log_evidence(PHI, 1e150 * T, 1, 1), V, "t " + RANGE),
    "evidence: centre a word": (lambda: L.log_evidence(PHI, T, 1, 1, centre="no"), Y, f"centre {FLAG} 'no'"),
    "posterior: alpha negative": (lambda: L.posterior(PHI, T, -1, 1), V, "alpha must be non-negative, got -1.0"),
    "posterior: beta infinite": (lambda: L.posterior(PHI, T, 1, np.inf), V, "beta must be positive and finite"),
    "posterior: other columns": (
        lambda: L.posterior(PHI, T, 1, 1).predict(PHI[:, :1]),
        V,
        r"must have the 2 columns.*\(6, 1\)",
    ),
    "posterior: spread of NaN": (lambda: L.posterior(PHI, T, 1, 1).variance(NAN), V, "Phi " + MISSING),
    "posterior: spread of a row": (lambda: L.posterior(PHI, T, 1, 1).variance(PHI[0]), V, "Phi must be 2-D"),
    # factorisations
    "factorisation: flat of other length": (lambda: L.Spectrum.of(PHI, T, flat=np.ones(3)), V, "flat must have the 6"),
    "factorisation: target of other length": (lambda: L.Spectrum.of(PHI, T).retarget(T[:3]), V, "one value per row"),
    "left out: a design": (lambda: L.reported_sums.loo_residuals(PHI, 1.0), Y, "needs a Spectrum.* got ndarray"),
    "left out: negative": (
        lambda: L.reported_sums.loo_residuals(SPECTRUM, -1.0),
        V,
        "lam must be positive and finite, got -1.0",
    ),
    "third level: a design": (
        lambda: L.third_level.model_evidence_quadrature(PHI),
        Y,
        "needs a Spectrum .*got ndarray",
    ),
    "third level: upside down": (
        lambda: L.third_level.model_evidence_quadrature(SPECTRUM, 2, 1),
        V,
        "lower must be less than",
    ),
    "third level: negative": (
        lambda: L.third_level.model_evidence_quadrature(SPECTRUM, -1, 1),
        V,
        "lower must be positive",
    ),
    "third level: half points": (
        lambda: L.third_level.model_evidence_quadrature(SPECTRUM, points=2.5),
        Y,
        "points must be an int",
    ),
    # criteria and ridge
    "criteria: negative": (lambda: L.criteria(PHI, T, -1), V, "lam must be non-negative, got -1.0"),
    "criteria: NaN": (lambda: L.criteria(PHI, T, np.nan), V, "lam must be non-negative, got nan"),
    "criteria: a word": (lambda: L.criteria(PHI, T, "big"), Y, "lam must be a number or 2 numbers, got 'big'"),
    "criteria: three for two": (lambda: L.criteria(PHI, T, [1, 2, 3]), V, r"lam must be one number or 2.*\(3,\)"),
    "criteria: vanishing": (lambda: L.criteria(PHI, T, 1e-300), V, "lam must lie between 1e-150 and 1e150"),
    "ridge: no target": (lambda: L.fit_ridge(PHI), Y, "fit_ridge needs a design and a target, or a Spectrum"),
    "ridge: NaN": (lambda: L.fit_ridge(NAN, T, penalty="local"), V, "Phi " + MISSING),
    "ridge: criterion": (lambda: L.fit_ridge(PHI, T, criterion="aic"), V, CRITERION + " 'aic'"),
    "ridge: penalty": (lambda: L.fit_ridge(PHI, T, penalty="lasso"), V, "penalty must be one of 'global', 'local'"),
    "ridge: local by BIC": (lambda: L.fit_ridge(PHI, T, penalty="local", criterion="bic"), V, "'gcv' only.*'bic'"),
    "ridge: local of a factorisation": (lambda: L.fit_ridge(SPECTRUM, penalty="local"), Y, "the design and the target"),
    "ridge: no sweeps": (lambda: L.fit_ridge(PHI, T, penalty="local", max_sweeps=0), V, "max_sweeps must be at least"),
    "ridge: start of other length": (lambda: L.fit_ridge(PHI, T, penalty="local", start=[1, 2, 3]), V, "start must be"),
    "ridge: start of a scan": (lambda: L.fit_ridge(PHI, T, start=1.0), V, "start is for penalty='local'"),
    "ridge: tolerance": (lambda: L.fit_ridge(PHI, T, tol=-1), V, "tol must be positive and finite, got -1.0"),
    "ridge: huge": (lambda: L.fit_ridge(HUGE, T, penalty="local"), V, "Phi " + RANGE),
    "ridge: rows not kept": (
        lambda: L.fit_ridge(L.Spectrum.of(TALL, TALL[:, 0]), criterion="loo"),
        V,
        "leave-one-out needs the rows; build the Spectrum with rows=True",
    ),
    "fixed point: leave-one-out": (
        lambda: L.ridge.reestimate_lambda(PHI, T, criterion="loo"),
        V,
        "criterion must be one of",
    ),
    "fixed point: from zero": (lambda: L.ridge.reestimate_lambda(PHI, T, start=0), V, "start must be positive"),
    "fixed point: no target": (
        lambda: L.ridge.reestimate_lambda(PHI),
        Y,
        "reestimate_lambda needs a design and a target",
    ),
    # the evidence procedure
    "type II: no target": (lambda: L.fit_evidence(PHI), Y, "fit_evidence needs a design and a target, or a Spectrum"),
    "type II: method": (lambda: L.fit_evidence(PHI, T, method="vb"), V, METHOD + " 'vb'"),
    "type II: half steps": (lambda: L.fit_evidence(PHI, T, max_steps=2.5), Y, "max_steps must be an integer.*2.5"),
    "type II: no tolerance": (lambda: L.fit_evidence(PHI, T, tol=0), V, "tol must be positive and finite, got 0.0"),
    "type II: alpha0": (lambda: L.fit_evidence(PHI, T, alpha0=-1), V, "alpha0 must be positive and finite, got -1.0"),
    "type II: beta0": (lambda: L.fit_evidence(PHI, T, beta0=-1), V, "beta0 must be positive and finite, got -1.0"),
    "type II: infinity": (lambda: L.fit_evidence(INF, T), V, "Phi " + INFINITE),
    "type II: sparse": (lambda: L.fit_evidence(SPARSE, T), Y, r"Phi is a sparse matrix.*pass Phi.toarray\(\)"),
    "type II: objects": (lambda: L.fit_evidence(np.full((6, 1), object()), T), Y, "Phi must be numeric, got object"),
    "type II: target of words": (lambda: L.fit_evidence(PHI, list("abcdef")), Y, "t must be numeric, got str"),
    "type II: target of dates": (lambda: L.fit_evidence(PHI, DATES), Y, "t must be numeric, got"),
    "type II: a second target": (
        lambda: L.fit_evidence(SPECTRUM, T),
        Y,
        r"holds already; for another: .*retarget\(t\)",
    ),
    "type II: a second mind": (lambda: L.fit_evidence(SPECTRUM, centre=True), V, "Spectrum that is not centred; build"),
    "type II: NaN among many rows": (
        lambda: L.fit_evidence(np.vstack([TALL, [[0, np.nan, 0]]]), np.ones(40_001)),
        V,
        r"Phi must be finite.*\[40000, 1\]",
    ),
    "type II: many huge rows": (lambda: L.fit_evidence(1e150 * TALL, TALL[:, 0]), V, "Phi " + RANGE),
    "type II: predict other columns": (
        lambda: L.fit_evidence(PHI, T).predict(PHI[:, :1]),
        V,
        r"Phi must have the 2 columns of the fit, got shape \(6, 1\)",
    ),
    "type II: predict NaN": (lambda: L.fit_evidence(PHI, T).predict(NAN), V, "Phi " + MISSING),
    # fitted widths
    "widths: centres of other inputs": (lambda: L.fit_abf(X, T, centers=np.ones((3, 3))), V, "the 2 columns of X"),
    "widths: kind": (lambda: L.fit_abf(X, T, kind="box"), V, KIND),
    "widths: no starts": (lambda: L.fit_abf(X, T, n_starts=0), V, "n_starts must be at least 1, got 0"),
    "widths: starts in words": (lambda: L.fit_abf(X, T, n_starts="two"), Y, "n_starts must be an integer.*'two'"),
    "widths: start of other length": (lambda: L.fit_abf(X, T, start=[1, 2, 3]), V, "start must be one number or 2"),
    "widths: negative steps": (lambda: L.fit_abf(X, T, max_steps=-3), V, "max_steps must be at least 1, got -3"),
    "widths: seed": (lambda: L.fit_abf(X, T, seed="x"), Y, "seed must be an integer of at least 0, got 'x'"),
    "widths: shared": (lambda: L.fit_abf(X, T, shared="no"), Y, f"shared {FLAG} 'no'"),
    "widths: short target": (lambda: L.fit_abf(X, T[:3]), V, "one value per row: there are 6 rows and 3 values"),
    "widths: huge target": (lambda: L.fit_abf(X, 1e150 * T), V, "t " + RANGE),
    # rows and columns that come and go
    "state: infinite penalty": (
        lambda: L.RidgeState(PHI, T, np.inf),
        V,
        "lam must be non-negative and finite, got inf",
    ),
    "state: huge": (lambda: L.RidgeState(HUGE, T, 1.0), V, "Phi " + RANGE),
    "state: short row": (lambda: state().add_row([1.0], 1.0), V, r"h must have one value per column, 2; got.*\(1,\)"),
    "state: NaN in the row": (lambda: state().add_row([1.0, np.nan], 1.0), V, r"h must be finite.*\[1\]"),
    "state: row without target": (lambda: state().add_row([1.0, 1.0], None), Y, "t must be numbers, got None"),
    "state: huge row": (lambda: state().add_row([1e200, 1.0], 1.0), V, "h " + RANGE),
    "state: no such row": (lambda: state().remove_row(6), V, "i must be less than the number of rows, 6; got 6"),
    "state: row -1": (lambda: state().remove_row(-1), V, "i must be at least 0, got -1"),
    "state: row 1.0": (lambda: state().remove_row(1.0), Y, "i must be an integer of at least 0, got 1.0"),
    "state: short column": (lambda: state().add_column([1.0], 1.0), V, "h must have one value per row, 6"),
    "state: negative penalty": (lambda: state().add_column(T, -1.0), V, "lam must be non-negative and finite"),
    "state: huge column": (lambda: state().add_column(1e200 * T, 1.0), V, "h " + RANGE),
    "state: no such column": (lambda: state().remove_column(2), V, "j must be less than the number of columns, 2"),
    "state: negative beta": (lambda: state().log_evidence(-1.0), V, "beta must be positive and finite, got -1.0"),
    "state: spread of other columns": (lambda: state().variance(PHI[:, :1]), V, r"must have 2 columns.*\(6, 1\)"),
    "state: spread of NaN": (lambda: state().variance(NAN), V, "Phi_new " + MISSING),
    # streams
    "stream: a number": (lambda: L.fit_evidence_stream(3), Y, "source must be a path, .*an iterable .*got int"),
    "stream: None": (lambda: L.fit_evidence_stream(None), Y, "source must be a path.*got NoneType"),
    "stream: nothing in it": (lambda: L.fit_evidence_stream([]), V, "the stream is empty: it needs at least one block"),
    "stream: empty blocks": (lambda: L.fit_evidence_stream([(PHI[:0], T[:0])]), V, "the stream is empty"),
    "stream: not a pair": (lambda: L.fit_evidence_stream([PHI]), Y, r"block 0 must be a pair \(Phi, t\), got ndarray"),
    "stream: a triple": (lambda: L.fit_evidence_stream([(PHI, T, T)]), Y, "block 0 must be a pair.*tuple of 3"),
    "stream: unequal lengths": (
        lambda: L.fit_evidence_stream([(PHI, T[:3])]),
        V,
        r"block 0 must be.*\(6, 2\) and \(3,\)",
    ),
    "stream: columns change": (
        lambda: L.fit_evidence_stream([(PHI, T)] * 3 + [(PHI[:, :1], T)]),
        V,
        "block 3 has 1 columns, the first had 2",
    ),
    "stream: no columns": (lambda: L.fit_evidence_stream([(np.ones((6, 0)), T)]), V, "block 0 must have at least one"),
    "stream: NaN": (lambda: L.fit_evidence_stream([(PHI, T)] * 9 + [(NAN, T)]), V, "block 9 contains NaN or infinity"),
    "stream: NaN in the first": (lambda: L.fit_evidence_stream([(NAN, T)]), V, "contains NaN or infinity; drop"),
    "stream: words": (lambda: L.fit_evidence_stream([("ab", "cd")]), Y, "Phi of block 0 must be numeric"),
    "stream: huge": (lambda: L.fit_evidence_stream([(HUGE, T)] * 9), V, "Phi " + RANGE),
    "stream: arithmetic": (
        lambda: L.fit_evidence_stream([(PHI, T)], arithmetic="lu"),
        V,
        "one of 'auto', 'gram', 'qr'",
    ),
    "stream: method": (lambda: L.fit_evidence_stream([(PHI, T)], method="vb"), V, METHOD),
    "stream: dictionary": (
        lambda: L.fit_evidence_stream([(PHI, T)], dictionary=3),
        Y,
        "must be a Dictionary .*got int",
    ),
    "stream: dictionary of other inputs": (
        lambda: L.fit_evidence_stream([(PHI, T)], dictionary=D(np.ones((3, 1)), 1.0)),
        V,
        r"X must have 1 columns like the centers, got shape \(6, 2\)",
    ),
    "stream: no rows at a time": (lambda: L.fit_evidence_stream([(PHI, T)], block_rows=0), V, "block_rows must be at"),
    "stream: file without target": (lambda: L.fit_evidence_stream("a.csv"), V, "name the target column of the file"),
    "stream: no such file": (lambda: L.fit_evidence_stream("nowhere.csv", target="y"), V, "there is no file nowhere"),
    "stream: target of no file": (lambda: L.fit_evidence_stream([(PHI, T)], target="y"), V, "leave target out"),
    "stream: opens nothing": (lambda: L.fit_evidence_stream(lambda: None), Y, "must return an iterable.*NoneType"),
    # estimators: settings
    "EvidenceRegressor: width zero": (lambda: E(width=0).fit(X, T), V, "width must be positive and finite, got 0.0"),
    "EvidenceRegressor: width a dict": (lambda: E(width={}).fit(X, T), Y, "width must be numeric, got dict"),
    "EvidenceRegressor: width word": (lambda: E(width="auto").fit(X, T), V, "width must be one of 'fit', 'ard'"),
    "EvidenceRegressor: three widths": (lambda: E(width=[1, 2, 3]).fit(X, T), V, "width must be one number or 2"),
    "EvidenceRegressor: kind": (lambda: E(kind="box").fit(X, T), V, KIND + " 'box'"),
    "EvidenceRegressor: method": (lambda: E(method="x").fit(X, T), V, METHOD + " 'x'"),
    "EvidenceRegressor: bias": (lambda: E(bias="yes").fit(X, T), Y, f"bias {FLAG} 'yes'"),
    "EvidenceRegressor: centres": (lambda: E(centers=np.ones((2, 3))).fit(X, T), V, r"the 2 columns of X.*\(2, 3\)"),
    "EvidenceRegressor: centres counted": (lambda: E(centers=3).fit(X, T), V, "centers must be 2-D .*single number, 3"),
    "EvidenceRegressor: unknown setting": (lambda: E().set_params(wdth=1), V, "Invalid parameter 'wdth'"),
    "RidgeRBFRegressor: width word": (
        lambda: R(width="fit").fit(X, T),
        Y,
        "width must be None, a positive number.*'fit'",
    ),
    "RidgeRBFRegressor: criterion": (lambda: R(criterion=None).fit(X, T), V, CRITERION + " None"),
    "RidgeRBFRegressor: penalty": (lambda: R(penalty="l1").fit(X, T), V, "penalty must be one of 'global', 'local'"),
    "RidgeRBFRegressor: local by LOO": (lambda: R(penalty="local", criterion="loo").fit(X, T), V, "'gcv' only"),
    "RidgeRBFRegressor: kind": (lambda: R(kind=3).fit(X, T), V, KIND + " 3"),
    "RidgeRBFRegressor: centres ragged": (lambda: R(centers=RAGGED).fit(X, T), V, "centers must be a rectangular"),
    # estimators: data
    "fit: NaN": (lambda: E().fit(NAN, T), V, "Input X contains NaN"),
    "fit: infinite target": (lambda: E().fit(X, np.append(T[:5], np.inf)), V, "Input y contains infinity"),
    "fit: no target": (lambda: E().fit(X, None), V, "requires y to be passed, but the target y is None"),
    "fit: one dimension": (lambda: E().fit(T, T), V, r"Expected 2D array, got 1D array.*(?s:.*)reshape\(-1, 1\)"),
    "fit: cube": (lambda: E().fit(np.ones((2, 2, 2)), T), V, "Found array with dim 3.*<= 2"),
    "fit: cube of targets": (lambda: E().fit(X, np.ones((6, 2, 2))), V, "Found array with dim 3.*<= 2"),
    "fit: other length": (lambda: E().fit(X, T[:4]), V, r"inconsistent numbers of samples: \[6, 4\]"),
    "fit: sparse": (lambda: E().fit(SPARSE, T), Y, r"Sparse data was passed.*toarray\(\)"),
    "fit: complex": (lambda: E().fit(X + 1j, T), V, "Complex data not supported"),
    "fit: words": (lambda: E().fit([["a", "b"]] * 6, T), V, "X and y must be numeric.*'a'; encode or drop"),
    "fit: target of words": (lambda: E().fit(X, list("abcdef")), Y, "y must be numeric, got str.*encode or drop"),
    "fit: ragged": (lambda: E().fit(RAGGED, [1, 2]), V, "X and y must be rectangular.*one length"),
    "fit: no rows": (lambda: E().fit(np.empty((0, 2)), []), V, r"Found array with 0 sample\(s\)"),
    "fit: no inputs": (lambda: E().fit(np.empty((6, 0)), T), V, r"Found array with 0 feature\(s\)"),
    "fit: huge target": (lambda: E().fit(X, 1e150 * T), V, "y " + RANGE),
    "fit: tiny target": (lambda: R().fit(X, 1e-150 * T), V, "y " + RANGE),
    "predict: before fit": (lambda: E().predict(X), NotFittedError, "not fitted yet"),
    "predict: other inputs": (lambda: fitted().predict(X[:, :1]), V, "X has 1 features.*expecting 2"),
    "predict: NaN": (lambda: fitted().predict(NAN), V, "Input X contains NaN"),
    "predict: words": (lambda: fitted().predict([["a", "b"]]), V, "must be numeric.*encode or drop"),
    "density: other targets": (lambda: fitted().log_predictive_density(X, TWO), V, r"shape .*\(6,\); got \(6, 2\)"),
    "density: other length": (lambda: fitted().log_predictive_density(X, T[:2]), V, "inconsistent numbers"),
    "partial_fit: other inputs": (lambda: fitted().partial_fit(X[:, :1], T), V, "X has 1 features"),
    "partial_fit: NaN": (lambda: fitted().partial_fit(NAN, T), V, "Input X contains NaN"),
    "partial_fit: two targets": (lambda: fitted().partial_fit(X, TWO), V, "partial_fit works with one output"),
    "partial_fit: of two targets": (lambda: several().partial_fit(X, TWO), V, "partial_fit works with one output"),
    "partial_fit: huge target": (lambda: fitted().partial_fit(X, 1e150 * T), V, "y " + RANGE),
    "forget: before fit": (lambda: E().forget(X, T), NotFittedError, "not fitted yet"),
    "forget: unknown row": (lambda: fitted().forget(X + 1, T), V, "not among the rows that were fitted: x = "),
    "forget: twice": (lambda: fitted().forget(X[[0, 0]], T[[0, 0]]), V, "not among the rows that were fitted"),
    "forget: everything": (lambda: fitted().forget(X, T), V, "cannot forget all 6 rows"),
    "reestimate: before fit": (lambda: E().reestimate(), NotFittedError, "not fitted yet"),
    "reestimate: several targets": (lambda: several().reestimate(), V, "reestimate works with one output"),
    "to_pymc: several targets": (lambda: several().to_pymc(), V, "to_pymc works with one output"),
    # comparison and models
    "compare: none among widths": (
        lambda: compare(widths=[1.0, None]),
        Y,
        "every width must be a positive number, got None",
    ),
    "compare: widths in words": (lambda: compare(widths="0.1:1"), Y, "widths must be numbers, got the string.*try"),
    "compare: rows of widths": (lambda: compare(widths=[[1, 2]]), Y, r"every width must be a positive number, got \[1"),
    "compare: infinite width": (lambda: compare(widths=[np.inf]), V, "every width must be positive and finite"),
    "compare: criteria a number": (lambda: compare(criteria=3), Y, "criteria must be a name or a list of names.*got 3"),
    "compare: model a number": (
        lambda: compare(model=3),
        V,
        "model must be one of 'evidence', 'rvm', 'gp', 'search', got 3",
    ),
    "compare: names a number": (lambda: compare(names=3), Y, "names must be a list of names"),
    "compare: bias a word": (lambda: compare(bias="no"), Y, f"bias {FLAG} 'no'"),
    "compare: centres a word": (lambda: compare(centers="few"), Y, "centers must be numeric"),
    "compare: no target": (lambda: compare(y=None), Y, "y must be numbers, got None"),
    "compare: sparse": (lambda: compare(X=SPARSE), Y, "X is a sparse matrix"),
    "compare: huge target": (lambda: compare(y=1e150 * T), V, "y " + RANGE),
    "model: NaN": (lambda: bs.models.linear(NAN, T), V, "Phi " + MISSING),
    "model: other length": (lambda: bs.models.linear(PHI, T[:4]), V, "t must have one value per row"),
    "model: alpha zero": (lambda: bs.models.linear(PHI, T, alpha=0.0), V, "alpha must be positive"),
    "model: beta a word": (lambda: bs.models.linear(PHI, T, beta="1"), Y, "beta must be a positive number, got '1'"),
}


@pytest.mark.filterwarnings("ignore:(PURE_NOISE|NO_BETTER_THAN_CONSTANT|TOO_FEW_ROWS):bayessel.errors.NumericalWarning")
@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_with_advice(case):
    call, error, message = BAD[case]
    with pytest.raises(error, match=message):
        call()


COMMAND = {
    "NaN in a column": ("x,y\n1,2\nnan,3\n2,1\n", []),
    "words in a column": ("x,y\n1,2\nred,3\n2,1\n", []),
    "no rows": ("x,y\n", []),
    "empty file": ("", []),
    "target alone": ("y\n1\n2\n", []),
    "infinite width": ("x,y\n1,2\n2,3\n3,1\n", ["--widths", "inf"]),
    "huge target": ("x,y\n1,2e150\n2,3e150\n3,1e150\n", ["--widths", "1"]),
}


@pytest.mark.parametrize("case", COMMAND)
def test_bad_tables_are_one_line_and_code_two(case, tmp_path, capsys):
    text, words = COMMAND[case]
    path = tmp_path / "data.csv"
    path.write_text(text)
    assert main(["widths", str(path), "--target", "y", "--out", str(tmp_path / "out"), *words]) == 2
    said = capsys.readouterr().err
    assert said.startswith("bayessel: ") and said.count("\n") == 1 and len(said) > 30
    assert "Traceback" not in said and not (tmp_path / "out" / "report.html").exists()


def test_the_table_is_long_enough():
    assert len(BAD) + len(COMMAND) >= 60


ACCEPTED = {
    "lists": lambda: L.fit_evidence(PHI.tolist(), T.tolist()),
    "integers": lambda: L.fit_evidence(np.arange(12).reshape(6, 2), np.arange(6)),
    "binary features": lambda: L.fit_evidence(PHI > 0, T),
    "frames and series": lambda: L.fit_evidence(pd.DataFrame(PHI), pd.Series(T)),
    "a mask that hides nothing": lambda: D(np.ma.masked_array(PHI, mask=False), 1.0),
    "one row": lambda: E().fit(X[:1], T[:1]),
    "inputs far apart": lambda: D(HUGE, 1.0).design(HUGE),
    "sizes of 1e60": lambda: L.fit_evidence(1e60 * PHI, 1e-60 * T),
    "a penalty of infinity": lambda: L.criteria(PHI, T, [np.inf, 1.0]),
}


@pytest.mark.filterwarnings("ignore:TOO_FEW_ROWS:bayessel.errors.NumericalWarning")
@pytest.mark.parametrize("case", ACCEPTED)
def test_unusual_but_good_input_is_taken(case):
    ACCEPTED[case]()
