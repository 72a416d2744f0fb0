"""Differences of losses of two methods on several tasks, robust: a hierarchical PyMC model with Student residuals.

For case j of training set i of task k (Rasmussen 1996, eq. 2.8, with tasks above and heavy tails below)

    y_kij = m_ki + σ_k t_ν,    m_ki = μ_k + ω_k z_ki,    z_ki ~ N(0, 1),    μ_k ~ N(μ₀, τ²).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pymc as pm

from bayessel._check import FloatArray, as_matrix, as_positive, as_positive_vector, check_magnitude
from bayessel.models._declared import Declared, remember
from bayessel.models._linear import _constant

#: Usual shape and rate of ν − 1: from heavy tails to nearly Gaussian (Juárez and Steel 2010), but with a mean.
DEGREES = (2.0, 0.1)
#: Median of the half-Cauchy priors of the effects of training sets and of tasks, in spreads of single cases. With 0.3
#: four training sets say as much of a difference as under the prior of Rasmussen (1996), eq. 2.15.
EFFECT = 0.3
#: Prior standard deviation of the mean, in the same unit: as good as flat.
FLAT = 10.0
#: Half-width, in natural logarithms, of the prior of the spread of single cases about what is seen of it.
SPREAD_SD = 1.0
#: The median absolute deviation of a standard normal variable.
_NORMAL_MAD = 0.6744897501960817


def loss_differences(
    differences: npt.ArrayLike | Mapping[str, npt.ArrayLike],
    *,
    nu: float | None = None,
    scale: float | npt.ArrayLike | None = None,
) -> pm.Model:
    """Declare what differences of losses on several tasks say of a method against another.

    Parameters
    ----------
    differences : mapping of names to arrays (I, J), or one array (I, J)
        Of each task: losses of method A less those of method B, a row for each training set, its own test cases in the
        columns. Tasks may have different sizes; their losses must be in one unit, as DELVE's standardised losses are.
    nu : float, optional
        Degrees of freedom of the residuals, above one. None: inferred, one for all tasks. Large: normal residuals.
    scale : float or one per task, optional
        The spread of single cases about which the priors are centred. By default that of the data: median absolute
        deviations from the medians of training sets.

    Returns
    -------
    pymc.Model
        ``mu`` (dimension ``task``), means of the tasks; ``omega`` (``task``), spread of training sets about them,
        ``set_effect`` (``set``) in that unit, and ``set_mean``; ``sigma`` (``task``), spread of the cases; with several
        tasks ``mu_all`` and ``tau``, mean and spread of tasks like these; ``nu_minus_one`` and ``nu``. Differences are
        the data ``y_data``. `bayessel.diagnostics.delve.verdict` reads a trace of it; `bayessel.sample` has a sampler
        for it, and NUTS runs on it too.

    Notes
    -----
    Priors, with s_k the spread of single cases and s their root mean square: μ₀, with one task μ, ~ N(0, (10 s)²);
    τ ~ half-Cauchy(0.3 s), ω_k ~ half-Cauchy(0.3 s_k), log σ_k ~ N(log s_k, 1), ν − 1 ~ Gamma(2, 0.1).

    Student residuals make the mean of a task a robust centre: a case where one method fails altogether hardly moves
    it. Where differences are skewed the centre is not the expected loss.

    References
    ----------
    Rasmussen (1996), Evaluation of Gaussian Processes and other Methods for Non-linear Regression, section 2.4, asks
    for sampling with other distributional assumptions; Kruschke (2013), Bayesian estimation supersedes the t test.

    Examples
    --------
    >>> import numpy as np, bayessel as bs
    >>> rng = np.random.default_rng(0)
    >>> model = bs.models.loss_differences({"kin": rng.normal(size=(4, 16)), "boston": rng.normal(size=(8, 20))})
    >>> model["set_mean"].eval().shape
    (12,)
    """
    tasks = _read(differences)
    names = list(tasks)
    unit = _scales(tasks, scale)
    overall = float(np.sqrt(np.mean(unit**2)))
    sets = [f"{name}[{i}]" for name in names for i in range(len(tasks[name]))]
    task_of_set = np.repeat(np.arange(len(names)), [len(y) for y in tasks.values()])
    set_of_case = np.repeat(np.arange(len(sets)), [y.shape[1] for y in tasks.values() for _ in y])
    values = np.concatenate([y.ravel() for y in tasks.values()])
    coords = {"task": names, "set": sets, "case": np.arange(len(values))}
    with pm.Model(coords=coords) as model:
        y_data = pm.Data("y_data", values, dims="case")
        if len(names) > 1:
            centre = pm.Normal("mu_all", 0.0, _constant(FLAT * overall))
            mu = pm.Normal("mu", centre, pm.HalfCauchy("tau", _constant(EFFECT * overall)), dims="task")
        else:
            mu = pm.Normal("mu", 0.0, _constant(FLAT * overall), dims="task")
        omega = pm.HalfCauchy("omega", _constant(EFFECT * unit), dims="task")
        # of effects in units of ω: no funnel for samplers that move both
        effect = pm.Normal("set_effect", 0.0, 1.0, dims="set")
        level = pm.Deterministic("set_mean", mu[task_of_set] + omega[task_of_set] * effect, dims="set")
        sigma = pm.LogNormal("sigma", _constant(np.log(unit)), _constant(SPREAD_SD), dims="task")
        spread = sigma[task_of_set[set_of_case]]
        observed: Any = pm.StudentT("y", _degrees(nu), level[set_of_case], sigma=spread, observed=y_data, dims="case")
        remember(observed, Declared("loss_differences"))
        said = {
            "per_set": np.array([y.shape[1] for y in tasks.values() for _ in y]),
            "sets": np.array([len(y) for y in tasks.values()]),
            "belief": {
                "flat": FLAT * overall,
                "tau": EFFECT * overall,
                "omega": EFFECT * unit,
                "log_sigma": np.log(unit),
                "log_sigma_sd": SPREAD_SD,
                "excess": DEGREES if nu is None else None,
            },
        }
        for variable in model.free_RVs:
            variable.tag.loss_differences = said  # for `bs.steps`: one sweep over all of them
    return model


def _degrees(nu: float | None) -> Any:
    if nu is None:
        excess = pm.Gamma("nu_minus_one", *(_constant(number) for number in DEGREES))
        return pm.Deterministic("nu", 1.0 + excess)
    given = as_positive(nu, "nu")
    if given <= 1.0:
        raise ValueError(f"nu must be above 1, or the differences have no mean, got {given:g}")
    return pm.Data("nu", given)


def _read(differences: Any) -> dict[str, FloatArray]:
    named = dict(differences) if isinstance(differences, Mapping) else {"task": differences}
    if not named:
        raise ValueError("differences must hold at least one task, got none")
    if len({str(name) for name in named}) < len(named):
        raise ValueError(f"tasks must have different names as text, got {', '.join(map(repr, named))}")
    found = {}
    for name, table in named.items():
        y = as_matrix(table, f"differences of {name}")
        check_magnitude(y, f"differences of {name}")
        if min(y.shape) < 2:
            raise ValueError(
                f"differences of {name} must be (I, J), a row of J test cases for each of I training sets, both at "
                f"least 2; got shape {y.shape}: with fewer the variation cannot be estimated"
            )
        found[str(name)] = y
    return found


def _scales(tasks: Mapping[str, FloatArray], scale: Any) -> FloatArray:
    """The spread of single cases of each task."""
    if scale is not None:
        if np.ndim(scale) == 0:
            return np.full(len(tasks), as_positive(scale, "scale"))
        return as_positive_vector(scale, "scale", len(tasks))
    found = []
    for name, y in tasks.items():
        residuals = np.abs(y - np.median(y, axis=1, keepdims=True))
        spread = float(np.median(residuals)) / _NORMAL_MAD
        if not spread > 0.0:  # more than half of the cases are ties
            spread = float(np.sqrt(np.mean(residuals**2)))
        if not spread > 0.0:
            raise ValueError(
                f"differences of {name} do not vary within training sets, so there is no scale for their priors; "
                "leave the task out, or pass scale"
            )
        found.append(spread)
    return np.array(found)
