"""Gibbs steps for PyMC models: exact draws of precisions and scales, and of blocks of Normal variables.

All find the conjugate structure in the model's graph themselves. They work with constrained values and write the
values PyMC samples: where the transform of another variable depends on what was drawn, that variable's sampled value is
computed anew, so that it stays where it was.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
import pymc as pm
from pymc import modelcontext
from pymc.step_methods import BlockedStep
from pytensor.graph.basic import Variable

from bayessel._pymc import StepMethodState, get_random_generator, get_value_vars_from_user_vars
from bayessel.samplers.conjugacy.block import GaussianBlock
from bayessel.samplers.conjugacy.graph import ModelGraph, NotConjugateError
from bayessel.samplers.conjugacy.logistic import LogisticBlock
from bayessel.samplers.conjugacy.scale import ScaleConditional


class _GibbsStep(BlockedStep):
    """What the steps share: reading the point, writing it, and the random generator as the only state."""

    _state_class = StepMethodState

    def __init__(
        self, vars: Any = None, *, model: pm.Model | None = None, rng: Any = None, blocked: bool = True
    ) -> None:
        model = modelcontext(model)
        given = model.free_RVs if vars is None else vars if isinstance(vars, list | tuple) else [vars]
        self.vars = get_value_vars_from_user_vars([model[v] if isinstance(v, str) else v for v in given], model)
        self.rng = get_random_generator(rng)
        self.targets = [model.values_to_rvs[value] for value in self.vars]
        self.graph = ModelGraph(model)
        self.space = self.graph.space
        self._find()
        self._moved = self.space.moved_by(self.targets)
        self._fresh = False

    @abstractmethod
    def _find(self) -> None:
        """Read the conjugate structure, or refuse."""

    def _refuse(self, rv: Variable, reason: Exception) -> ValueError:
        return ValueError(
            f"{type(self).__name__} needs a conjugate conditional, and that of {rv.name} is not: {reason}; "
            "leave the variable to another step"
        )

    def setup_chain(self, rng: Any, tune: int, draws: int) -> None:
        """Start a chain: a generator of its own, and the data as they are now."""
        super().setup_chain(rng, tune, draws)
        self.data_changed()

    def data_changed(self) -> None:
        """Drop what was computed from data; the next draw reads them anew."""
        self._fresh = False
        self.space.data_changed()

    def step(self, point: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Draw the variables from their conditionals."""
        with np.errstate(all="ignore"):
            env: dict[Variable, Any] = {}
            for rv in self._moved:
                self.space.read(rv, point, env)
            new = dict(point)  # same order of keys: the trace relies on it
            if not self._fresh:
                self._refresh(point, dict(env))
                self._fresh = True
            self._draw(point, env, new)
            for rv in self._moved:
                self.space.write(rv, new, env)
        return new, [{}]

    @abstractmethod
    def _refresh(self, point: dict[str, Any], env: dict[Variable, Any]) -> None:
        """Compute what depends on data and shapes alone."""

    @abstractmethod
    def _draw(self, point: dict[str, Any], env: dict[Variable, Any], new: dict[str, Any]) -> None:
        """Draw into `env` and `new`."""


