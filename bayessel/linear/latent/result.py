"""What engines of linear models with any likelihood return: a mixture of Laplace approximations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular
from scipy.special import logsumexp

from bayessel._check import FloatArray
from bayessel.count_prediction import CountPrediction
from bayessel.fit import Evidence, Fit, LeaveOneOut, Status
from bayessel.likelihoods import Likelihood
from bayessel.linear.columns.fit import in_use
from bayessel.linear.latent.laplace import LaplaceMode
from bayessel.prediction import ClassPrediction, Prediction


@dataclass(frozen=True, eq=False)
class LatentPart:
    """A normal distribution of the weights at given hyperparameters.

    Attributes
    ----------
    log_weight : float
        Logarithm of its share.
    scales : (k,) array
        What columns are multiplied by.
    z : (k,) array
        The mode.
    root : (k, k) array
        Lower triangular factor of the precision matrix of z.
    phi : array
        Parameters of the likelihood.
    cavity_means, cavity_variances : (N,) arrays
        Of f at each row fitted, from the other rows.
    """

    log_weight: float
    scales: FloatArray
    z: FloatArray
    root: FloatArray = field(repr=False)
    phi: FloatArray
    cavity_means: FloatArray = field(repr=False)
    cavity_variances: FloatArray = field(repr=False)

    @classmethod
    def of(cls, mode: LaplaceMode, scales: FloatArray, log_weight: float = 0.0) -> LatentPart:
        """From the mode of columns that were multiplied by `scales`."""
        return cls(log_weight, scales, mode.z, mode.root, mode.phi, *mode.cavity())

    def latent(self, columns: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Means and variances of f, (n,) each, from columns (n, k)."""
        rows = columns * self.scales
        away = solve_triangular(self.root, rows.T, lower=True, check_finite=False)
        return rows @ self.z, np.einsum("kn,kn->n", away, away)


@dataclass(frozen=True, eq=False)
class LatentOptimum:
    """An optimum of the evidence: functions in use, and the log evidence in nats."""

    basis: npt.NDArray[np.intp]
    log_evidence: float


