"""The three losses of DELVE, in units in which guessing without looking at the inputs costs about one, or nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray, as_float_array, as_target, check_magnitude, one_of
from bayessel._formulas import log_normal

LOSSES = ("squared", "absolute", "log")


class Brief(NamedTuple):
    """A method's loss on a task: average, its standard error, and the instances that they come from."""

    mean: float
    std_error: float
    instances: int


class Group(NamedTuple):
    """Average losses by method, over so many tasks."""

    tasks: int
    means: dict[str, float]


def standardised_losses(y: npt.ArrayLike, prediction: npt.ArrayLike, loss: str = "squared") -> FloatArray:
    r"""Losses of single test cases, standardised by the test set.

    Parameters
    ----------
    y : array (J,)
        Targets of the test set.
    prediction : array (J,)
        "squared": predicted means; "absolute": medians; "log": log predictive densities of the targets.
    loss : {"squared", "absolute", "log"}
        :math:`(y-\hat y)^2` by the variance of the targets; :math:`|y-\hat y|` by their mean absolute deviation from
        the median; :math:`-\log p(y)` less that of a Gaussian with their mean and standard deviation.

    Returns
    -------
    array (J,)
        The mean is 1, 1 and 0 for the best constant guess.

    Examples
    --------
    >>> y = [0.0, 1.0, 2.0, 5.0]
    >>> float(standardised_losses(y, [2.0] * 4).mean())
    1.0
    """
    one_of(loss, "loss", LOSSES)
    target = as_float_array(y, "y")
    if target.size < 2:
        raise ValueError(f"y must be the targets of two test cases or more, got {target.size}: there is no unit")
    target = as_target(target, len(target), "y")
    check_magnitude(target, "y")
    said = as_target(prediction, len(target), "prediction")
    if loss == "absolute":
        unit = float(np.mean(np.abs(target - np.median(target))))
    else:
        unit = float(np.std(target))
    if not unit > 0.0:
        raise ValueError(f"y must vary, got {len(target)} times {target[0]:g}: there is no unit for the loss")
    with np.errstate(over="ignore"):
        if loss == "squared":
            losses = ((target - said) / unit) ** 2
        elif loss == "absolute":
            losses = np.abs(target - said) / unit
        else:
            losses = -said + log_normal((target - target.mean()) / unit, 1.0) - np.log(unit)
    if beyond := int(np.isinf(losses).sum()):
        raise ValueError(f"prediction is so far off in {beyond} of {len(losses)} cases that {loss} loss overflows")
    return losses


def chosen_losses(losses: str | Iterable[str]) -> tuple[str, ...]:
    """Names of losses, or a single one, looked at."""
    names = (losses,) if isinstance(losses, str) else tuple(losses)
    if not names:
        raise ValueError(f"losses is empty: choose from {', '.join(LOSSES)}")
    for name in names:
        one_of(name, "losses", LOSSES)
    return names
