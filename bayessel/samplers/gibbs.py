"""Gibbs steps for PyMC models: exact draws of precisions and scales, and of blocks of Normal variables.

All find the conjugate structure in the model's graph themselves. They work with constrained values and write the
values PyMC samples: where the transform of another variable depends on what was drawn, that variable's sampled value is
computed anew, so that it stays where it was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pymc as pm
from pymc import modelcontext
from pymc.step_methods import BlockedStep
from pytensor.graph.basic import Variable

from bayessel._pymc import StepMethodState, get_random_generator
from bayessel._types import Seed
from bayessel.samplers.conjugacy.block import GaussianBlock
from bayessel.samplers.conjugacy.graph import ModelGraph, NotConjugateError, distribution_name
from bayessel.samplers.conjugacy.logistic import LogisticBlock
from bayessel.samplers.conjugacy.scale import ScaleConditional
from bayessel.samplers.conjugacy.sparse_block import SparseBlock
from bayessel.samplers.conjugacy.sparse_marginal import SparseMarginal
from bayessel.samplers.density import Variables, value_variables


class _GibbsStep(BlockedStep):
    """What the steps share: reading the point, writing it, and the random generator as the only state."""

    _state_class = StepMethodState
    _conditional: ClassVar[Callable[..., ScaleConditional | GaussianBlock | SparseBlock | SparseMarginal]]
    _joint: ClassVar[bool]

    def __init__(
        self, vars: Variables | None = None, *, model: pm.Model | None = None, rng: Seed = None, blocked: bool = True
    ) -> None:
        model = modelcontext(model)
        self.vars = value_variables(model, model.free_RVs if vars is None else vars)
        self.rng = get_random_generator(rng)
        self.targets = [model.values_to_rvs[value] for value in self.vars]
        graph = ModelGraph(model)
        self.space = graph.space
        self.conditionals = []
        for members in [self.targets] if self._joint else [[rv] for rv in self.targets]:
            try:
                self.conditionals.append(self._conditional(graph, members))
            except NotConjugateError as reason:
                raise ValueError(
                    f"{type(self).__name__} needs a conjugate conditional, and that of {members[0].name} is not: "
                    f"{reason}; leave the variable to another step"
                ) from reason
        self._moved = self.space.moved_by(self.targets)
        self._fresh = False

    def setup_chain(self, rng: Seed, tune: int, draws: int) -> None:
        """Start a chain: a generator of its own, and the data as they are now."""
        super().setup_chain(rng, tune, draws)
        self.data_changed()

    def data_changed(self) -> None:
        """Drop what was computed from data; the next draw reads them anew."""
        self._fresh = False
        self.space.data_changed()

    def step(self, point: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Draw the variables from their conditionals, one after the other."""
        with np.errstate(all="ignore"):
            env: dict[Variable, Any] = {}
            for rv in self._moved:
                self.space.read(rv, point, env)
            new = dict(point)  # same order of keys: the trace relies on it
            if not self._fresh:
                self._refresh(point, dict(env))
            for conditional in self.conditionals:
                for rv in conditional.needs:
                    self.space.read(rv, point, env)
                conditional.move(env, new, self.rng)
            for rv in self._moved:
                self.space.write(rv, new, env)
        return new, [{}]

    def _refresh(self, point: dict[str, Any], env: dict[Variable, Any]) -> None:
        """Compute what depends on data and shapes alone."""
        for conditional in self.conditionals:
            for rv in conditional.inputs:
                self.space.read(rv, point, env)
            conditional.refresh(env)
        self._fresh = True


class GammaPrecisionGibbs(_GibbsStep):
    """Exact conditional draws of precisions, variances and scales of Normal and Gamma variables, one after the other.

    Parameters
    ----------
    vars : variable, name or list
        Positive variables with Gamma, Exponential, chi-squared, inverse-gamma, half-Cauchy, half-Student, half-normal,
        log-normal or Weibull priors. All that depends on them must be Normal variables, observed or not, whose
        standard deviations are powers of them, element by element: precisions, variances, scales; or Gamma,
        Exponential and inverse-gamma variables of fixed shape whose rates are: the mean of several precisions.
    model, rng, blocked
        As for PyMC's own steps.

    Notes
    -----
    With n standardised residuals of sum of squares S to an element: τ | r ~ Gamma(a + n/2, b + S/2) for a Gamma(a, b)
    precision, v | r ~ InvGamma(a + n/2, b + S/2) for an InvGamma(a, b) variance. A Gamma variable of shape a is worth
    2a such residuals. A half-Student scale is moved by its auxiliary variable
    (`bayessel.samplers.conditionals.log_half_student_scale`), which is drawn and dropped. Under the other priors, or
    where a prior does not go with the role, the conditional of log x is log-concave and drawn by rejection, exactly too
    (`bayessel.samplers.log_scales`).

    Examples
    --------
    >>> import pymc as pm
    >>> with pm.Model():
    ...     tau = pm.Gamma("tau", 2.0, 1.0)
    ...     pm.Normal("y", 0.0, tau=tau, observed=[0.5, -1.0, 2.0])
    ...     trace = pm.sample(20, tune=5, chains=1, step=GammaPrecisionGibbs(tau), random_seed=1, progressbar=False)
    y
    >>> bool((trace.posterior["tau"] > 0.0).all())
    True
    """

    name = "gamma_precision_gibbs"
    _conditional = ScaleConditional
    _joint = False