@dataclass(frozen=True, eq=False, kw_only=True)
class LatentFit(Fit):
    """A linear model f = Φw + b seen through a likelihood, hyperparameters at their best or summed over.

    Attributes
    ----------
    likelihood : Likelihood
    n_candidates : int
        Columns on offer, the bias excluded.
    basis : (M,) int array
        Columns in use, ascending.
    coef, intercept : (M,) array, float
        Weights of the columns in use at the most probable hyperparameters, and the bias there.
    alpha : (M,) array
        Precisions of the weights there.
    phi : array
        Parameters of the likelihood.
    gamma : float
        Well-determined parameters there, the bias among them.
    parts : tuple of LatentPart
        One for each value of the hyperparameters that is summed over.
    base : (M, k) array
        From columns in use to those of the parts.
    null_log_evidence : float
        Of the bias alone.
    target : (N,) array
    count : (N,) array or None
        How often each row counts.
    optima : tuple of LatentOptimum
        Ends of the searches, best first.

    Examples
    --------
    >>> from bayessel.linear.latent import fit_latent
    >>> rng = np.random.default_rng(0)
    >>> Phi = rng.normal(size=(100, 2))
    >>> fit = fit_latent(Phi, rng.poisson(np.exp(0.5 + Phi[:, 0])), "poisson")
    >>> fit.evidence.kind, bool(abs(fit.coef[0] - 1.0) < 0.3), fit.predict([[0.0, 0.0]]).mean.shape
    ('laplace', True, (1,))
    """

    likelihood: Likelihood
    evidence: Evidence
    n_rows: int
    n_candidates: int
    basis: npt.NDArray[np.intp]
    coef: FloatArray
    intercept: float
    alpha: FloatArray
    phi: FloatArray
    gamma: float
    parts: tuple[LatentPart, ...] = field(repr=False)
    base: FloatArray = field(repr=False)
    bias: bool
    null_log_evidence: float
    target: FloatArray = field(repr=False)
    count: FloatArray | None = field(repr=False)
    status: Status
    notes: tuple[Status, ...]
    optima: tuple[LatentOptimum, ...] = field(repr=False)
    history: tuple[Mapping[str, object], ...] = field(repr=False)
    seconds: float
    fingerprint: str = field(repr=False)
    target_fingerprint: str = field(repr=False)

    @property
    def n_basis(self) -> int:
        """Number of functions in use, the bias excluded."""
        return len(self.basis)

    @property
    def predicts_labels(self) -> bool:
        """Whether targets are labels."""
        return self.likelihood.labels

    @property
    def details(self) -> tuple[str, ...]:
        """How many functions are in use, and how many parameters the rows determine."""
        return (
            f"{self.n_basis} of {self.n_candidates} functions, {self.gamma:.1f} well-determined parameters, likelihood "
            f"{self.likelihood.name}",
        )

    def latent(self, rows: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Means and variances of f at new rows under each part, (S, n) each; rows as for `predict`."""
        body = np.asarray(in_use(rows, self.basis, self.n_candidates)) @ self.base
        columns = np.hstack([body, np.ones((len(body), 1))]) if self.bias else body
        means, variances = zip(*(part.latent(columns) for part in self.parts), strict=True)
        return np.array(means), np.array(variances)

    def predict(self, rows: npt.ArrayLike) -> Prediction | ClassPrediction | CountPrediction:
        """Predictive distributions at new rows, from all columns, (n, P), or, if fewer, from those in use, (n, M)."""
        return self._mixed(*self.latent(rows))

    def _left_out(self, part: LatentPart) -> FloatArray:
        """Log densities of the rows under their cavities in one part."""
        variances = np.maximum(part.cavity_variances, 1e-300)
        if self.likelihood.labels:
            there = self.likelihood.predict(part.cavity_means, variances, part.phi)
            assert isinstance(there, ClassPrediction)
            own = there.probabilities[np.arange(len(self.target)), self.target.astype(int)]
            return np.asarray(np.log(np.maximum(own, 1e-300)))
        return np.asarray(self.likelihood.tilted(self.target, part.cavity_means, variances, part.phi).log_z)

    def _mixed(
        self, means: FloatArray, variances: FloatArray, log_weights: FloatArray | None = None
    ) -> Prediction | ClassPrediction | CountPrediction:
        """Predictions of the parts together, from means and variances (S, n); log weights (S,), or (S, n) of labels."""
        logs = np.array([part.log_weight for part in self.parts]) if log_weights is None else log_weights
        if not self.likelihood.labels and len(self.parts) == 1:
            return self.likelihood.predict(means[0], variances[0], self.parts[0].phi)
        each = [
            self.likelihood.predict(mean, variance, part.phi)
            for mean, variance, part in zip(means, variances, self.parts, strict=True)
        ]
        first = each[0]
        if isinstance(first, ClassPrediction):
            weights = np.exp(logs).reshape(len(each), -1, 1)
            probabilities = sum(w * one.mean for w, one in zip(weights, each, strict=True))
            return ClassPrediction(first.classes, probabilities / np.sum(probabilities, axis=1, keepdims=True))
        if isinstance(first, CountPrediction):
            dispersions = np.concatenate([one.dispersions for one in each if isinstance(one, CountPrediction)])
            return CountPrediction(means, variances, dispersions, logs)
        return Prediction.mixture([one for one in each if isinstance(one, Prediction)], np.exp(logs))

    def leave_one_out(self) -> LeaveOneOut:
        r"""Each row predicted from the others, its own normal site taken out of each part.

        A row's density is :math:`1/\sum_k w_k/p_k`, since hyperparameters are weighed without the row too. Of a label
        the errors are t − p and the variances p(1 − p). A row that counts several times is left out as a whole.
        """
        each = np.array([self._left_out(part) for part in self.parts])
        logs = np.array([part.log_weight for part in self.parts])[:, None]
        total = -logsumexp(logs - each, axis=0)
        if self.likelihood.labels:
            p = np.where(self.target > 0.5, np.exp(total), -np.expm1(total))
            return LeaveOneOut(self.target - p, np.maximum(p * (1.0 - p), 1e-300), total)
        means = np.array([part.cavity_means for part in self.parts])
        variances = np.array([part.cavity_variances for part in self.parts])
        there = self._mixed(means, variances)
        if isinstance(there, Prediction):
            return LeaveOneOut.of(_weighed(there, logs - each + total, len(self.parts)), self.target)
        assert isinstance(there, CountPrediction)
        return LeaveOneOut(self.target - there.mean, there.variance, total)


def _weighed(there: Prediction, logs: FloatArray, parts: int) -> Prediction:
    """A mixture of parts with other log weights for each row, (S, n)."""
    if parts == 1:
        return there
    inside = np.zeros_like(there.means) if there.log_weights is None else np.asarray(there.log_weights)
    each = len(there.means) // parts
    inside = inside.reshape(parts, each, -1)
    inside = inside - logsumexp(inside, axis=1, keepdims=True)
    return Prediction(
        there.means, there.variances, (inside + logs[:, None]).reshape(there.means.shape), there.function_variances
    )
