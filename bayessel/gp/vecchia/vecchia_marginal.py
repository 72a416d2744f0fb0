r"""The log marginal likelihood of a Gaussian process of many rows by Vecchia's approximation, and its gradient.

.. math::
    \log p(t) \approx \log N(t \mid 0, FF^T + C), \qquad C^{-1} \approx U^TU

F holds the features of a bias and a plane, scaled by their prior deviations, and with M inducing inputs the columns
L⁻¹k(Z, x), K_ZZ = LLᵀ. C is the covariance of the rest, noise on its diagonal (the response form), each row of it given
at most m nearest earlier rows: row i of U is bᵢ/√vᵢ. It is the density of a normal distribution, so an evidence like
any other. With whitened columns w = Ut, W = UF and A = I + WᵀW, β = A⁻¹Wᵀw, e = w − Wβ

.. math:: \log p = -\tfrac n2\log 2\pi - \tfrac12\sum\log v_i - \tfrac12(e^Te + \beta^T\beta) - \tfrac12\log|A|

(Vecchia 1988; Katzfuss and Guinness 2021; with inducing inputs Gyger, Furrer and Sigrist 2024).
"""

from __future__ import annotations

from typing import Any, Self, override

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike
from scipy.linalg import lapack
from scipy.sparse import csr_array

from bayessel._check import FloatArray, IntArray, as_count
from bayessel.covariance import Covariance
from bayessel.fit import Status
from bayessel.gp.marginal import SearchedProcess
from bayessel.gp.vecchia.covariance_terms import terms_of
from bayessel.gp.vecchia.global_part import GlobalPart
from bayessel.gp.vecchia.neighbours import NearestRows, Neighbours, earlier_neighbours
from bayessel.gp.vecchia.ordering import random_order
from bayessel.gp.vecchia.row_factors import RowFactors, solved, sum_of_products
from bayessel.work.blocks import over_blocks

#: neighbours that a row is conditioned on
NEIGHBOURS = 30
#: rows on which the expected information is computed: it is a curvature for a search, to some per cent
INFORMED_ROWS = 4096
#: rows on which one number of neighbours is compared with another
COMPARED_ROWS = 1000


