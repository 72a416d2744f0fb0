"""A Bayesian multi-layer perceptron as a PyMC model: weights, their precisions, and what is observed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pymc as pm

from bayessel._check import FloatArray, as_float_array, as_matrix, as_target, check_finite, check_magnitude, one_of
from bayessel.mlp.architecture import Architecture, hidden_units
from bayessel.mlp.prior import Gamma, NetworkPrior
from bayessel.mlp.targets import MOST_CLASSES
from bayessel.models._declared import Declared, remember
from bayessel.models._linear import _constant
from bayessel.models._mlp_op import network_outputs

LIKELIHOODS = ("gaussian", "student", "logistic", "softmax")
#: Usual shape and rate of ν of Student's noise: from heavy tails to nearly Gaussian (Juárez and Steel 2010).
DEGREES = (2.0, 0.1)


def mlp(
    X: npt.ArrayLike,
    t: npt.ArrayLike,
    hidden: int | str = 8,
    *,
    likelihood: str | None = None,
    prior: NetworkPrior | None = None,
) -> pm.Model:
    """Declare a network of tanh units with direct connections and Gamma precisions for each group of weights.

    f(x) = Σ_h v_h tanh(Σ_i x_i u_ih + a_h) + Σ_i x_i w_i + b, for each of K outputs.

    Parameters
    ----------
    X : array (n, D)
        Inputs. The default priors are for standardised columns, and for a standardised target.
    t : array (n,) or (n, K)
        Targets; 0 and 1 for ``"logistic"``, classes 0 … K-1 for ``"softmax"``, which has one output for each.
    hidden : int or "auto"
        Hidden units H; ``"auto"``: the fewest with as many weights as rows, between 6 and 25.
    likelihood : {"gaussian", "student", "logistic", "softmax"}, optional
        What is observed at the outputs; None is ``"gaussian"``. Each output has its noise precision; Student's degrees
        of freedom ``nu`` are shared.
    prior : bayessel.mlp.NetworkPrior, optional
        Default that of Rasmussen (1996).

    Returns
    -------
    pymc.Model
        Weights ``hidden_bias``, ``input_hidden``, ``bias``, ``hidden_output``, ``input_output``; precisions
        ``tau_noise``, ``tau_hidden_bias``, ``tau_hidden_output``, ``tau_input_hidden``, ``mean_tau_input_hidden``,
        ``tau_input_output``, ``mean_tau_input_output``; the observed ``t``. Dimensions ``row``, ``input``, ``hidden``,
        ``output``. Inputs and targets are the data ``X`` and ``t_data``: ``pm.set_data`` changes them without a new
        compilation.

    Notes
    -----
    The outputs come from one node of the graph with a gradient of its own, whoever samples. Networks with hidden units
    exchanged, or with the signs of one's weights turned, are the same function: compare predictions, not weights.

    References
    ----------
    Neal (1996), Bayesian Learning for Neural Networks; Rasmussen (1996), Evaluation of Gaussian Processes and other
    Methods for Non-linear Regression, § 3.7.

    Examples
    --------
    >>> import numpy as np, bayessel as bs
    >>> x = np.linspace(-1.5, 1.5, 20)
    >>> model = bs.models.mlp(x[:, None], np.sin(2 * x), hidden=4)
    >>> model["input_hidden"].eval().shape
    (1, 4)
    """
    inputs = as_matrix(X, "X", allow_1d=True)
    check_magnitude(inputs, "X")
    kind = "gaussian" if likelihood is None else one_of(likelihood, "likelihood", LIKELIHOODS)
    target, outputs = _read_target(t, len(inputs), kind)
    n, D = inputs.shape
    architecture = Architecture(D, hidden_units(hidden, n, D, outputs), outputs)
    belief = NetworkPrior(architecture) if prior is None else prior
    if not isinstance(belief, NetworkPrior):
        raise TypeError(f"prior must be a bayessel.mlp.NetworkPrior, got {type(prior).__name__}")
    if belief.architecture != architecture:
        raise ValueError(f"prior must be for {architecture}, got one for {belief.architecture}")

    coords: Mapping[str, Any] = {
        "row": np.arange(n),
        "input": np.arange(D),
        "hidden": np.arange(architecture.hidden),
        "output": np.arange(outputs),
    }
    with pm.Model(coords=coords) as model:
        # data are shared variables: constants would enter the key of the compiled code, one compilation per data set
        X_data = pm.Data("X", inputs, dims=("row", "input"))
        t_data = pm.Data("t_data", target, dims=("row", "output")[: target.ndim])
        made: Any = network_outputs(*_declare_weights(belief), X_data)
        f = made[0]
        _observe(kind, f if target.ndim == 2 or kind == "softmax" else f[:, 0], t_data, belief, target.ndim)
        remember(model["t"], Declared("mlp", likelihood=kind))
        said = {"prior": belief, "likelihood": kind}
        for variable in model.free_RVs:
            variable.tag.mlp = said  # for `bs.steps`: one sweep over all of them
    return model


def _declare_weights(prior: NetworkPrior) -> list[Any]:
    """The weights in packed order, after their precisions."""
    tau_u = _relevance("input_hidden", prior.input_hidden, prior.input_hidden_shape)
    tau_w = _relevance("input_output", prior.input_output, prior.input_output_shape)
    tau_a, tau_v = (
        _precision("tau_hidden_bias", prior.hidden_bias),
        _precision("tau_hidden_output", prior.hidden_output),
    )
    return [
        pm.Normal("hidden_bias", 0.0, tau=tau_a, dims="hidden"),
        pm.Normal("input_hidden", 0.0, tau=tau_u[:, None], dims=("input", "hidden")),
        pm.Normal("bias", 0.0, _constant(prior.bias_sd), dims="output"),
        pm.Normal("hidden_output", 0.0, tau=tau_v, dims=("hidden", "output")),
        pm.Normal("input_output", 0.0, tau=tau_w[:, None], dims=("input", "output")),
    ]


def _precision(name: str, prior: Gamma, dims: str | None = None) -> Any:
    return pm.Gamma(name, _constant(prior.alpha), _constant(prior.beta), dims=dims)


def _relevance(name: str, top: Gamma, shape: float) -> Any:
    """One precision per input, about a mean that they share."""
    mean = _precision(f"mean_tau_{name}", top)
    half = _constant(0.5 * shape)
    return pm.Gamma(f"tau_{name}", half, half / mean, dims="input")


def _observe(kind: str, f: Any, t: Any, prior: NetworkPrior, axes: int) -> None:
    """The observed ``t`` in PyMC's own distributions: one log likelihood and one predictive draw per row."""
    dims = ("row", "output")[:axes]
    if kind == "logistic":
        pm.Bernoulli("t", logit_p=f, observed=t, dims=dims)
        return
    if kind == "softmax":
        pm.Categorical("t", logit_p=f, observed=t, dims=dims)
        return
    tau = _precision("tau_noise", prior.noise, "output")
    tau = tau if axes == 2 else tau[0]
    if kind == "gaussian":
        pm.Normal("t", f, tau=tau, observed=t, dims=dims)
    else:
        nu = pm.Gamma("nu", *(_constant(number) for number in DEGREES))
        pm.StudentT("t", nu, f, lam=tau, observed=t, dims=dims)


