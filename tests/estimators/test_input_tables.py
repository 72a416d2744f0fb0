"""Tables as inputs: encoded as pandas and scikit-learn encode them, alike in every estimator, or refused with advice.

Guards `bayessel.estimators.input_encoding`, `bayessel.estimators.input_table`, `bayessel.estimators.base`.
"""

import datetime
import decimal
import pickle
import warnings

import numpy as np
import pandas as pd
import pyarrow
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning
from sklearn.impute import SimpleImputer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

import bayessel as bs
from bayessel.baselines import BaggedMARSRegressor, KNNRegressorCV, LinearBaseline, MARSRegressor
from bayessel.errors import NumericalWarning
from bayessel.estimators.input_table import FEW_LEVELS, MOST_LEVELS
from tests.estimators.test_estimators import run_checks

E, R = bs.EvidenceRegressor, bs.RidgeRBFRegressor
pytestmark = pytest.mark.filterwarnings("ignore::bayessel.errors.NumericalWarning")

REGRESSORS = {
    "evidence": E(width=2.0),
    "ridge": R(width=2.0),
    "rvm": bs.RVMRegressor(width=2.0),
    "search": bs.BasisSearchRegressor(width=2.0, progressbar=False),
    "forward": bs.ForwardSelectionRegressor(width=2.0),
    "gp": bs.GPRegressor(inference="map", progressbar=False),
    "mlp": bs.MLPRegressor("early-stopping", hidden=3, random_state=0, progressbar=False),
}
CLASSIFIERS = {
    "loomi": bs.LOOMIClassifier(width=2.0),
    "evidence of classes": bs.EvidenceClassifier(width=2.0),
    "rvm of classes": bs.RVMClassifier(width=2.0),
    "mlp": bs.MLPClassifier("early-stopping", hidden=3, random_state=0, progressbar=False),
}
BASELINES = {
    "linear": LinearBaseline(),
    "knn": KNNRegressorCV(progressbar=False),
    "mars": MARSRegressor(progressbar=False),
    "bagged": BaggedMARSRegressor(n_estimators=2, random_state=0, progressbar=False),
}
ALL = {**REGRESSORS, **{f"{name}, classes": one for name, one in CLASSIFIERS.items()}}
EVERY = pytest.mark.parametrize("name", ALL)
SIZES = ["small", "middle", "large"]


def houses(rng, n=41):
    """A table with every kind of column, and a price that depends on all of them."""
    frame = pd.DataFrame(
        {
            "area": rng.normal(80, 20, n),
            "colour": rng.choice(["red", "green", "blue"], n),
            "garden": rng.random(n) < 0.5,
            "heating": rng.choice(["gas", "oil"], n),
            "size": pd.Categorical(rng.choice(SIZES, n), categories=SIZES, ordered=True),
            "town": pd.Categorical(rng.choice(["Ulm", "Bonn", "Kiel"], n), categories=["Ulm", "Bonn", "Kiel", "Jena"]),
            "rooms": rng.integers(1, 6, n),
        }
    )
    y = 0.02 * frame["area"] + (frame["colour"] == "red") + frame["garden"] + 0.5 * frame["size"].cat.codes
    return frame, y + (frame["town"] == "Ulm") + 0.1 * rng.normal(size=n)


def by_hand(frame):
    """The encoding of `houses` and its names, by pandas and scikit-learn."""
    one_hot = OneHotEncoder(drop="if_binary", sparse_output=False)
    found = pd.DataFrame({"area": frame["area"]})
    found[["colour=blue", "colour=green", "colour=red"]] = pd.get_dummies(frame["colour"], dtype=float)
    found["garden"] = frame["garden"].astype(float)
    found["heating=oil"] = one_hot.fit_transform(frame[["heating"]])
    found["size"] = frame["size"].map({name: k for k, name in enumerate(SIZES)}).astype(float)
    found[["town=Ulm", "town=Bonn", "town=Kiel", "town=Jena"]] = pd.get_dummies(frame["town"], dtype=float)
    found["rooms"] = frame["rooms"].astype(float)
    return np.ascontiguousarray(found), list(found.columns)


