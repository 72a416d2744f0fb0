r"""Exact Gibbs draws of the weights of a logistic regression, by Pólya-Gamma variables (Polson, Scott and Windle 2013).

With :math:`\omega_n \sim PG(1, \eta_n)` to the log odds :math:`\eta_n` of each row the weights are Gaussian:
:math:`p(w | \omega) \propto p(w) \prod_n \exp(-\tfrac12 \omega_n (\eta_n - \kappa_n / \omega_n)^2)`,
:math:`\kappa_n = y_n - \tfrac12` (their section 3.1). The ω are drawn anew in every step and dropped.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor.scalar as ps
from pytensor.graph.basic import Variable
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.random.basic import BernoulliRV
from scipy.special import log_ndtr

from bayessel._check import FloatArray
from bayessel.samplers.conditionals import Likelihood, gaussian
from bayessel.samplers.conjugacy.affine import MAX_ENTRIES, affine, check_line, check_moved, design
from bayessel.samplers.conjugacy.graph import NotConjugateError, precision
from bayessel.samplers.gibbs import _GibbsStep

#: where the two proposals of Devroye's sampler meet
_MEET = 0.64


def polya_gamma(c: Any, rng: np.random.Generator) -> FloatArray:
    r"""Draw PG(1, c), exactly: a quarter of Jacobi's J*(1, \|c\|/2), by an alternating series (section 4 of the paper).

    The mean is tanh(c/2)/(2c), the Laplace transform E exp(-ωs) = cosh(c/2)/cosh(√(c²/4 + s/2)).
    """
    z = 0.5 * np.abs(np.asarray(c, dtype=np.float64)).ravel()
    if not np.isfinite(z).all():
        raise ValueError(f"c must be finite log odds, got {np.asarray(c).ravel()[~np.isfinite(z)][0]}")
    result = np.empty(len(z))
    left = np.arange(len(z))
    while len(left):
        zl = z[left]
        x = _proposal(zl, rng)
        accepted = _accept(x, rng.uniform(size=len(x)))
        result[left[accepted]] = 0.25 * x[accepted]
        left = left[~accepted]
    return result.reshape(np.shape(c))


def _proposal(z: FloatArray, rng: np.random.Generator) -> FloatArray:
    """An exponential beyond the meeting point, an inverse Gaussian below it."""
    rate = 0.125 * np.pi**2 + 0.5 * z**2
    log_tail = np.log(0.5 * np.pi / rate) - rate * _MEET
    root = 1.0 / np.sqrt(_MEET)
    # 2 exp(-z) times the distribution function of the inverse Gaussian, mean 1/z, at the meeting point
    log_head = np.log(2.0) + np.logaddexp(
        -z + log_ndtr(root * (_MEET * z - 1.0)), z + log_ndtr(-root * (_MEET * z + 1.0))
    )
    tail = rng.uniform(size=len(z)) < 1.0 / (1.0 + np.exp(np.clip(log_head - log_tail, -700.0, 700.0)))
    x = _MEET + rng.standard_exponential(len(z)) / rate
    x[~tail] = _truncated_inverse_gaussian(z[~tail], rng)
    return x


def _truncated_inverse_gaussian(z: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Inverse Gaussian of mean 1/z and shape 1, below the meeting point."""
    x = np.empty(len(z))
    left = np.arange(len(z))
    while len(left):
        zl = z[left]
        small = zl * _MEET < 1.0  # the mean lies beyond
        found, good = np.empty(len(left)), np.zeros(len(left), dtype=bool)
        n = int(small.sum())
        first, second = rng.standard_exponential(n), rng.standard_exponential(n)
        candidate = _MEET / (1.0 + _MEET * first) ** 2
        found[small] = candidate
        good[small] = (first**2 <= 2.0 * second / _MEET) & (
            rng.uniform(size=n) <= np.exp(-0.5 * zl[small] ** 2 * candidate)
        )
        candidate = rng.wald(1.0 / zl[~small], 1.0)
        found[~small] = candidate
        good[~small] = candidate <= _MEET
        x[left[good]] = found[good]
        left = left[~good]
    return x


def _accept(x: FloatArray, u: FloatArray) -> Any:
    """Whether u a_0(x) is below the alternating sum Σ (-1)^n a_n(x), whose partial sums enclose it."""
    total = _coefficient(0, x)
    level = u * total
    accepted, undecided = np.zeros(len(x), dtype=bool), np.ones(len(x), dtype=bool)
    n = 0
    while undecided.any():
        n += 1
        term = _coefficient(n, x)
        if n % 2:
            total = total - term
            accepted |= undecided & (level <= total)
            undecided &= level > total
        else:
            total = total + term
            undecided &= level <= total
    return accepted


def _coefficient(n: int, x: FloatArray) -> FloatArray:
    k = n + 0.5
    head = np.exp(1.5 * np.log(2.0 / (np.pi * x)) - 2.0 * k**2 / x)
    tail = np.exp(-0.5 * k**2 * np.pi**2 * x)
    return np.asarray(np.pi * k * np.where(x <= _MEET, head, tail))


