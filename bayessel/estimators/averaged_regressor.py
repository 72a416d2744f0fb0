"""Averages of regressors: fitted together or given as fits, weighed by rows held out, by evidence, or by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from time import perf_counter
from typing import Any, Literal, Self, overload, override

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from bayessel._check import FloatArray, as_flag, as_float_array, chosen_seed, one_of
from bayessel._fingerprint import fingerprint
from bayessel._types import Seed
from bayessel.criteria.leave_one_out import LOO
from bayessel.diagnostics.fit_reader import unwrap
from bayessel.estimators import _description
from bayessel.estimators.averaged_fit import AveragedFit
from bayessel.estimators.base import Versioned
from bayessel.estimators.basis_search import BasisSearchRegressor
from bayessel.estimators.evidence import EvidenceRegressor
from bayessel.estimators.gp import GPRegressor
from bayessel.estimators.held_out import N_FOLDS
from bayessel.estimators.member_checks import (
    Members,
    as_rows,
    checked_data,
    checked_members,
    checked_target,
    one_data_set,
    refuse_bad_numbers,
    row_codes,
)
from bayessel.estimators.member_predictions import ConstantModel, some_of, target_of, training_rows
from bayessel.estimators.member_weights import CONSTANT, as_given, by_stacking, without_folds
from bayessel.estimators.refitted_folds import FittedMembers, fit_members, folds_of
from bayessel.estimators.rvm import RVMRegressor
from bayessel.estimators.weighing import RULES, STACKING, guarded, weights_by_evidence, weights_by_left_out
from bayessel.estimators.weighted_rows import without_weights
from bayessel.fit import Evidence, Fit, LeaveOneOut, Status, worst
from bayessel.prediction import Prediction
from bayessel.work.jobs import check_jobs
from bayessel.work.seeds import seed_sequence

DENSITIES = ("auto", "folds", LOO.name)
#: rows that are predicted at a time
PIECE = 2000
#: members with so much weight together speak for the average
HALF = 0.5


def usual_members() -> dict[str, BaseEstimator]:
    """The members of an average that names none."""
    return {
        "radial functions": EvidenceRegressor(),
        "gp": GPRegressor(progressbar=False),
        "rvm": RVMRegressor(),
        "search": BasisSearchRegressor(),
    }


class AveragedRegressor(RegressorMixin, Versioned):
    """The mixture of several regressors' predictive distributions; made by `bayessel.average`.

    Distrust weights by evidence between models that chose functions and models that keep all, and weights by
    ``densities="loo"`` there too.

    Parameters
    ----------
    members, weights, densities, prior, random_state, n_jobs, progressbar
        As of `bayessel.average`.

    Attributes
    ----------
    weights_ : pandas.DataFrame
        One row per member: ``weight``; by stacking ``gain`` (nats a row over a constant, on rows held out) and
        ``difference`` to the best with standard errors; by evidence ``log_evidence``, ``prior`` and ``difference``;
        ``status`` of the member, and ``why``.
    members_ : dict
        Name -> fitted estimator or fit.
    fit_ : AveragedFit
        The mixture with the contract of every fit.
    gain_, gain_error_ : float
        Nats a row over a constant of the mixture on the rows that weighed it, and its standard error; NaN without.
    notes_, status_ : tuple of Status, Status
        All remarks, and the most serious of them: NO_BETTER_THAN_CONSTANT or TOO_FEW_ROWS of the average itself, and
        what members with half of the weight say of themselves.
    fingerprint_, target_fingerprint_, version_ : str
        Names of the training data and of its target; version of bayessel that fitted.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 2))
    >>> y = X[:, 0] + 0.1 * rng.normal(size=40)
    >>> from sklearn.linear_model import BayesianRidge
    >>> model = AveragedRegressor({"rbf": EvidenceRegressor(), "line": BayesianRidge()}).fit(X, y)
    >>> mean, std, low = model.predict(X[:2], return_std=True, return_quantiles=[0.1])
    >>> bool((low[0] < mean).all())
    True
    """

    def __init__(
        self,
        members: Members | None = None,
        weights: str | Mapping[str, float] = "stacking",
        densities: str = "auto",
        prior: Mapping[str, float] | None = None,
        random_state: Seed = None,
        n_jobs: int | None = None,
        progressbar: bool = True,
    ) -> None:
        self.members = members
        self.weights = weights
        self.densities = densities
        self.prior = prior
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progressbar = progressbar

    # ---- fitting

    @without_weights
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit clones of the members to inputs (N, D) and a target (N,), and weigh them."""
        began = perf_counter()
        members = self.chosen_members()
        if engines := [name for name, member in members.items() if isinstance(member, Fit)]:
            raise TypeError(f"{engines[0]!r} is the fit of an engine, which cannot be fitted anew: pass an estimator")
        X, y = as_rows(X), checked_target(self, X, y)
        check_consistent_length(X, y)
        seed = None if self.random_state is None else chosen_seed(self.random_state)
        made = fit_members(
            {name: _seeded(member, name, seed) for name, member in members.items()},
            X,
            y,
            folds_of(X, y) if self._by_folds else None,
            True,
            check_jobs(self.n_jobs),
            self.progressbar,
        )
        self.members_ = made.members
        known = [name for member in made.members.values() if (name := getattr(member, "fingerprint_", None))]
        self.fingerprint_ = known[0] if known else fingerprint(row_codes(X), y)
        self.target_fingerprint_ = fingerprint(y)
        self._combine(made, y, began)
        return self

    def of_fitted(self, members: dict[str, Any], data: tuple[ArrayLike, ArrayLike] | None) -> Self:
        """Become the average of members that are fitted, to `data` if that is given."""
        began = perf_counter()
        self.fingerprint_, self.target_fingerprint_ = one_data_set(members)
        if data is not None:
            rows: tuple[Any, FloatArray] | None = checked_data(self, data, self.target_fingerprint_)
        else:
            rows = next((found for found in map(training_rows, members.values()) if found is not None), None)
        if rows is not None:
            self.target_fingerprint_ = self.target_fingerprint_ or fingerprint(rows[1])
        again = rows is not None and not any(isinstance(member, Fit) for member in members.values())
        if self.densities == "folds" and not again:
            raise ValueError(
                "folds fit members anew, which needs estimators and their data: pass data=(X, y) (fits of engines "
                "cannot be fitted anew), or densities='loo'"
            )
        made = FittedMembers({}, None, False)
        if self._by_folds and again and rows is not None:
            made = fit_members(members, *rows, folds_of(*rows), False, check_jobs(self.n_jobs), self.progressbar)
        self.members_ = members
        targets = [rows[1]] if rows is not None else [t for t in map(target_of, members.values()) if t is not None]
        self._combine(made, targets[0] if targets else None, began, again)
        return self

    @property
    def _by_folds(self) -> bool:
        return self.densities != LOO.name

    def chosen_members(self) -> dict[str, Any]:
        """The members by name, with every parameter looked at."""
        members = checked_members(usual_members() if self.members is None else self.members, self._get_param_names())
        if isinstance(self.weights, Mapping):
            refuse_bad_numbers(self.weights, "weights", {*members, CONSTANT}, zero=True)
        else:
            one_of(self.weights, "weights", RULES)
        one_of(self.densities, "densities", DENSITIES)
        if self.prior is not None:
            if self.weights not in RULES[1:]:
                raise ValueError(f"prior is for weights by evidence, got weights={self.weights!r}")
            refuse_bad_numbers(self.prior, "prior", set(members), zero=False)
            if missing := sorted(set(members) - set(self.prior)):
                raise ValueError(f"prior must name every member; {missing[0]!r} is missing")
        check_jobs(self.n_jobs)
        as_flag(self.progressbar, "progressbar")
        return members

    # ---- weighing

    def _combine(self, made: FittedMembers, target: FloatArray | None, began: float, again: bool = True) -> None:
        """Weigh the members, and say how it went."""
        members = self.members_
        constant = None if target is None else ConstantModel(target)
        notes = [Status.INTERRUPTED] if made.interrupted else []
        evidence: Evidence | None = None
        given = isinstance(self.weights, Mapping)
        if isinstance(self.weights, Mapping):
            chosen = as_given([*members, CONSTANT], self.weights)
        elif self.weights != STACKING:
            chosen, evidence = weights_by_evidence(members, self.weights, self.prior)
        elif made.gains is not None:
            chosen = by_stacking(list(members), made.gains, f"rows held out of {N_FOLDS} refitted folds")
        elif self._by_folds and again:
            varies = target is None or np.ptp(target) > 0.0
            notes += [] if made.interrupted else [Status.TOO_FEW_ROWS if varies else Status.CONSTANT_TARGET]
            chosen = without_folds(list(members), "no folds to judge by: equal weights")
        else:
            chosen = weights_by_left_out(members, constant)
        chosen, doubt = guarded(chosen, members, constant, made.gains, given or made.interrupted)
        weighed = members if constant is None else {**members, CONSTANT: constant}
        table = chosen.table.reindex(list(weighed))
        table["weight"] = table["weight"].fillna(0.0)
        said = {name: getattr(unwrap(one)[0], "status_", getattr(one, "status", None)) for name, one in weighed.items()}
        table.insert(len(table.columns) - 1, "status", ["" if s is None else s.name for s in said.values()])
        # what members with half of the weight say; of rows held out the average itself knows better
        known = {Status.NO_BETTER_THAN_CONSTANT} if made.gains is not None else set()
        for status in {s for s in said.values() if s is not None} - known - {Status.CONVERGED}:
            if table["weight"][[s is status for s in said.values()]].sum() >= HALF:
                notes.append(status)
        notes += doubt
        gains = chosen.gains
        self.gain_ = np.nan if gains is None else float(gains.mean())
        self.gain_error_ = np.nan if gains is None else float(gains.std(ddof=1) / np.sqrt(len(gains)))
        self.weights_, self.status_, self.version_ = table, worst(notes), version("bayessel")
        self.notes_ = tuple(dict.fromkeys(notes))
        self.fit_ = AveragedFit(
            members=weighed,
            weights=table["weight"].to_numpy(dtype=np.float64),
            table=table,
            status=self.status_,
            notes=self.notes_,
            n_rows=_n_rows(members) if target is None else len(target),
            fingerprint=self.fingerprint_,
            target_fingerprint=self.target_fingerprint_,
            seconds=perf_counter() - began,
            evidence=evidence,
        )
        self._warn()

    # ---- predicting

    @overload
    def predict(
        self, X: ArrayLike, return_std: Literal[False] = False, return_quantiles: None = None
    ) -> FloatArray: ...
    @overload
    def predict(
        self, X: ArrayLike, return_std: Literal[True], return_quantiles: None = None
    ) -> tuple[FloatArray, FloatArray]: ...
    @overload
    def predict(
        self, X: ArrayLike, return_std: bool = False, *, return_quantiles: ArrayLike
    ) -> tuple[FloatArray, ...]: ...
    @overload
    def predict(
        self, X: ArrayLike, return_std: bool, return_quantiles: ArrayLike | None = None
    ) -> FloatArray | tuple[FloatArray, ...]: ...
    def predict(
        self, X: ArrayLike, return_std: bool = False, return_quantiles: ArrayLike | None = None
    ) -> FloatArray | tuple[FloatArray, ...]:
        """Mean of the mixture at new inputs, (N,).

        Parameters
        ----------
        X : (N, D) array
            Rows as the members take them.
        return_std : bool
            Also the standard deviation of a new observation there.
        return_quantiles : sequence of probabilities, optional
            Also these quantiles of a new observation, one more axis in front, after the others.
        """
        wanted: list[Callable[[Prediction], FloatArray]] = [lambda there: there.mean]
        if as_flag(return_std, "return_std"):
            wanted.append(lambda there: there.std)
        if return_quantiles is not None:
            levels = np.atleast_1d(as_float_array(return_quantiles, "return_quantiles"))
            Prediction(np.zeros((1, 1)), np.ones((1, 1))).quantile(levels)  # bad levels are better known before
            wanted.append(lambda there: there.quantile(levels))
        pieces = [[read_off(there) for read_off in wanted] for there in self._pieces(X)]
        found = [np.concatenate(each, axis=-1) for each in zip(*pieces, strict=True)]
        return found[0] if len(found) == 1 else tuple(found)

    def predictive(self, X: ArrayLike) -> Prediction:
        """Whole predictive distributions of new observations at new inputs: the members' as one mixture."""
        check_is_fitted(self)
        return self.fit_.predict(as_rows(X))

    def log_predictive_density(self, X: ArrayLike, y: ArrayLike) -> FloatArray:
        """log p(y_n | x_n, training data) of each new observation, in nats; sum or average it as you need."""
        check_is_fitted(self)
        rows, target = as_rows(X), checked_target(self, X, y)
        check_consistent_length(rows, target)
        starts = np.arange(0, len(target), PIECE)
        pieces = zip(starts, self._pieces(rows), strict=True)
        return np.concatenate([there.log_density(target[at : at + PIECE]) for at, there in pieces])

    def leave_one_out(self) -> LeaveOneOut:
        """Each training row predicted from all others by every member with weight, the weights held."""
        check_is_fitted(self)
        return self.fit_.leave_one_out()

    describe = _description.describe

    def _pieces(self, X: ArrayLike) -> Iterator[Prediction]:
        """The mixtures, of some rows at a time."""
        check_is_fitted(self)
        rows = as_rows(X)
        count = rows.shape[0]
        if count <= PIECE:
            yield self.fit_.predict(rows)
            return
        for at in range(0, count, PIECE):
            yield self.fit_.predict(some_of(rows, np.arange(at, min(at + PIECE, count))))

    # ---- scikit-learn's protocol

    @override
    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters; those of members as ``name__parameter``."""
        found: dict[str, Any] = super().get_params(deep=False)
        members = self.members if isinstance(self.members, Mapping) else {}
        for name, member in members.items() if deep else ():
            if hasattr(member, "get_params"):
                found[name] = member
                found |= {f"{name}__{key}": value for key, value in member.get_params().items()}
        return found

    @override
    def set_params(self, **params: Any) -> Self:
        """Set parameters; a member by its name, its parameters by ``name__parameter``."""
        if isinstance(self.members, Mapping):
            replaced = {name: params.pop(name) for name in list(params) if name in self.members}
            if replaced:
                self.members = {**self.members, **replaced}
        super().set_params(**params)
        return self

    def __sklearn_clone__(self) -> AveragedRegressor:
        settings = self.get_params(deep=False)
        if isinstance(self.members, Mapping):
            settings["members"] = {
                name: member if isinstance(member, Fit) else clone(member) for name, member in self.members.items()
            }
        return type(self)(**settings)

    @property
    def n_features_in_(self) -> int:
        """Number of inputs, as a member counts them."""
        return int(self._of_a_member("n_features_in_"))

    @property
    def feature_names_in_(self) -> Any:
        """Names of the inputs, where a member knows them."""
        return self._of_a_member("feature_names_in_")

    def _of_a_member(self, attribute: str) -> Any:
        for member in getattr(self, "members_", {}).values():
            if (found := getattr(member, attribute, None)) is not None:
                return found
        raise AttributeError(f"{type(self).__name__} has no {attribute}: it is not fitted, or no member has it")


def _seeded(member: BaseEstimator, name: str, seed: int | None) -> BaseEstimator:
    """A clone whose seeds that are None come from that of the average and its name."""
    made: BaseEstimator = clone(member)
    for key, value in sorted(made.get_params().items(), key=lambda one: one[0]):
        if seed is not None and value is None and (key == "random_state" or key.endswith("__random_state")):
            made.set_params(**{key: int(seed_sequence(seed, name, key).generate_state(1)[0] >> 1)})
    return made


def _n_rows(members: Mapping[str, Any]) -> int:
    """Rows that the members were fitted to, where one of them knows."""
    fits = [getattr(unwrap(member)[0], "fit_", member) for member in members.values()]
    return next((int(fit.n_rows) for fit in fits if isinstance(fit, Fit)), 0)