def same(found, expected):
    """Equal but for rounding: sums over a table's columns are in another order than over an array's rows."""
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


def target_of(name, y):
    return np.where(y > y.median(), "dear", "cheap") if name.endswith("classes") else y


def answer(model, X):
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)


# --- the same fit as on columns encoded by hand ----------------------------------------------------------------


@pytest.mark.parametrize("name", [*ALL, *BASELINES])
def test_a_fit_to_a_table_is_the_fit_to_its_encoding(name, rng):
    frame, y = houses(rng)
    target, make = target_of(name, y), {**ALL, **BASELINES}[name]
    hand, columns = by_hand(frame)
    there, here = clone(make).fit(hand, target), clone(make).fit(frame, target)
    same(answer(here, frame), answer(there, hand))
    same(answer(here, frame.iloc[[7]]), answer(there, hand[[7]]))
    assert here.input_encoding_.names == tuple(columns)
    assert here.n_features_in_ == 7 and here.feature_names_in_.tolist() == list(frame.columns)
    assert there.input_encoding_.names is None
    if hasattr(here, "log_predictive_density"):
        densities = [m.log_predictive_density(X, target) for m, X in ((here, frame), (there, hand))]
        same(*densities)
    again = pickle.loads(pickle.dumps(here))
    same(answer(again, frame), answer(here, frame))


@EVERY
def test_missing_values_are_filled_and_marked_as_by_an_imputer(name, rng):
    X = rng.normal(size=(41, 3))
    y = pd.Series(X[:, 0] + 0.1 * rng.normal(size=41))
    X[[3, 4, 8, 9], 0], X[4:8, 2] = np.nan, np.nan  # an odd number of values is left: the median is one of them
    imputer = SimpleImputer(strategy="median", add_indicator=True)
    hand, target = imputer.fit_transform(X), target_of(name, y)
    new = np.array([[np.nan, 0.5, 0.2], [0.1, 0.2, np.nan]])
    here = clone(ALL[name]).set_params(missing="indicator").fit(X, target)
    there = clone(ALL[name]).fit(hand, target)
    same(answer(here, new), answer(there, imputer.transform(new)))
    assert here.input_encoding_.names == ("x0", "x1", "x2", "x0 missing", "x2 missing")
    nullable = pd.DataFrame(X, columns=["a", "b", "c"]).convert_dtypes().astype({"a": object, "b": "Float64"})
    frame = clone(ALL[name]).set_params(missing="indicator").fit(nullable, target)
    rows = pd.DataFrame(new, columns=["a", "b", "c"])
    same(answer(frame, rows), answer(here, new))
    said = r"NaN: 8 missing values in columns 'a' \(4 of them\), 'c' \(4 of them\), in 7 of 41 rows"
    with pytest.raises(ValueError, match=said):
        clone(ALL[name]).fit(nullable, target)
    with pytest.raises(ValueError, match="missing='indicator'"):
        clone(ALL[name]).fit(X, target)
    with pytest.raises(ValueError, match="missing must be one of 'error', 'indicator', got 'mean'"):
        clone(ALL[name]).set_params(missing="mean").fit(X, target)


def test_the_lower_of_two_medians_and_no_number_between_them():
    model = R(width=2.0, missing="indicator").fit([[3.0], [8.0], [1.0], [9.0], [np.nan]], np.arange(5.0))
    assert model.input_encoding_.fills.tolist() == [3.0]


def test_text_is_no_number_later(rng):
    frame, y = houses(rng)
    with pytest.raises(ValueError, match=r"'rooms' of X has '3' \(row 0\), and must be numbers as in training"):
        R(width=2.0).fit(frame, y).predict(frame[:2].assign(rooms=["3", "4"]))