class PolyaGammaGibbs(_GibbsStep):
    """One joint draw of Normal variables in whose values the log odds of Bernoulli variables are affine.

    Parameters
    ----------
    vars : variable, name or list
        Normal variables, all the weights of a logistic regression together. All that depends on them must be Bernoulli
        variables given by ``logit_p``, affine in them with coefficients that are data.
    model : pymc.Model, optional
        Default: the model on the stack.
    rng : int or numpy.random.Generator, optional
        Overruled by ``pm.sample(random_seed=...)``.

    Notes
    -----
    A draw costs one Pólya-Gamma variable per row and a Cholesky factor of the size of the weights; nothing is tuned.
    Successive draws are correlated, most where the classes are far apart or very unequal in number.
    """

    name = "polya_gamma_gibbs"

    def _find(self) -> None:
        try:
            self._read_structure()
        except NotConjugateError as reason:
            raise self._refuse(self.targets[0], reason) from reason

    def _read_structure(self) -> None:
        graph, block = self.graph, frozenset(self.targets)
        outputs: list[Variable] = []
        for x in self.targets:
            mean, sd = graph.normal(x)
            check_line(graph, x)
            graph.check_free_of_potentials(x)
            if graph.roots([mean, sd]) & block:
                raise NotConjugateError(f"the prior of {x.name} depends on the block itself")
            outputs += [mean, precision(sd)]
        children = list(dict.fromkeys(c for x in self.targets for c in graph.children(x)))
        if not children:
            raise NotConjugateError("nothing depends on it")
        self._linear = []
        for child in children:
            log_odds = _log_odds(child)
            part = affine(graph, log_odds, block)
            if part is None or part.coefficients:
                raise NotConjugateError(f"its coefficients in the log odds of {child.name} are no data")
            self._linear.append(graph.program([part.linear]))
            outputs += [graph.value(child), log_odds]
        self._program = graph.program(outputs)
        needs = [v for p in (self._program, *self._linear) for v in p.inputs]
        self._others = [v for v in dict.fromkeys(needs) if v not in block]
        check_moved(graph, self.targets)

    def _refresh(self, point: dict[str, Any], env: dict[Variable, Any]) -> None:
        for rv in [*self.targets, *self._others]:
            self.space.read(rv, point, env)
        self._shapes = [np.shape(env[x]) for x in self.targets]
        sizes = [int(np.prod(shape)) for shape in self._shapes]
        self._ends = np.cumsum(sizes)
        self._program.refresh()
        values = self._program(env)
        self._designs = []
        for k, linear in enumerate(self._linear):
            linear.refresh()
            out = np.shape(values[2 * len(self.targets) + 2 * k])
            if int(np.prod(out)) * int(self._ends[-1]) > MAX_ENTRIES:
                raise ValueError(f"a design of {int(np.prod(out))} × {self._ends[-1]} entries is too large to keep")
            self._designs.append(Likelihood(design(linear, self.targets, self._shapes, out, env)))

    def _draw(self, point: dict[str, Any], env: dict[Variable, Any], new: dict[str, Any]) -> None:
        for rv in [*self.targets, *self._others]:
            self.space.read(rv, point, env)
        values = self._program(env)
        n = len(self.targets)
        parts = range(n)
        m, d, x = (
            np.concatenate(
                [np.broadcast_to(take(k), shape).ravel() for k, shape in zip(parts, self._shapes, strict=True)]
            )
            for take in (lambda k: values[2 * k], lambda k: values[2 * k + 1], lambda k: env[self.targets[k]])
        )
        factors: list[tuple[Likelihood, float | FloatArray, FloatArray]] = []
        for k, likelihood in enumerate(self._designs):
            y, log_odds = values[2 * n + 2 * k : 2 * n + 2 * k + 2]
            eta = np.broadcast_to(log_odds, np.shape(y)).ravel()
            offset = eta - likelihood.A @ x
            omega = polya_gamma(eta, self.rng)
            factors.append((likelihood, omega, (np.ravel(y) - 0.5) / omega - offset))
        drawn = gaussian(factors, d, m, self.rng)
        pieces = np.split(drawn, self._ends[:-1])
        env.update({v: p.reshape(s) for v, p, s in zip(self.targets, pieces, self._shapes, strict=True)})
        for rv in self.targets:
            self.space.write(rv, new, env)


def _log_odds(child: Variable) -> Variable:
    """The η of a Bernoulli variable with p = σ(η)."""
    if not isinstance(child.owner.op, BernoulliRV):
        raise NotConjugateError(f"{child.name} is not Bernoulli")
    (p,) = child.owner.op.dist_params(child.owner)
    node = p.owner
    if node is None or not isinstance(node.op, Elemwise) or not isinstance(node.op.scalar_op, ps.Sigmoid):
        raise NotConjugateError(f"{child.name} is not given by its log odds, logit_p")
    log_odds: Variable = node.inputs[0]
    return log_odds