class GaussianWeightsGibbs(_GibbsStep):
    """One exact joint draw of Normal variables from their conditional given everything else.

    Parameters
    ----------
    vars : variable, name or list
        Normal variables. All that depends on them must be Normal variables, observed or not, with means that are
        affine in all of `vars` jointly and standard deviations free of them.
    model, rng, blocked
        As for PyMC's own steps.

    Notes
    -----
    The linear map is read from the graph. Where it does not depend on other random variables it is kept, with its Gram
    matrix; where moreover the prior precisions keep constant ratios it is diagonalised once, and a draw costs O(M²)
    for M weights, else O(M³).

    Examples
    --------
    >>> import pymc as pm
    >>> with pm.Model():
    ...     w = pm.Normal("w", 0.0, 1.0, shape=2)
    ...     pm.Normal("y", w[0] + w[1] * np.arange(3.0), 0.5, observed=[0.1, 1.2, 1.9])
    ...     trace = pm.sample(20, tune=5, chains=1, step=GaussianWeightsGibbs(w), random_seed=1, progressbar=False)
    y
    >>> trace.posterior["w"].shape
    (1, 20, 2)
    """

    name = "gaussian_weights_gibbs"
    _conditional: ClassVar = GaussianBlock
    _joint = True


def _sparse(graph: ModelGraph, members: list[Variable]) -> SparseBlock | SparseMarginal:
    """The block with its weights, or without where they are gone from the model."""
    has_weights = any(distribution_name(x) in ("Normal", "Flat") for x in members)
    return SparseBlock(graph, members) if has_weights else SparseMarginal(graph, members)


class SparseWeightsGibbs(_GibbsStep):
    """Precisions that belong to one weight each, drawn with all weights integrated out, and then the weights.

    Parameters
    ----------
    vars : variable, name or list
        Normal variables, the weights; their scales, each element of which belongs to one weight; and, unless it is
        known or left to another step, the scale of the noise. The priors of scales are those of
        `GammaPrecisionGibbs`. One variable must depend on the weights, Normal with a mean that is affine in them with
        known coefficients. Weights with other prior precisions may stand beside them. Of
        ``bs.models.rvm(..., collapsed=True)``, from which the weights are gone, alpha and beta.
    model, rng, blocked
        As for PyMC's own steps.

    Notes
    -----
    The relevance vector machine is such a model. Given its weight a precision hardly moves, and the weight hardly given
    its precision; where both have mass, a chain of such draws goes from one to the other rarely. With the weights
    integrated out each precision is drawn from a density of one variable, with all its modes (Tipping and Faul 2003,
    AISTATS: the same density is maximised there). The noise follows, with the weights integrated out too. A draw costs
    O(M³) for M weights: 4 ms for 200.
    """

    name = "sparse_weights_gibbs"
    _conditional: ClassVar = staticmethod(_sparse)
    _joint = True


class PolyaGammaGibbs(GaussianWeightsGibbs):
    """One joint draw of Normal variables in which log odds of labels, or logarithms of mean counts, are affine.

    Parameters
    ----------
    vars : variable, name or list
        Normal variables, all the weights of a regression together. All that depends on them must be Bernoulli variables
        given by ``logit_p``, or negative-binomial ones given by ``mu`` = e^(…), affine in them with coefficients that
        are data, or Normal variables as for `GaussianWeightsGibbs`. The dispersion of counts may be another variable.
    model, rng, blocked
        As for PyMC's own steps.

    Notes
    -----
    A draw costs one Pólya-Gamma variable per row and a Cholesky factor of the size of the weights; nothing is tuned.
    Those of labels are exact, those of counts a sum of gamma variables of which the smallest are drawn as one.
    Successive draws are correlated, most where the classes are far apart or very unequal in number (Polson, Scott and
    Windle 2013, JASA 108, 1339).
    """

    name = "polya_gamma_gibbs"
    _conditional: ClassVar = LogisticBlock