def test_what_is_masked_is_missing(rng):
    X, y = rng.normal(size=(21, 2)), rng.normal(size=21)
    masked, gappy = np.ma.masked_array(X, mask=X > 1.0), np.where(X > 1.0, np.nan, X)
    model = R(width=2.0, missing="indicator")
    same(model.fit(masked, y).predict(masked), clone(model).fit(gappy, y).predict(gappy))
    with pytest.raises(ValueError, match="X contains NaN"):
        R(width=2.0).fit(masked, y)
    with pytest.raises(ValueError, match="y contains NaN"):
        R(width=2.0).fit(X, np.ma.masked_array(y, mask=y > 1.0))


def test_a_missing_category_is_one_more_category(rng):
    n = 30
    frame = pd.DataFrame({"a": rng.normal(size=n), "b": rng.choice(["u", "v"], n), "c": rng.choice(["p", "q", "r"], n)})
    frame["d"] = np.where(np.arange(n) % 3 == 0, None, "only")
    frame.loc[[1, 2], "b"], frame.loc[4, "c"] = None, np.nan
    frame["flag"] = pd.array(rng.random(n) < 0.5, dtype="boolean")
    frame.loc[9, "flag"] = pd.NA
    y = frame["a"] + rng.normal(size=n)
    hand = [frame[["a"]], *(pd.get_dummies(frame[c], dummy_na=True, dtype=float) for c in "bc"), frame["d"].isna()]
    flag = frame["flag"].astype("Float64").to_numpy(float, na_value=np.nan)
    lower = np.sort(flag[~np.isnan(flag)])[14]
    hand = np.column_stack([*hand, np.where(np.isnan(flag), lower, flag), np.isnan(flag)]).astype(float)
    here = E(width=2.0, missing="indicator").fit(frame, y)
    same(here.predict(frame), E(width=2.0).fit(hand, y).predict(hand))
    names = ("a", "b=u", "b=v", "b missing", "c=p", "c=q", "c=r", "c missing", "d missing", "flag", "flag missing")
    assert here.input_encoding_.names == names


def test_a_gap_where_there_was_none_in_training_is_filled_with_a_warning(rng):
    frame, y = houses(rng)
    model = E(width=2.0, missing="indicator").fit(frame, y)
    rows = frame.iloc[:3].astype({"rooms": "Int64"})
    rows.loc[1, "area"], rows.loc[1, "colour"], rows.loc[2, "rooms"] = np.nan, None, pd.NA
    with pytest.warns(NumericalWarning, match="columns 'area', 'colour', 'rooms', where none was missing in training"):
        found = model.predict(rows)
    filled = frame.iloc[:3].copy()
    filled.loc[1, "area"], filled.loc[1, "colour"] = frame["area"].median(), frame["colour"].mode()[0]
    filled.loc[2, "rooms"] = frame["rooms"].median()
    same(found, model.predict(filled))
    with pytest.raises(ValueError, match="1 missing value in column 'area', in 1 of 3 rows; pass missing='indicator'"):
        E(width=2.0).fit(frame, y).predict(filled.assign(area=[1.0, 2.0, None]))


def test_baselines_name_no_option_that_they_lack(rng):
    with pytest.raises(ValueError, match="1 missing value in column x1, in 1 of 3 rows; fill them with an imputer"):
        LinearBaseline().fit([[1.0, np.nan], [2.0, 1.0], [4.0, 3.0]], [1.0, 2.0, 3.0])


@pytest.mark.filterwarnings("ignore")
@EVERY
@pytest.mark.slow
def test_every_check_of_scikit_learn_passes_with_missing_values_allowed(name):
    model = clone(ALL[name]).set_params(missing="indicator")
    # at widths of one's own a weight is no repeated row (docs/weights.md)
    own = name in ("loomi, classes", "evidence", "ridge")
    found = run_checks(model.set_params(width=None) if own else model)
    left = {key: value for key, value in found.items() if value != "passed"}
    assert not [value for value in left.values() if "SCIPY_ARRAY_API" not in value], left


# --- through scikit-learn ----------------------------------------------------------------------------------------


