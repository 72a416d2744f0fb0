"""The model of new observations given those that were seen, for PyMC's predictive sampling from a trace."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pymc as pm
import pytensor.tensor as pt

from bayessel._check import FloatArray, as_matrix, check_magnitude
from bayessel.models._declared import Declared, declared
from bayessel.models._gp_draws import function_at
from bayessel.models._gp_op import noise_variance
from bayessel.models._joint_normal import declare_noise, declare_tied
from bayessel.models._latent_gp import declare_values, latent_at
from bayessel.models._linear import coordinates_given
from bayessel.models._marginal import weights_given
from bayessel.models._mlp_op import network_outputs
from bayessel.models._observations import PARAMETERS, SOFTMAX, as_log_exposure, observe
from bayessel.models._origin import origin
from bayessel.models._radial_design import symbolic_design
from bayessel.models._symbolic_marginal import declare_width_tied

#: the dimension of the rows that are predicted
NEW_ROW = "new_row"
_NETWORK = ("hidden_bias", "input_hidden", "bias", "hidden_output", "input_output")


def predictive_model(model: pm.Model, X: npt.ArrayLike, *, exposure: npt.ArrayLike | None = None) -> pm.Model:
    """Declare what a model says of new rows given those seen; `pm.sample_posterior_predictive` runs on the result.

    Parameters
    ----------
    model : pymc.Model
        What `gp`, `linear`, `rvm`, `generalised` or `mlp` declared, with the data that the trace was sampled from.
    X : array (n, m)
        New rows: of the inputs (`gp`, `mlp`, dictionaries) or of the design (`linear`, `rvm`, `generalised`).
    exposure : array (n,) or number, optional
        What new counts are counted in; default 1.

    Returns
    -------
    pymc.Model
        The parameters of `model` under their names, without priors: their values come from the trace. ``f``, the
        function at the new rows (log odds for classes, the logarithm of the mean per exposure for counts), and the new
        observations under the name of those in `model`, of the dimension ``new_row``; for collapsed models also ``w``,
        their weights given the data.

    Notes
    -----
    Predict by ``pm.sample_posterior_predictive(trace, model=bs.models.predictive_model(model, X), var_names=["f", "t"],
    predictions=True)``. Where function or weights are integrated out, draws are exact given the parameters and the
    data, and it is an error if the data are not those of the trace. The function at all new rows is drawn jointly, at
    O(n³) operations a draw for a Gaussian process. `predict` does the same without a graph.

    Examples
    --------
    >>> import numpy as np, bayessel as bs
    >>> x = np.linspace(-1.5, 1.5, 20)
    >>> ahead = bs.models.predictive_model(bs.models.gp(x[:, None], np.sin(2 * x)), [[0.1], [0.2], [0.3]])
    >>> sorted(variable.name for variable in ahead.free_RVs)
    ['f', 't', 'theta']
    """
    mark, _ = declared(model, "predictive_model")
    new = new_rows(model, mark, X)
    offset = new_offset(model, mark, exposure, len(new))
    kept = {name: labels for name, labels in model.coords.items() if labels is not None}
    coords = {**kept, NEW_ROW: np.arange(len(new))}
    with pm.Model(coords=coords) as ahead:
        columns = "input" if _has_inputs(mark) else "basis"
        data = pm.Data("X_new" if columns == "input" else "Phi_new", new, dims=(NEW_ROW, columns))
        if mark.has_latent:
            (_latent if mark.maker == "gp" else _generalised)(model, mark, data, offset)
        elif mark.dictionary is not None:
            _radial(model, mark, data)
        else:
            {"gp": _gp, "linear": _linear, "rvm": _rvm, "mlp": _mlp}[mark.maker](model, mark, data)
    return ahead


def new_rows(model: pm.Model, mark: Declared, X: npt.ArrayLike) -> FloatArray:
    """New rows with the columns of those that were seen."""
    if mark.maker == "loss_differences":
        raise ValueError(
            "loss_differences has no inputs, and so no new rows: new cases of its training sets are drawn by "
            "pm.sample_posterior_predictive(trace, model=model)"
        )
    new = as_matrix(X, "X", allow_1d=_has_inputs(mark))
    check_magnitude(new, "X", tiny=True)
    of = "X" if _has_inputs(mark) else "Phi"
    known = model[of] if of in model.named_vars else model["Phi_axes" if mark.maker == "linear" else "Phi_right"]
    wanted = known.get_value().shape[1]
    if new.shape[1] != wanted:
        raise ValueError(f"X must have the {wanted} columns of {of}, got shape {new.shape}")
    return new


def new_offset(model: pm.Model, mark: Declared, exposure: npt.ArrayLike | None, rows: int) -> FloatArray:
    """What is added to the latent function at new rows: logarithms of exposures, or nought."""
    if exposure is None:
        return np.zeros(())
    if not mark.has_latent:
        raise ValueError(f"exposure is of counts, and bs.models.{mark.maker} declared no model of them: leave it out")
    return np.asarray(as_log_exposure(exposure, rows, mark.likelihood))


def _has_inputs(mark: Declared) -> bool:
    """Whether rows are of inputs, and not of a design."""
    return mark.maker in ("gp", "mlp") or mark.dictionary is not None


def _from_trace(model: pm.Model, name: str) -> Any:
    """A parameter of the model, whose values a trace holds; one that was fixed stays what it is."""
    variable = model[name]
    dims = model.named_vars_to_dims.get(name)
    if hasattr(variable, "get_value"):
        return pm.Data(name, variable.get_value(), dims=dims)
    # nothing can be drawn of it: a trace without it is an error
    return pm.Flat(name, dims=dims) if dims else pm.Flat(name, shape=variable.type.shape)


def _seen(model: pm.Model, *names: str) -> list[Any]:
    """The data under their own names, so that PyMC compares them with those of the trace."""
    return [pm.Data(name, model[name].get_value(), dims=model.named_vars_to_dims.get(name)) for name in names]


def _gp(model: pm.Model, mark: Declared, new: Any) -> None:
    covariance = mark.covariance
    if covariance is None:
        raise ValueError("the model has lost its covariance; declare it again by bs.models.gp")
    X, t = _seen(model, "X", "t_data")
    theta = _from_trace(model, "theta")
    deviation = pt.sqrt(noise_variance(covariance, theta, model["X"].get_value().shape[1]))
    noise = declare_noise(deviation, X, t)
    f = pm.CustomDist(
        "f",
        theta,
        X,
        t,
        new,
        origin(noise, theta),
        dist=lambda theta, X, t, new, given, size: function_at(covariance, theta, X, t, new, given),
        signature="(k),(n,m),(n),(l,m),()->(l)",
        dims=NEW_ROW,
    )
    pm.Normal("t", f, deviation, dims=NEW_ROW)


def _linear(model: pm.Model, mark: Declared, new: Any) -> None:
    beta = _from_trace(model, "beta")
    b = _from_trace(model, "b") if "b" in model.named_vars else None
    level = pt.constant(0.0) if b is None else b
    if not mark.collapsed:
        _observe_function(new, _from_trace(model, "w"), level, beta)
        return
    t, left, singular, axes = _seen(model, "t_data", "Phi_left", "Phi_singular", "Phi_axes")
    alpha = _from_trace(model, "alpha") if "alpha" in model.named_vars else pt.constant(1.0)
    own = _seen(model, "prior_scale")[0] if "prior_scale" in model.named_vars else pt.constant(1.0)
    values = {"noise": 1.0 / pt.sqrt(beta), "weight_scale": 1.0 / pt.sqrt(alpha), "level": level}
    [name] = [one for one in values if one in {each.name for each in model.deterministics}] or [""]
    if not name:
        raise ValueError("all parameters of the model are fixed: there is no trace of it")
    tied = declare_tied(name, values[name], t, left, singular)
    w = pm.CustomDist(
        "w",
        left,
        singular,
        axes,
        alpha,
        beta,
        t - level,
        own * pt.ones(new.shape[1]),
        origin(tied, alpha, beta, level),
        dist=_draw_shared,
        signature="(n,k),(k),(k,m),(),(),(n),(m),()->(m)",
        dims="basis",
    )
    _observe_function(new, w, level, beta)


def _draw_shared(
    left: Any, singular: Any, axes: Any, alpha: Any, beta: Any, deviation: Any, own: Any, given: Any, size: Any
) -> Any:
    u = pm.Normal.dist(0.0, 1.0, size=axes.shape[1:])
    c = pt.dot(axes, u)
    moved = coordinates_given(c, left, singular, alpha, beta, deviation, pt.neq(given, 0))
    return (u + pt.dot(moved - c, axes)) * own / pt.sqrt(alpha)


def _rvm(model: pm.Model, mark: Declared, new: Any) -> None:
    beta, nought = _from_trace(model, "beta"), pt.constant(0.0)
    if not mark.collapsed:
        _observe_function(new, _from_trace(model, "w"), nought, beta)
        return
    t, left, right = _seen(model, "t_data", "Phi_left", "Phi_right")
    alpha = _from_trace(model, "alpha")
    noise = declare_noise(1.0 / pt.sqrt(beta), t, left, right)
    w = pm.CustomDist(
        "w",
        left,
        right,
        alpha,
        beta,
        t,
        origin(noise, alpha, beta),
        dist=lambda *parameters: weights_given(*parameters[:-1]),
        signature="(n,k),(k,m),(m),(),(n),()->(m)",
        dims="basis",
    )
    _observe_function(new, w, nought, beta)


def _radial(model: pm.Model, mark: Declared, new: Any) -> None:
    """A design that moves with the width of each draw, at the rows that were seen and at new ones."""
    dictionary: Any = mark.dictionary
    t, X, centers = _seen(model, "t_data", "X", "centers")
    width, beta = _from_trace(model, "width"), _from_trace(model, "beta")
    level = _from_trace(model, "b") if "b" in model.named_vars else pt.constant(0.0)
    rows = symbolic_design(dictionary, new, centers, width)
    if not mark.collapsed:
        _observe_function(rows, _from_trace(model, "w"), level, beta)
        return
    Phi = symbolic_design(dictionary, X, centers, width)
    alpha = _from_trace(model, "alpha") * pt.ones(dictionary.n_columns)
    w = pm.CustomDist(
        "w",
        Phi,
        alpha,
        beta,
        t - level,
        origin(declare_width_tied(width, beta, t, X, centers), width, alpha, beta, level),
        dist=lambda Phi, *rest: weights_given(pt.eye(Phi.shape[0]), Phi, *rest[:-1]),
        signature="(n,m),(m),(),(n),()->(m)",
        dims="basis",
    )
    _observe_function(rows, w, level, beta)


def _observe_function(new: Any, w: Any, level: Any, beta: Any) -> None:
    f = pm.Deterministic("f", pt.dot(new, w) + level, dims=NEW_ROW)
    pm.Normal("t", f, tau=beta, dims=NEW_ROW)


def _generalised(model: pm.Model, mark: Declared, new: Any, offset: FloatArray) -> None:
    b = _from_trace(model, "b") if "b" in model.named_vars else 0.0
    dims = (NEW_ROW, "class") if mark.likelihood == SOFTMAX else (NEW_ROW,)
    f = pm.Deterministic("f", pt.dot(new, _from_trace(model, "w")) + b, dims=dims)
    noise = None
    if "w_noise" in model.named_vars:
        log_noise = _from_trace(model, "log_noise") + pt.dot(new, _from_trace(model, "w_noise"))
        noise = pm.Deterministic("noise", pt.exp(log_noise), dims=NEW_ROW)
    observe(mark.likelihood, "y", f + offset, _parameters(model, mark.likelihood, noise), dims=NEW_ROW)


def _latent(model: pm.Model, mark: Declared, new: Any, offset: FloatArray) -> None:
    covariance: Any = mark.covariance
    (X,) = _seen(model, "X")
    theta, v = _from_trace(model, "theta"), _from_trace(model, "v")
    f = pm.CustomDist(
        "f",
        theta,
        v,
        X,
        new,
        origin(declare_values(covariance, theta, X, v), theta, v),
        dist=lambda theta, v, X, new, given, size: latent_at(covariance, theta, v, X, new, given),
        signature="(k),(n),(n,m),(l,m),()->(l)",
        dims=NEW_ROW,
    )
    observe(mark.likelihood, "t", f + offset, _parameters(model, mark.likelihood, None), dims=NEW_ROW)


def _parameters(model: pm.Model, kind: str, noise: Any) -> dict[str, Any]:
    """The likelihood's parameters from the trace, but for a noise that is known."""
    names = [name for name in PARAMETERS.get(kind, ()) if name != "noise" or noise is None]
    return {name: _from_trace(model, name) for name in names} | ({} if noise is None else {"noise": noise})


def _mlp(model: pm.Model, mark: Declared, new: Any) -> None:
    kind = mark.likelihood
    made: Any = network_outputs(*(_from_trace(model, name) for name in _NETWORK), new)
    one = model["t_data"].get_value().ndim == 1
    dims = (NEW_ROW,) if one and kind != "softmax" else (NEW_ROW, "output")
    f = pm.Deterministic("f", made[0][:, 0] if len(dims) == 1 else made[0], dims=dims)
    if kind == "logistic":
        pm.Bernoulli("t", logit_p=f, dims=dims)
    elif kind == "softmax":
        pm.Categorical("t", logit_p=f, dims=NEW_ROW)
    else:
        tau = _from_trace(model, "tau_noise")
        tau = tau[0] if len(dims) == 1 else tau
        if kind == "gaussian":
            pm.Normal("t", f, tau=tau, dims=dims)
        else:
            pm.StudentT("t", _from_trace(model, "nu"), f, lam=tau, dims=dims)
