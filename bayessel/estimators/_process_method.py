"""Methods that compute the mode of a Gaussian process: all rows at once, Vecchia's approximation, inducing inputs."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

from bayessel._check import FloatArray, as_count, one_of
from bayessel.covariance import Covariance
from bayessel.covariance.standard import as_covariance
from bayessel.errors import NumericalWarning
from bayessel.estimators.base import HERE
from bayessel.gp import fit_inducing, fit_map, fit_vecchia
from bayessel.gp.map_result import GPFit
from bayessel.gp.vecchia.covariance_terms import terms_of
from bayessel.gp.vecchia.vecchia_fit import VecchiaFit

METHODS = ("auto", "dense", "vecchia", "inducing")
#: rows up to which "auto" computes with all of them at once: some ten seconds
DENSE_ROWS = 3000
#: inducing inputs where no number is given
INDUCING = 256
#: an exact fit holds 24 n² bytes: 10 GB here
MOST_ROWS = 20_000
#: rows from which on that is said, and those that take about a minute
MANY_ROWS, MINUTE_ROWS = 6000, 5000


class ChosenMethod(NamedTuple):
    """One of "dense", "vecchia", "inducing", and why."""

    name: str
    why: str


def chosen_method(
    method: str,
    n: int,
    inputs: int,
    covariance: Covariance | None,
    inducing: int | None,
    inference: str,
    likelihood: str = "gaussian",
) -> ChosenMethod:
    """The method for n rows; ValueError where what was asked for does not go together."""
    one_of(method, "method", METHODS)
    if covariance is not None and not isinstance(covariance, Covariance):
        raise TypeError(
            "covariance must be a bayessel.covariance.Covariance, such as bayessel.covariance.Standard(), or None, got "
            f"{covariance!r}"
        )
    if likelihood != "gaussian":
        if inference == "mc" or inducing is not None or method in ("vecchia", "inducing"):
            raise ValueError(
                "inference='mc', inducing, and methods for many rows are for likelihood='gaussian', got "
                f"{likelihood!r}; use 'auto' or 'map' without inducing inputs, and method='dense'"
            )
        return ChosenMethod("dense", f"likelihood={likelihood!r}")
    if inducing is not None:
        as_count(inducing, "inducing")
        if inference == "mc":
            raise ValueError("inducing is for inference='auto' or 'map': the bound of a sparse process is not sampled")
        if method == "dense":
            raise ValueError("inducing is for method='auto', 'inducing' or 'vecchia'; method='dense' has none")
    if inference == "mc" and method in ("vecchia", "inducing"):
        raise ValueError(
            f"inference='mc' computes with all rows at once, got method={method!r}: use inference='auto' or 'map', or "
            "sample bayessel.models.gp"
        )
    if method == "vecchia":
        _terms_are_known(covariance, inputs)
    if method != "auto":
        return ChosenMethod(method, "asked for")
    if inference == "mc":
        return ChosenMethod("dense", "inference='mc'")
    if inducing is not None:
        return ChosenMethod("inducing", f"inducing={inducing} was asked for")
    if n <= DENSE_ROWS:
        return ChosenMethod("dense", f"up to {DENSE_ROWS} rows all of them at once")
    try:
        _terms_are_known(covariance, inputs)
    except ValueError:
        return ChosenMethod("inducing", f"more than {DENSE_ROWS} rows, and a covariance that vecchia does not take")
    return ChosenMethod("vecchia", f"more than {DENSE_ROWS} rows")


def _terms_are_known(covariance: Covariance | None, inputs: int) -> None:
    terms_of(as_covariance(covariance).with_noise(), inputs)


def check_rows(n: int) -> None:
    """Refuse rows that an exact fit has no memory for, and warn where it takes long."""
    if n > MOST_ROWS:
        raise ValueError(
            f"an exact Gaussian process on {n} rows needs {24e-9 * n**2:.0f} GB; use method='vecchia' or 'inducing', "
            f"or take a sample of at most {MOST_ROWS} rows"
        )
    if n > MANY_ROWS:
        said = (
            f"an exact Gaussian process on {n} rows takes some {(n / MINUTE_ROWS) ** 3:.0f} minutes; method='vecchia' "
            "is much faster and close to it, and EvidenceRegressor() takes seconds"
        )
        warnings.warn(said, NumericalWarning, skip_file_prefixes=HERE)


def found_mode(
    X: FloatArray,
    t: FloatArray,
    covariance: Covariance | None,
    method: str,
    inducing: int | None,
    neighbours: int,
    seed: int,
) -> GPFit:
    """The mode of the hyperparameters."""
    if method == "dense":
        return fit_map(X, t, covariance, random_state=seed)
    if method == "inducing":
        return fit_inducing(X, t, covariance, n_inducing=INDUCING if inducing is None else inducing, random_state=seed)
    return fit_vecchia(X, t, covariance, neighbours=neighbours, n_inducing=inducing, random_state=seed)


def declared_method(mode: GPFit) -> dict[str, Any]:
    """Options of `bayessel.models.gp` with which a model takes as many rows as the method of the mode."""
    if not isinstance(mode, VecchiaFit):
        return {}
    shared = 0 if mode.inducing is None else len(mode.inducing)
    return {"method": "vecchia", "neighbours": mode.neighbours, "inducing": shared}