def test_pipelines_and_folds_that_lack_a_category(rng):
    frame, y = houses(rng, 60)
    frame["town"] = frame["town"].cat.add_categories("Trier")
    frame.loc[0, "town"] = "Trier"  # in one fold alone
    steps = make_pipeline(FunctionTransformer(lambda f: f.assign(area=np.log(f["area"]))), R(width=2.0))
    assert np.isfinite(cross_val_score(steps, frame, y, cv=4)).all()
    frame["town"] = frame["town"].astype(object)
    with pytest.raises(ValueError, match=r"'town' of X has the value 'Trier' \(row 0\)"):
        cross_val_score(steps, frame, y, cv=4, error_score="raise")


def test_rows_that_come_and_go(rng):
    frame, y = houses(rng, 50)
    model = E(width=3.0).fit(frame[:40], y[:40])
    hand = E(width=3.0).fit(by_hand(frame)[0][:40], y[:40])
    for change, part in (("partial_fit", slice(40, 50)), ("forget", slice(3, 9))):
        getattr(model, change)(frame[part], y[part])
        getattr(hand, change)(by_hand(frame)[0][part], y[part])
        same(model.predict(frame), hand.predict(by_hand(frame)[0]))
    with pytest.raises(ValueError, match="'colour' of X has the value 'mauve'"):
        model.partial_fit(frame[:2].assign(colour="mauve"), y[:2])


def test_columns_in_another_order_are_refused(rng):
    frame, y = houses(rng)
    model = R(width=2.0).fit(frame, y)
    with pytest.raises(ValueError, match="must be in the same order"):
        model.predict(frame[frame.columns[::-1]])
    with pytest.raises(ValueError, match="yet now missing:\n- colour"):
        model.predict(frame.drop(columns="colour"))
    rows = frame.astype({"colour": "category", "town": object, "garden": object, "rooms": float})  # the same values
    same(model.predict(rows), model.predict(frame))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        same(model.predict(frame.to_numpy()), model.predict(frame))


def test_centres_may_be_rows_of_the_table(rng):
    frame, y = houses(rng)
    model = E(width=2.0, centers=frame.iloc[:5]).fit(frame, y)
    same(model.dictionary_.centers, by_hand(frame)[0][:5])


def test_names_in_tables_about_inputs(rng):
    frame, y = houses(rng)
    hand, names = by_hand(frame)
    for model in (REGRESSORS["gp"], REGRESSORS["mlp"]):
        assert list(clone(model).fit(frame, y).relevance_.index) == names
        assert list(clone(model).fit(hand, y).relevance_.index) == list(range(12))
    splines = MARSRegressor(max_functions=4, progressbar=False).fit(frame, 5.0 * (frame["town"] == "Ulm"))
    assert any("town=Ulm" in function for function in splines.functions_)


@pytest.mark.slow
def test_pymc_models_have_the_encoded_columns(rng):
    frame, y = houses(rng, 12)
    model = bs.GPRegressor(inference="map", progressbar=False).fit(frame, y)
    hand = bs.GPRegressor(inference="map", progressbar=False).fit(by_hand(frame)[0], y)
    point = {"theta": model.theta_}
    logp = [one.to_pymc().compile_logp()(point) for one in (model, hand)]
    assert logp[0] == logp[1]


# --- series, targets ---------------------------------------------------------------------------------------------


@EVERY
def test_a_series_is_one_input(name, rng):
    x = pd.Series(rng.uniform(0, 6, 41), name="time", index=np.arange(100, 141))
    y = target_of(name, pd.Series(np.sin(x) + 0.1 * rng.normal(size=41)))
    model = clone(ALL[name]).fit(x, y)
    assert model.feature_names_in_.tolist() == ["time"] and model.n_features_in_ == 1
    same(answer(model, x[:5]), answer(clone(model).fit(x.to_frame(), y), x[:5].to_frame()))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(x.rename("day"))
    with pytest.raises(ValueError, match="Reshape your data"):
        model.fit(x.to_numpy(), y)