class GammaPrecisionGibbs(_GibbsStep):
    """Exact conditional draws of precisions, variances and scales of Normal and Gamma variables, one after the other.

    Parameters
    ----------
    vars : variable, name or list
        Positive variables with Gamma, Exponential, chi-squared, inverse-gamma, half-Cauchy, half-Student, half-normal,
        log-normal or Weibull priors. All that depends on them must be Normal variables, observed or not, whose
        standard deviations are powers of them, element by element: precisions, variances, scales; or Gamma,
        Exponential and inverse-gamma variables of fixed shape whose rates are: the mean of several precisions.
    model : pymc.Model, optional
        Default: the model on the stack.
    rng : int or numpy.random.Generator, optional
        Overruled by ``pm.sample(random_seed=...)``.

    Notes
    -----
    With n standardised residuals of sum of squares S to an element: τ | r ~ Gamma(a + n/2, b + S/2) for a Gamma(a, b)
    precision, v | r ~ InvGamma(a + n/2, b + S/2) for an InvGamma(a, b) variance. A Gamma variable of shape a is worth
    2a such residuals. A half-Student scale is moved by its
    auxiliary variable (`bayessel.samplers.conditionals.log_half_student_scale`), which is drawn and dropped. Under the
    other priors, or where a prior does not go with the role, the conditional of log x is log-concave and drawn by
    rejection, exactly too (`bayessel.samplers.log_scales`).
    """

    name = "gamma_precision_gibbs"

    def _find(self) -> None:
        self.conditionals = []
        for rv in self.targets:
            try:
                self.conditionals.append(ScaleConditional(self.graph, rv))
            except NotConjugateError as reason:
                raise self._refuse(rv, reason) from reason

    def _refresh(self, point: dict[str, Any], env: dict[Variable, Any]) -> None:
        for conditional in self.conditionals:
            for rv in conditional.reads:
                self.space.read(rv, point, env)
            conditional.refresh(env)

    def _draw(self, point: dict[str, Any], env: dict[Variable, Any], new: dict[str, Any]) -> None:
        for conditional in self.conditionals:
            for rv in conditional.needs:
                self.space.read(rv, point, env)
            log_x = conditional.draw(env, self.rng)
            x = conditional.x
            env[x] = np.asarray(np.exp(log_x))
            new[self.space.value_name(x)] = np.asarray(log_x) if self.space.is_log(x) else env[x]


class GaussianWeightsGibbs(_GibbsStep):
    """One exact joint draw of Normal variables from their conditional given everything else.

    Parameters
    ----------
    vars : variable, name or list
        Normal variables. All that depends on them must be Normal variables, observed or not, with means that are
        affine in all of `vars` jointly and standard deviations free of them.
    model : pymc.Model, optional
        Default: the model on the stack.
    rng : int or numpy.random.Generator, optional
        Overruled by ``pm.sample(random_seed=...)``.

    Notes
    -----
    The linear map is read from the graph. Where it does not depend on other random variables it is kept, with its Gram
    matrix; where moreover the prior precisions keep constant ratios it is diagonalised once, and a draw costs O(M²)
    for M weights, else O(M³).
    """

    name = "gaussian_weights_gibbs"
    _block: ClassVar[type[GaussianBlock]] = GaussianBlock

    def _find(self) -> None:
        try:
            self.block = self._block(self.graph, self.targets)
        except NotConjugateError as reason:
            raise self._refuse(self.targets[0], reason) from reason

    def _refresh(self, point: dict[str, Any], env: dict[Variable, Any]) -> None:
        for rv in self.block.needs:
            self.space.read(rv, point, env)
        self.block.refresh(env)

    def _draw(self, point: dict[str, Any], env: dict[Variable, Any], new: dict[str, Any]) -> None:
        targets = self.block.members
        for rv in self.block.reads:
            self.space.read(rv, point, env)
        env.update(zip(targets, self.block.draw(env, self.rng), strict=True))
        for rv in targets:
            self.space.write(rv, new, env)


class PolyaGammaGibbs(GaussianWeightsGibbs):
    """One joint draw of Normal variables in whose values the log odds of Bernoulli variables are affine.

    Parameters
    ----------
    vars : variable, name or list
        Normal variables, all the weights of a logistic regression together. All that depends on them must be Bernoulli
        variables given by ``logit_p``, affine in them with coefficients that are data, or Normal variables as for
        `GaussianWeightsGibbs`.
    model : pymc.Model, optional
        Default: the model on the stack.
    rng : int or numpy.random.Generator, optional
        Overruled by ``pm.sample(random_seed=...)``.

    Notes
    -----
    A draw costs one Pólya-Gamma variable per row and a Cholesky factor of the size of the weights; nothing is tuned.
    Successive draws are correlated, most where the classes are far apart or very unequal in number (Polson, Scott and
    Windle 2013, JASA 108, 1339).
    """

    name = "polya_gamma_gibbs"
    _block = LogisticBlock
