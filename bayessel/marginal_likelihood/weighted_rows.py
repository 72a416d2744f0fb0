"""A model whose rows have weights: particles of the prior, moves given weighted rows, and a term for each row.

With weight 1 for rows that were seen and 0 for the others the density is p(θ) Π p(y_i|θ)^w_i, the posterior given some
rows of the data; a weight between is a row that is taken in by degrees.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayessel._check import FloatArray, IntArray
from bayessel._pymc import FlatRV, HalfFlatRV, batched, clone_model, without_initial_values
from bayessel.marginal_likelihood.annealing_route import MOST_LEAPS, TURN, UPDATES, _factor
from bayessel.marginal_likelihood.density_rows import move_rows
from bayessel.marginal_likelihood.target_density import TargetDensity, refuse_discrete
from bayessel.samplers.annealing import FIRST_STEP, adapted
from bayessel.samplers.run.draw_functions import FunctionOfDraws

#: name of the weights in the model whose density is evaluated
_WEIGHTS = "weights_of_the_rows"
#: moves end when places are correlated less than this with where they began and fewer than this share have stayed
#: there, or after so many
CLOSE, STAYED, MOST_MOVES = 0.3, 0.05, 16
#: the step size of every second move, relative to that of the others: some particles are where all is narrow
_SHORT = 0.2


class Moves(NamedTuple):
    """How particles have moved: rate of acceptance, correlation with where they were, share that stayed there."""

    acceptance: float
    correlation: float
    stayed: float


class WeightedRows:
    """A model with one observed variable, taken apart into prior and rows.

    Parameters
    ----------
    model : pymc.Model

    Attributes
    ----------
    count : int
        Rows.
    order : (N,) array
        Row at each place; terms and weights are by place.
    size : int
        Unconstrained coordinates, d.
    share : float
        How many of the usual particles are affordable.
    """

    def __init__(self, model: pm.Model) -> None:
        name = str(only_observed(model).name)
        self.count = _rows(model, name)
        self.order: IntArray = np.arange(self.count)
        self._point = model.initial_point()
        graph = _by_row(model.logp(vars=[model[name]], sum=False)[0])
        self._terms = FunctionOfDraws(model, [graph], self._point)
        self._model = _weighted(model, name, self.count)
        self._target = TargetDensity(self._model)
        self.size, self.share = self._target.size, self._target.share
        self._step_size = FIRST_STEP

    def prior(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Draws of the prior in unconstrained coordinates, (n, d)."""
        rows = self._target.prior_draws(rng, n)
        outside = 1.0 - np.isfinite(rows).all(axis=1).mean()
        if outside:
            raise ValueError(
                f"{100.0 * outside:.2g} % of draws of the prior lie outside the coordinates that are sampled, as with "
                "an ordered transform: what PyMC samples then is another prior; declare the variables so that their "
                "prior has that order"
            )
        return rows

    def terms(self, particles: FloatArray) -> FloatArray:
        """log p(y_i|θ) of particles (n, d): (n, N)."""
        points, place = {}, 0
        for value in self._model.value_vars:
            shape = np.shape(self._point[str(value.name)])
            size = int(np.prod(shape))
            points[str(value.name)] = particles[:, place : place + size].reshape(len(particles), *shape)
            place += size
        [found] = self._terms(points)
        found = np.asarray(found, dtype=float)[:, self.order]
        return np.where(np.isnan(found), -np.inf, found)

    def move(self, particles: FloatArray, weights: FloatArray, rng: np.random.Generator) -> Moves:
        """Move particles in place, the density with these weights (N,) left as it is.

        Returns
        -------
        Moves
        """
        of_rows = np.empty(self.count)
        of_rows[self.order] = weights
        self._model.set_data(_WEIGHTS, of_rows)
        whole, began, factor = self._target.whole, particles.copy(), _factor(particles)
        both = np.repeat(self._target.logs(particles)[:, None], 2, axis=1)
        rate, correlation, stayed = 0.0, 1.0, 1.0
        for _ in range(MOST_MOVES // 2):
            leaps = int(np.clip(round(TURN / self._step_size), 1, MOST_LEAPS))
            rate = move_rows(whole, whole, 1.0, particles, both, factor, self._step_size, leaps, UPDATES, rng)
            move_rows(whole, whole, 1.0, particles, both, factor, _SHORT * self._step_size, leaps, UPDATES, rng)
            self._step_size = adapted(self._step_size, rate, 1.0)
            correlation = _correlation(began, particles)
            stayed = float((began == particles).all(axis=1).mean())
            if correlation < CLOSE and stayed < STAYED:
                break
        return Moves(rate, correlation, stayed)


def _correlation(first: FloatArray, second: FloatArray) -> float:
    """Largest correlation of a column with itself, by ranks: some columns have heavy tails."""
    a, b = (np.argsort(np.argsort(one, axis=0), axis=0) - 0.5 * (len(one) - 1) for one in (first, second))
    return float(((a * b).mean(axis=0) / (a * a).mean(axis=0)).max())


def only_observed(model: pm.Model) -> Any:
    """The observed variable of a model that can be taken apart into rows; a refusal of other models."""
    if any(hasattr(rv.tag, "rest_of") for rv in model.observed_RVs):
        raise ValueError(
            "the rows of this model are not independent given its parameters: their likelihood is one joint normal (t "
            "with t_rest). Minus bs.evidence(model).value is the length of the whole, whatever the order; "
            'az.loo(trace, var_name="t") has a term for each row'
        )
    observed = [str(rv.name) for rv in model.observed_RVs]
    if len(observed) != 1:
        raise ValueError(
            f"the model must have one observed variable, whose rows are coded one after the other, got "
            f"{', '.join(observed) or 'none'}"
        )
    if not model.free_RVs:
        raise ValueError("the model has no free variable: every row has the code length -log p(y_i)")
    refuse_discrete(model)
    if model.potentials:
        raise ValueError(
            f"the potential {model.potentials[0].name} belongs neither to the prior nor to a row; write it as a "
            "distribution"
        )
    if flat := [str(rv.name) for rv in model.free_RVs if isinstance(rv.owner.op, FlatRV | HalfFlatRV)]:
        raise ValueError(
            f"the prior of {', '.join(flat)} is flat, and before the first row predicts nothing; give it a scale"
        )
    if batched(model):
        raise ValueError("the observed variable sees random parts of the data (pm.Minibatch); declare all of them")
    if f"{observed[0].removesuffix('_observed')}_unobserved" in model.named_vars:
        raise ValueError(f"the data of {observed[0].removesuffix('_observed')} have missing values; drop those rows")
    return model.observed_RVs[0]


def _by_row(terms: Any) -> Any:
    """The terms of a row summed, where it has several."""
    flat = terms if terms.ndim else terms[None]
    return flat.sum(axis=tuple(range(1, flat.ndim))) if flat.ndim > 1 else flat


def _rows(model: pm.Model, name: str) -> int:
    """Number of rows."""
    value, [terms] = model.rvs_to_values[model[name]], model.logp(vars=[model[name]], sum=False)
    function = model.compile_fn(
        [terms.shape, value.shape], inputs=model.value_vars, mode="FAST_COMPILE", on_unused_input="ignore"
    )
    of_terms, of_value = (tuple(int(one) for one in np.atleast_1d(shape)) for shape in function(model.initial_point()))
    if of_value and of_terms[:1] != of_value[:1]:
        raise ValueError(
            f"{name} has {of_value[0]} rows and its log likelihood {of_terms[0] if of_terms else 'no'} terms: its rows "
            "are not independent given the parameters. Minus bs.evidence(model).value is the length of the whole"
        )
    return of_terms[0] if of_terms else 1


def _weighted(model: pm.Model, name: str, count: int) -> pm.Model:
    """The model with its observed variable replaced by the weighted sum of its rows' terms."""
    made = clone_model(without_initial_values(model))
    values = made.rvs_to_values[made[name]]
    with made:
        weights: Any = pm.Data(_WEIGHTS, np.ones(count))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", UserWarning)  # the density is no function of the model's variables
                terms = _by_row(pm.logp(made[name], values))
        except (UserWarning, NotImplementedError) as reason:
            raise ValueError(
                f"PyMC has no log likelihood of {name} as a function of the other variables: {reason}. Write it as a "
                "pm.CustomDist with a logp"
            ) from reason
        # a row that is not seen may have no probability
        pm.Potential(f"{_WEIGHTS}_sum", pt.switch(weights > 0.0, weights * terms, 0.0).sum())
    return pm.do(made, {name: np.asarray(values.eval())}, make_interventions_shared=False)