def test_a_row_of_a_table_is_no_input(rng):
    frame, y = houses(rng)
    with pytest.raises(ValueError, match=r"a single input.*fitted to 7 inputs.*frame.iloc\[\[0\]\]"):
        R(width=2.0).fit(frame, y).predict(frame.iloc[0])


FORMS = ["series", "frame", "integers", "Int64", "object", "Float64", "boolean", "bool", "list"]


@pytest.mark.parametrize("form", FORMS)
def test_targets_of_every_form(form, rng):
    X = rng.normal(size=(20, 2))
    y = pd.Series(rng.integers(0, 2, 20), name="y", index=np.arange(20)[::-1])
    forms = {"series": y, "frame": y.to_frame(), "integers": y.to_numpy(), "list": y.tolist()}
    given = forms[form] if form in forms else y.astype(form)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataConversionWarning)
        found = R(width=2.0).fit(X, given)
    same(found.predict(X), R(width=2.0).fit(X, y.to_numpy().astype(float)).predict(X))
    classes = bs.LOOMIClassifier(width=2.0).fit(X, given)
    assert classes.predict(X).tolist() == bs.LOOMIClassifier(width=2.0).fit(X, y.to_numpy()).predict(X).tolist()


def test_columns_of_arrays_warn_as_in_scikit_learn(rng):
    X, y = rng.normal(size=(20, 2)), rng.normal(size=(20, 1))
    with pytest.warns(DataConversionWarning):
        assert R(width=2.0).fit(X, y).predict(X).shape == (20,)


@pytest.mark.parametrize("gap", [None, np.nan, pd.NA], ids=str)
@pytest.mark.parametrize("form", [list, pd.Series, lambda y: pd.DataFrame({"y": y})], ids=["list", "series", "frame"])
def test_missing_targets_are_refused_with_advice(gap, form, rng):
    X = rng.normal(size=(6, 2))
    if form is not list:
        y = form(pd.array([1.0, 2.0, gap, 0.5, 4.0, 3.0], dtype="Float64" if gap is pd.NA else "float64"))
        with pytest.raises(ValueError, match=r"y contains NaN.*[Dd]rop the rows"):
            R(width=2.0).fit(X, y)
    with pytest.raises(ValueError, match="1 of 6 labels are missing"):
        bs.LOOMIClassifier(width=2.0).fit(X, form(["a", "b", gap, "a", "b", "b"]))


# --- what is refused, and with what advice -----------------------------------------------------------------------


def frame_of(**columns):
    return pd.DataFrame({"a": np.arange(30.0), **columns})