class VecchiaMarginal(SearchedProcess):
    """The approximate log marginal likelihood of targets t at inputs X, a function of θ.

    Parameters
    ----------
    X, t, covariance
        As of `bayessel.gp.Marginal`; stationary, bias, linear and noise terms.
    neighbours : int
        m; with m ≥ n − 1 and no inducing inputs it is exact.
    order : (n,) array of int or Generator, optional
        Rows in the order of conditioning, or what draws a random one that does not depend on how they were given.
    inducing : (M, inputs) array, optional
        Inducing inputs: then C is what they leave of the covariance.
    renewed_at : (k,) array, optional
        θ at whose lengths neighbours are looked for; default the covariance's own start.
    threads : int, optional
        Default: as many as there are cores. The numbers are the same for any.

    Notes
    -----
    Work is O(n m³), with inducing inputs O(n m² M); memory O(n m + n M).
    """

    def __init__(
        self,
        X: ArrayLike,
        t: ArrayLike,
        covariance: Covariance | None = None,
        *,
        neighbours: int = NEIGHBOURS,
        order: IntArray | np.random.Generator | None = None,
        inducing: FloatArray | None = None,
        renewed_at: FloatArray | None = None,
        threads: int | None = None,
    ) -> None:
        super().__init__(X, t, covariance)
        self.m, self.threads = as_count(neighbours, "neighbours"), threads
        self.terms = terms_of(self.covariance, self.X.shape[1])
        drawn = np.random.default_rng(0) if order is None else order
        self.order = random_order(self.X, self.t, drawn) if isinstance(drawn, np.random.Generator) else drawn
        self.rows = np.ascontiguousarray(self.X[self.order])
        self.targets = self.t[self.order]
        self.part_of_all = GlobalPart(self.covariance, self.terms, self.rows, inducing)
        self.renewed_at = self.start() if renewed_at is None else np.array(renewed_at, dtype=np.float64)
        self._neighbours: Neighbours | None = None
        self._last: tuple[FloatArray, RowFactors] | None = None

    @property
    def inducing(self) -> FloatArray | None:
        """Inducing inputs, (M, inputs), if there are any."""
        return self.part_of_all.inducing

    @override
    def part(self, rows: npt.NDArray[np.intp]) -> Self:
        """The process on some rows, neighbours at the covariance's start."""
        return type(self)(
            self.X[rows],
            self.t[rows],
            self.covariance,
            neighbours=self.m,
            inducing=self.inducing,
            threads=self.threads,
        )

    def changed(self, *, inducing: FloatArray | None = None, renewed_at: FloatArray | None = None) -> VecchiaMarginal:
        """The same rows in the same order with these inducing inputs, neighbours by the lengths at this θ."""
        return VecchiaMarginal(
            self.X,
            self.t,
            self.covariance,
            neighbours=self.m,
            order=self.order,
            inducing=inducing,
            renewed_at=self.renewed_at if renewed_at is None else renewed_at,
            threads=self.threads,
        )

    def first(self, count: int) -> VecchiaMarginal:
        """The first rows of the order: the first terms of the same sum."""
        chosen = self.order[:count]
        return VecchiaMarginal(
            self.X[chosen],
            self.t[chosen],
            self.covariance,
            neighbours=self.m,
            order=np.arange(len(chosen)),
            inducing=self.inducing,
            renewed_at=self.renewed_at,
            threads=self.threads,
        )

    # ------------------------------------------------------------------ neighbours

    def scaled(self, theta: FloatArray, X: FloatArray) -> FloatArray:
        """Places in units of the lengths at θ, where neighbours are looked for."""
        weights = self.covariance.relevance(theta, X.shape[1])
        assert weights is not None
        return np.asarray(X * np.sqrt(weights))

    def renew(self, theta: FloatArray) -> None:
        """Choose neighbours by the lengths at θ."""
        self.renewed_at = np.array(theta, dtype=np.float64)
        self._neighbours, self._last = None, None

    @property
    def neighbours(self) -> Neighbours:
        """The nearest earlier rows of every row, (n, m)."""
        if self._neighbours is None:
            self._neighbours = earlier_neighbours(self.scaled(self.renewed_at, self.rows), self.m)
        return self._neighbours

    @property
    def counts(self) -> IntArray:
        """How many of its neighbours every row has, (n,): the first rows have fewer."""
        return np.minimum(np.arange(len(self.rows)), self.neighbours.shape[1])

    def moved(self, theta: FloatArray) -> float:
        """How far ratios of the lengths at θ are from those that chose the neighbours, as logarithms."""
        one, other = (np.asarray(self.covariance.relevance(at, self.X.shape[1])) for at in (theta, self.renewed_at))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = 0.5 * np.log(one / other)
        # of inputs that are long at both nothing depends on how long they are
        spread = np.ptp(self.X, axis=0) * np.sqrt(np.maximum(one, other))
        ratios = ratios[np.isfinite(ratios) & (spread > 0.01 * spread.max())]
        return float(np.ptp(ratios)) if len(ratios) else 0.0

    # ------------------------------------------------------------------ values

    def factors(self, theta: ArrayLike) -> RowFactors | None:
        """All that the density is made of; None where it cannot be computed in double precision."""
        vector = self.as_theta(theta)
        if self._last is not None and np.array_equal(self._last[0], vector):
            return self._last[1]
        self._last = None
        with np.errstate(all="ignore"):
            found = self._factors(vector)
        if found is not None:
            self._last = vector.copy(), found
        self.status = Status.ILL_CONDITIONED if found is None else Status.CONVERGED
        return found

    def _factors(self, theta: FloatArray) -> RowFactors | None:
        from bayessel.gp.vecchia import compiled_rows

        if not np.isfinite(theta).all():
            return None
        numbers, part = self.terms.at(theta), self.part_of_all.at(theta)
        if part is None or not all(np.isfinite(one).all() for one in numbers[1:]):
            return None
        n, columns = self.neighbours.shape[0], np.column_stack([self.targets, part.F])
        b, v = np.empty((n, self.neighbours.shape[1] + 1)), np.empty(n)
        white = np.empty_like(columns)

        def work(begin: int, end: int) -> bool:
            place = (self.neighbours, self.counts)
            good = compiled_rows.conditional_weights(begin, end, self.rows, *place, numbers, part.V, 0, n, b, v)
            if good:
                compiled_rows.residuals(begin, end, columns, *place, b, 0, white)
                white[begin:end] /= np.sqrt(v[begin:end, None])
            return bool(good)

        if not all(over_blocks(work, n, self.threads)):
            return None
        w, W = white[:, 0], white[:, 1:]
        A = sum_of_products(W, W)
        A.flat[:: len(A) + 1] += 1.0
        L, info = lapack.dpotrf(A, lower=1) if len(A) else (A, 0)
        if info or not np.isfinite(w).all():
            return None
        beta = solved(L, sum_of_products(W, w[:, None])[:, 0])
        found = RowFactors(numbers, part, b, v, w, W, L, beta, w - W @ beta)
        return found if np.isfinite(found.value) else None

    @override
    def value(self, theta: ArrayLike) -> float:
        """log p(t|θ) in nats; −inf where a covariance is not positive definite in double precision."""
        found = self.factors(theta)
        return -np.inf if found is None else found.value

    @override
    def value_and_gradient(self, theta: ArrayLike) -> tuple[float, FloatArray]:
        """log p(t|θ) and its derivatives, the neighbours held; (−inf, zeros) where `value` is −inf."""
        theta = self.as_theta(theta)
        found, out = self.factors(theta), np.zeros(self.size)
        if found is None:
            return -np.inf, out
        with np.errstate(all="ignore"):
            self._add_gradient(theta, found, out)
        return found.value, out

    def _add_gradient(self, theta: FloatArray, found: RowFactors, out: FloatArray) -> None:
        from bayessel.gp.vecchia import compiled_rows

        # derivatives of the log density by the whitened columns
        P = np.empty((len(found.v), 1 + found.W.shape[1]))
        P[:, 0] = -found.e
        P[:, 1:] = np.outer(found.e, found.beta)
        if found.W.shape[1]:
            P[:, 1:] -= solved(found.L, found.W.T).T
        columns = np.column_stack([self.targets, found.part.F])
        white = np.column_stack([found.w, found.W])
        M = found.part.V.shape[1]
        H = np.zeros(found.b.shape if M else (0, 0))

        def work(begin: int, end: int) -> tuple[Any, ...]:
            shape = found.numbers.root.shape
            by_v, by_w, by_alpha = np.zeros(shape[0]), np.zeros(shape), np.zeros(shape[0])
            by_noise = compiled_rows.gradients(
                begin,
                end,
                self.rows,
                self.neighbours,
                self.counts,
                found.numbers,
                found.part.V,
                columns,
                white,
                P,
                by_v,
                by_w,
                by_alpha,
                H,
            )
            return by_v, by_w, by_alpha, by_noise

        parts = over_blocks(work, len(found.v), self.threads)
        by_v, by_w, by_alpha, by_noise = (sum(part[k] for part in parts) for k in range(4))
        self.terms.add_gradient(out, by_v, by_w, by_alpha)
        for position in self.terms.noise:
            out[position] += by_noise * np.exp(theta[position]) / found.numbers.noise
        by_features = 0.5 * np.einsum("ij,ij->j", P[:, 1 + M :], found.W[:, M:])
        np.add.at(out, [position for _, position in self.terms.features], by_features)
        if M:
            weights, pulled = self.sparse(found.b), self.sparse(H)
            inner = pulled @ found.part.V
            pull = weights.T @ (P[:, 1 : M + 1] / np.sqrt(found.v)[:, None] - inner)
            pull -= pulled.T @ (np.sqrt(found.v)[:, None] * found.W[:, :M])
            self.part_of_all.pull(theta, found.part, pull, out)

    def information(self, theta: FloatArray) -> FloatArray:
        """The expected information about θ, (k, k), from evenly spread rows: a curvature for searches."""
        from bayessel.gp.vecchia import compiled_rows

        found = self.factors(theta)
        if found is None:
            return np.full((self.size, self.size), np.nan)
        n = len(found.v)
        chosen = np.unique(np.linspace(0, n - 1, min(n, INFORMED_ROWS)).astype(int))
        places = self.terms.positions
        nothing = np.empty((n, 0))

        def work(begin: int, end: int) -> FloatArray:
            part = np.zeros((len(places) + 1, len(places) + 1))
            compiled_rows.information(
                chosen[begin:end], self.rows, self.neighbours, self.counts, found.numbers, nothing, part
            )
            return part

        total = sum(over_blocks(work, len(chosen), self.threads)) * (n / len(chosen))
        total = np.tril(total) + np.tril(total, -1).T
        into = np.zeros((len(places) + 1, self.size))
        for row, place in enumerate(places):
            if place >= 0:
                into[row, place] = 1.0
        for position in self.terms.noise:
            into[-1, position] = np.exp(theta[position]) / found.numbers.noise
        whole = into.T @ total @ into
        M = found.part.V.shape[1]
        inverse = np.diag(solved(found.L, np.eye(len(found.L))))[M:]
        for (_, position), left in zip(self.terms.features, inverse, strict=True):
            whole[position, position] += 0.5 * (1.0 - left) ** 2
        return np.asarray(whole)

    def gain_of_neighbours(self, theta: FloatArray) -> float:
        """Nats a row that twice as many neighbours would gain in expectation, on a sample of the rows.

        Half the mean logarithm of the ratio of the conditional variances: the Kullback-Leibler divergence between the
        two, which needs no targets. Rows at the end of the order are the sample, and are given those before all of it.
        """
        from bayessel.gp.vecchia import compiled_rows

        n, values = len(self.rows), self.terms.at(theta)
        part = self.part_of_all.at(theta)
        sample = min(COMPARED_ROWS, n // 4)
        if part is None or not sample:
            return 0.0
        before, places = n - sample, self.scaled(theta, self.rows)
        near = NearestRows(places[:before])(places[before:], 2 * self.m)
        logs = []
        for m in (self.m, 2 * self.m):
            few = np.ascontiguousarray(near[:, :m])
            counts, b, v = np.full(sample, few.shape[1]), np.empty((sample, few.shape[1] + 1)), np.empty(sample)
            if not compiled_rows.conditional_weights(
                0, sample, self.rows, few, counts, values, part.V, before, n, b, v
            ):
                return np.nan
            logs.append(np.log(v).mean())
        return float(0.5 * (logs[0] - logs[1]))

    def sparse(self, b: FloatArray) -> csr_array:
        """Weights of the neighbours and of the row itself as a matrix, (n, n)."""
        n, m = self.neighbours.shape
        own = np.arange(n, dtype=np.int32)[:, None]
        columns = np.hstack([self.neighbours, own])
        kept = np.column_stack([np.arange(m) < self.counts[:, None], np.ones(n, dtype=bool)])
        ends = np.concatenate([[0], np.cumsum(self.counts + 1)])
        return csr_array((b[kept], columns[kept], ends), shape=(n, n))
