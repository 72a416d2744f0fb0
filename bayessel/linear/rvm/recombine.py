"""Starts that combine what several searches found: the functions of all of them compete once more, by themselves.

Each search ends with functions that others would have chosen differently. A contest of some hundred columns costs next
to nothing beside one of all of them, and often ends higher than the searches it is made from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from bayessel.linear.rvm.problem import RVMProblem
from bayessel.linear.rvm.reestimation import Reestimation
from bayessel.linear.rvm.state import RVMState

#: functions of a model from which there is something to combine
MANY = 16
#: contests with the noise held at several levels, and precisions from narrow to broad
CONTESTS = {
    "0.1": Reestimation(0.1, 5, -10.0),
    "0.01": Reestimation(0.01, 5, 0.0, 20),
    "0.01, broad": Reestimation(0.01, 5, -10.0, 20),
    "0.1, broadest": Reestimation(0.1, 0, -40.0, 60),
}


def recombined(
    problem: RVMProblem, models: Iterable[RVMState], contests: Mapping[str, Reestimation] = CONTESTS
) -> Iterator[tuple[str, RVMState]]:
    """Names and states after contests of the columns in any of the models; nothing where these are few."""
    models = list(models)
    columns = np.unique(np.concatenate([model.active for model in models]))
    if max(model.size for model in models) < MANY:
        return
    for name, contest in contests.items():
        survivors = problem.form.full_start(columns, replace(contest, b_max=problem.b_max), problem.b)
        yield f"combined({name})", problem.form.solve(*survivors)