DAY = datetime.date(2020, 1, 1)
REFUSED = {
    "identifier": (frame_of(key=[f"k{i}" for i in range(30)]), "'key' of X has 30 categories in 30 rows; at most 15"),
    "numbers as text": (frame_of(b=["1.5", "2"] * 15), r"'b' of X is text that looks like numbers \('1.5'\): make it"),
    "stray word": (frame_of(b=[*map(str, range(29)), "n/k"]), r"\('0'\), but row 29 has 'n/k'.*astype\('category'\)"),
    "words and numbers": (frame_of(b=["x", 2.0] * 15), r"str \('x' in row 0\), float \('2.0' in row 1\).*astype"),
    "lists": (frame_of(b=[[1]] * 30), r"'b' of X holds list \('\[1\]' in row 0\)"),
    "bytes": (frame_of(b=[b"x"] * 30), "'b' of X holds bytes"),
    "dates": (frame_of(day=pd.date_range("2020", periods=30)), "'day' of X holds dates or times.*days since the first"),
    "dates with a zone": (frame_of(day=pd.date_range("2020", periods=30, tz="UTC")), "dates or times"),
    "dates as objects": (frame_of(day=[DAY] * 30), "dates or times"),
    "spans of time": (frame_of(day=pd.to_timedelta(np.arange(30), unit="s")), "dates or times"),
    "periods": (frame_of(day=pd.period_range("2020", periods=30)), "dates or times"),
    "nothing": (frame_of(b=[None] * 30), "no value at all in column 'b'"),
    "no rows": (frame_of(c="x")[:0], r"0 sample\(s\)"),
    "no columns": (frame_of()[[]], r"0 feature\(s\)"),
    "names twice": (pd.concat([frame_of(), frame_of()], axis=1), "more than one column called 'a'"),
    "names twice once encoded": (frame_of(b=["u", "v", "w"] * 10, **{"b=u": 0.0}), "called 'b=u' twice once encoded"),
    "names of two kinds": (frame_of().assign(**{"b": 1.0}).rename(columns={"b": 1}), "string names"),
    "complex": (frame_of(b=1j), "[Cc]omplex"),
    "infinite": (frame_of(b=np.inf), "infinity"),
    "huge": (frame_of(b=[10**400] * 30), "up to 1e308"),
    "rows are too few": (frame_of(b=1.0)[:29], "inconsistent numbers of samples"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_encoded_is_refused_with_advice(case):
    X, said = REFUSED[case]
    y = np.arange(30.0) if case == "rows are too few" else np.arange(float(len(X)))
    with pytest.raises((ValueError, TypeError), match=said):
        R(width=2.0, missing="indicator").fit(X, y)


def test_how_many_categories_are_taken():
    def fits(n, levels):
        LinearBaseline().fit(pd.DataFrame({"b": [f"k{i % levels}" for i in range(n)]}), np.arange(float(n)))

    fits(FEW_LEVELS, FEW_LEVELS)
    fits(40, 20)
    fits(2 * MOST_LEVELS + 2, MOST_LEVELS)
    for n, levels in ((FEW_LEVELS + 1, FEW_LEVELS + 1), (40, 21), (2 * MOST_LEVELS + 2, MOST_LEVELS + 1)):
        with pytest.raises(ValueError, match="drop it if it is an identifier"):
            fits(n, levels)
    many = pd.Categorical([f"k{i:02}" for i in range(40)], ordered=True)  # in order: one column, however many
    model = LinearBaseline().fit(pd.DataFrame({"b": many}), np.arange(40.0))
    np.testing.assert_allclose(model.coef_, [1.0])


def test_sparse_matrices_are_refused_and_sparse_columns_are_taken(rng):
    X, y = rng.normal(size=(20, 2)), rng.normal(size=20)
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        R(width=2.0).fit(scipy.sparse.csr_array(X), y)
    frame = pd.DataFrame(X).astype(pd.SparseDtype(float))
    same(R(width=2.0).fit(frame, y).predict(frame), R(width=2.0).fit(X, y).predict(X))


# --- types and names of columns ----------------------------------------------------------------------------------

TEXT = ["u", "v", "w"] * 7
TYPES = {
    "str": TEXT,
    "object": pd.Series(TEXT, dtype=object),
    "string": pd.array(TEXT, dtype="string"),
    "string[pyarrow]": pd.array(TEXT, dtype="string[pyarrow]"),
    "category": pd.Categorical(TEXT),
    "category of numbers": pd.Categorical([1, 2, 3] * 7),
    "intervals": pd.Categorical(pd.IntervalIndex.from_breaks([0, 1, 2, 3])[[0, 1, 2] * 7]),
    "arrow": pd.array(TEXT, dtype=pd.ArrowDtype(pyarrow.string())),
}
NUMBERS = {
    "Int64": pd.array([1, 2, 3] * 7, dtype="Int64"),
    "Float32": pd.array([1, 2, 3] * 7, dtype="Float32"),
    "objects": pd.Series([1, 2.0, np.int8(3)] * 7, dtype=object),
    "decimals": pd.Series([decimal.Decimal(1), decimal.Decimal(2), decimal.Decimal(3)] * 7),
    "arrow": pd.array([1, 2, 3] * 7, dtype=pd.ArrowDtype(pyarrow.int8())),
    "cut": pd.cut([1.0, 2.0, 3.0] * 7, [0, 1, 2, 3]),
}
FLAGS = {
    "bool": np.array([True, False, False] * 7),
    "boolean": pd.array([True, False, False] * 7, dtype="boolean"),
    "objects": pd.Series([True, False, False] * 7, dtype=object),
    "arrow": pd.array([True, False, False] * 7, dtype=pd.ArrowDtype(pyarrow.bool_())),
}


COLUMNS = {"text": TYPES, "number": NUMBERS, "flag": FLAGS}


@pytest.mark.parametrize(("of", "name"), [(of, name) for of, columns in COLUMNS.items() for name in columns])
def test_every_type_of_column(of, name, rng):
    a, y, column = rng.normal(size=21), rng.normal(size=21), COLUMNS[of][name]
    frame = pd.DataFrame({"a": a, "b": column})
    hand = {"text": np.tile(np.eye(3), (7, 1)), "number": np.tile([1.0, 2.0, 3.0], 7) - (name == "cut")}
    hand = np.column_stack([a, hand.get(of, np.tile([1.0, 0.0, 0.0], 7))])
    same(E(width=2.0).fit(frame, y).predict(frame), E(width=2.0).fit(hand, y).predict(hand))


def test_names_that_are_no_text(rng):
    y = rng.normal(size=21)
    numbered = pd.DataFrame({2019: rng.normal(size=21), 2020: TEXT})
    model = R(width=2.0).fit(numbered, y)
    assert model.input_encoding_.names == ("2019", "2020=u", "2020=v", "2020=w")
    assert not hasattr(model, "feature_names_in_")
    levels = numbered.set_axis(pd.MultiIndex.from_tuples([("x", "a"), ("x", "b")]), axis=1)
    assert R(width=2.0).fit(levels, y).input_encoding_.names == ("x/a", "x/b=u", "x/b=v", "x/b=w")
    same(R(width=2.0).fit(levels, y).predict(levels), model.predict(numbered))


def test_constant_categories_and_few_rows(rng):
    frame = pd.DataFrame({"a": rng.normal(size=12), "b": "always", "c": [True] * 12})
    y = frame["a"] + 0.1 * rng.normal(size=12)
    for model in (E(), R(), bs.GPRegressor(progressbar=False)):
        assert np.isfinite(clone(model).fit(frame, y).predict(frame.iloc[[0]])).all()
    assert np.isfinite(R().fit(frame[:2], y[:2]).predict(frame[:1])).all()


def test_a_table_of_pyarrow_is_taken(rng):
    frame, y = houses(rng)
    frame["size"] = frame["size"].cat.codes
    table = pyarrow.Table.from_pandas(frame)
    same(R(width=2.0).fit(table, y).predict(table), R(width=2.0).fit(frame, y).predict(frame))


def test_tables_are_left_as_they_are(rng):
    frame, y = houses(rng)
    frame.loc[3, ["area", "colour"]] = np.nan, None
    before = frame.copy(deep=True)
    R(width=2.0, missing="indicator").fit(frame, y).predict(frame)
    pd.testing.assert_frame_equal(frame, before)
    numbers = np.array([[1.0, np.nan], [2.0, 1.0], [3.0, 5.0]])
    kept = numbers.copy()
    R(width=2.0, missing="indicator").fit(numbers, [1.0, 2.0, 3.0]).predict(numbers)
    np.testing.assert_array_equal(numbers, kept)


@pytest.mark.parametrize("name", ["evidence", "gp"])
def test_complex_columns_and_missing_targets_are_named(rng, name):
    frame = pd.DataFrame({"a": rng.normal(size=20), "wave": rng.normal(size=20) * (1 + 1j)})
    with pytest.raises(ValueError, match="column 'wave' of X has complex numbers: give real and imaginary parts"):
        clone(ALL[name]).fit(frame, rng.normal(size=20))
    y = np.array([None, *rng.normal(size=19)], dtype=object)
    with pytest.raises(ValueError, match=r"y must be finite, got 1 bad value\(s\), the first \(NaN\) at \[0\]"):
        clone(ALL[name]).fit(frame[["a"]], y)