def _read_target(t: npt.ArrayLike, n: int, kind: str) -> tuple[FloatArray | npt.NDArray[np.int64], int]:
    """The target as floats or classes, and the number of outputs."""
    array = as_float_array(t, "t")
    if array.ndim == 2 and array.shape[1] > 1 and kind != "softmax":
        if len(array) != n:
            raise ValueError(f"t must have one row per row of X: there are {n} rows and {len(array)} of t")
        check_finite(array, "t")
        target = np.ascontiguousarray(array)
    else:
        target = as_target(array, n, "t")
    check_magnitude(target, "t")
    outputs = target.shape[1] if target.ndim == 2 else 1
    if kind == "logistic":
        if not np.isin(target, (0.0, 1.0)).all():
            found = np.unique(target)[:5].tolist()
            raise ValueError(f"t must be 0 and 1 for the logistic likelihood, got {found}; number the classes so")
        return target.astype(np.int64), outputs
    if kind == "softmax":
        whole = (target >= 0.0) & (target < MOST_CLASSES) & (target == np.floor(target))
        if not whole.all():
            raise ValueError(
                "t must be classes 0, 1, 2, … for the softmax likelihood, "
                f"got {target[~whole][0]:g}; number the classes so"
            )
        return target.astype(np.int64), max(int(target.max()) + 1, 2)
    return target, outputs
