"""From the options of ``bayessel fit`` to an estimator, and from that to a line that says what it is."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from bayessel._check import one_of
from bayessel._types import NetworkInference, ProcessInference
from bayessel.cli import _words as words

if TYPE_CHECKING:
    import pandas as pd

MODELS = ("gp", "mlp", "rvm", "evidence")
#: options of chains
SAMPLED = ("draws", "tune", "chains")
#: words of --covariance -> classes of bayessel.covariance
COVARIANCES = {
    "standard": "Standard",
    "se": "SquaredExponential",
    "matern12": "Matern12",
    "matern32": "Matern32",
    "matern52": "Matern52",
    "rational-quadratic": "RationalQuadratic",
    "periodic": "Periodic",
    "arcsin": "Arcsin",
    "linear": "Linear",
    "bias": "Bias",
    "noise": "Noise",
}


def estimator(arguments: argparse.Namespace) -> Any:
    """The estimator the options describe; an option of another model is refused."""
    model = one_of(arguments.model, "--model", MODELS)
    of = {
        "gp": ("inference", "covariance", "method", "inducing", "time_budget", *SAMPLED),
        "mlp": ("inference", "hidden", "time_budget", *SAMPLED),
        "rvm": ("width",),
        "evidence": ("width",),
    }
    for name in sorted({one for options in of.values() for one in options} - set(of[model])):
        if getattr(arguments, name) is not None:
            raise ValueError(f"--{name.replace('_', '-')} is not an option of --model {model}")
    if model == "mlp":
        return _network(arguments)
    if model != "gp":
        from bayessel.estimators import EvidenceRegressor, RVMRegressor

        width = arguments.width or "fit"
        value = width if width in ("fit", "ard") else words.number_of(width, "--width", float)
        return (RVMRegressor if model == "rvm" else EvidenceRegressor)(width=value)
    from bayessel.estimators import GPRegressor

    inference: Any = one_of(arguments.inference or "auto", "--inference", words.choices(ProcessInference))
    options: dict[str, Any] = {"progressbar": not arguments.quiet}
    for name in ("time_budget", *SAMPLED):
        text = getattr(arguments, name)
        if text is not None and inference != "mc":
            raise ValueError(
                f"--{name.replace('_', '-')} is for --inference mc: nothing else has chains of such lengths"
            )
        if text is not None:
            options[name] = text if name == "time_budget" else words.number_of(text, f"--{name}", int)
    if arguments.inducing is not None:
        options["inducing"] = words.number_of(arguments.inducing, "--inducing", int)
    if arguments.method is not None:
        options["method"] = one_of(arguments.method, "--method", ("auto", "dense", "vecchia", "inducing"))
    covariance = None if arguments.covariance is None else parse_covariance(arguments.covariance)
    seed = words.number_of(arguments.seed, "--seed", int)
    return GPRegressor(inference, covariance, random_state=seed, **options)


def _network(arguments: argparse.Namespace) -> Any:
    from bayessel.estimators import MLPRegressor

    inference: Any = one_of(arguments.inference or "auto", "--inference", words.choices(NetworkInference))
    options: dict[str, Any] = {"progressbar": not arguments.quiet, "time_budget": arguments.time_budget}
    for name in SAMPLED:
        text = getattr(arguments, name)
        if text is not None and inference not in ("auto", "mc"):
            raise ValueError(f"--{name} is for --inference auto or mc: nothing else is sampled")
        if text is not None:
            options[name] = words.number_of(text, f"--{name}", int)
    if arguments.hidden not in (None, "auto"):
        options["hidden"] = words.number_of(arguments.hidden, "--hidden", int)
    return MLPRegressor(inference, random_state=words.number_of(arguments.seed, "--seed", int), **options)


def parse_covariance(text: str) -> Any:
    """A covariance from words joined by + and *, the products first."""
    from functools import reduce
    from operator import add, mul

    from bayessel import covariance

    def one(word: str) -> Any:
        name = word.strip().lower()
        if name not in COVARIANCES:
            raise ValueError(f"--covariance knows {', '.join(COVARIANCES)}, joined by + and *; got {word.strip()!r}")
        return getattr(covariance, COVARIANCES[name])()

    return reduce(add, (reduce(mul, map(one, term.split("*"))) for term in text.split("+")))


def facts(arguments: argparse.Namespace, estimator: Any, X: pd.DataFrame) -> str:
    """One line: what was fitted to what."""
    what = {
        "gp": "Gaussian process, hyperparameters at their mode",
        "rvm": "relevance vector machine",
        "evidence": "radial basis functions, one weight precision",
    }.get(arguments.model, "")
    if arguments.task == "classification":
        what = f"{what.partition(',')[0] or 'Bayesian network'}, {len(estimator.classes_)} classes"
    elif arguments.model == "mlp":
        what = _kind_of_network(estimator)
    elif arguments.model == "gp" and estimator.fit_.n_states > 1:
        what = f"Gaussian process, a mixture over {estimator.fit_.n_states} states of the hyperparameters"
    if arguments.model == "gp" and arguments.task == "regression" and estimator.method_ != "dense":
        what = _kind_of_process(estimator)
    if arguments.covariance is not None and not estimator.covariance.noisy:
        what += "; noise was added to the covariance"
    names = list(X.columns)
    few = ", ".join(names) if len(names) <= 6 else f"{names[0]} … {names[-1]}"
    inputs = "1 input" if len(names) == 1 else f"{len(names)} inputs"
    return f"{arguments.target} from {inputs} ({few}), {len(X)} rows; {what}"


def _kind_of_process(estimator: Any) -> str:
    """A process of many rows."""
    inducing = estimator.fit_.mode.inducing
    if estimator.method_ == "inducing":
        return f"Gaussian process through {len(inducing)} inducing inputs, hyperparameters at their mode"
    shared = "" if inducing is None else f" and {len(inducing)} inducing inputs"
    return (
        f"Gaussian process by Vecchia's approximation with {estimator.neighbours} neighbours{shared}, hyperparameters "
        "at their mode"
    )


def _kind_of_network(estimator: Any) -> str:
    many, size = len(estimator.weights_.bias), f"{estimator.hidden_} hidden units"
    if estimator.inference == "evidence":
        return f"the most probable network of {size}"
    if estimator.inference == "early-stopping":
        return f"{many} networks of {size}, stopped early"
    return f"a mixture over {many} networks of {size}" if many > 1 else "no network was drawn yet"
