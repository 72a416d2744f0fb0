"""The peers, each as its makers ship it, on standardised inputs where it is no tree; none of them needs bayessel.

A peer is a function of X (N, D), y (N,) and a seed that returns a function of new rows that returns a `Mixture`. Peers
that predict points get a normal distribution: its standard deviation is that of the residuals of five folds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.field.mixtures import Array, Mixture

Predictor = Callable[[Array], Mixture]
FOLDS = 5


class Entrant(NamedTuple):
    """A method: the packages that must be importable, what fits it, and the largest training set it is asked to fit."""

    needs: tuple[str, ...]
    fit: Callable[[Array, Array, int], Predictor]
    most_rows: int = 1024


def constant(X: Array, y: Array, seed: int) -> Predictor:
    """Normal distribution of the training targets, whatever the inputs."""
    mean, std = float(y.mean()), float(y.std(ddof=1))
    return lambda rows: Mixture.normal(np.full(len(rows), mean), std)


def _standardised(model: Any) -> Any:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), model)


def _target_too(model: Any) -> Any:
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.preprocessing import StandardScaler

    return TransformedTargetRegressor(_standardised(model), transformer=StandardScaler())


def _points(make: Callable[[int], Any]) -> Callable[[Array, Array, int], Predictor]:
    """A method that predicts points, with the standard deviation of its residuals in folds."""

    def fit(X: Array, y: Array, seed: int) -> Predictor:
        from sklearn.model_selection import KFold, cross_val_predict

        folds = KFold(FOLDS, shuffle=True, random_state=seed)
        residuals = y - cross_val_predict(make(seed), X, y, cv=folds)
        model, std = make(seed).fit(X, y), float(np.sqrt(np.mean(residuals**2)))
        return lambda rows: Mixture.normal(model.predict(rows), std)

    return fit


def _means_and_stds(make: Callable[[int], Any]) -> Callable[[Array, Array, int], Predictor]:
    """A method of scikit-learn that predicts standard deviations, too."""

    def fit(X: Array, y: Array, seed: int) -> Predictor:
        model = make(seed).fit(X, y)
        return lambda rows: Mixture.normal(*model.predict(rows, return_std=True))

    return fit


def bayesian_ridge(seed: int) -> Any:
    from sklearn.linear_model import BayesianRidge

    return _standardised(BayesianRidge())


def support_vectors(seed: int) -> Any:
    from sklearn.svm import SVR

    return _target_too(SVR())


def forest(seed: int) -> Any:
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(random_state=seed)


def histogram_boosting(seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(random_state=seed)


def lightgbm(seed: int) -> Any:
    from lightgbm import LGBMRegressor

    return LGBMRegressor(random_state=seed, n_jobs=1, verbosity=-1)


def catboost(seed: int) -> Any:
    from catboost import CatBoostRegressor

    return CatBoostRegressor(random_seed=seed, thread_count=1, verbose=False, allow_writing_files=False)


def ngboost(X: Array, y: Array, seed: int) -> Predictor:
    """Boosted natural gradients; normal distributions."""
    from ngboost import NGBRegressor

    model = NGBRegressor(random_state=seed, verbose=False).fit(X, y)

    def predict(rows: Array) -> Mixture:
        there = model.pred_dist(rows)
        return Mixture.normal(there.loc, there.scale)

    return predict


def xgb_distribution(X: Array, y: Array, seed: int) -> Predictor:
    """XGBoost with two outputs, mean and standard deviation."""
    from xgboost_distribution import XGBDistribution

    model = XGBDistribution(distribution="normal", random_state=seed, n_jobs=1).fit(X, y)

    def predict(rows: Array) -> Mixture:
        there = model.predict(rows)
        return Mixture.normal(there.loc, there.scale)

    return predict


def process(X: Array, y: Array, seed: int) -> Predictor:
    """Scikit-learn's Gaussian process: a constant times a Gaussian with a length per input, and noise."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    kernel = ConstantKernel() * RBF(np.ones(X.shape[1])) + WhiteKernel()
    model = _standardised(GaussianProcessRegressor(kernel, normalize_y=True, random_state=seed)).fit(X, y)
    return lambda rows: Mixture.normal(*model.predict(rows, return_std=True))


def bart(X: Array, y: Array, seed: int) -> Predictor:
    """Fifty Bayesian regression trees by PyMC, two chains of 200 draws; a normal distribution per draw."""
    import pymc as pm
    import pymc_bart as pmb

    centre, scale = float(y.mean()), float(y.std())
    with pm.Model() as model:
        rows = pm.Data("rows", X)
        f = pmb.BART("f", rows, (y - centre) / scale, m=50)
        noise = pm.HalfNormal("noise", 1.0)
        pm.Normal("y", f, noise, observed=(y - centre) / scale, shape=f.shape)
        trace = pm.sample(
            200, tune=300, chains=2, cores=1, random_seed=seed, progressbar=False, compute_convergence_checks=False
        )
    stds = trace.posterior["noise"].to_numpy().reshape(-1)

    def predict(new: Array) -> Mixture:
        with model:
            pm.set_data({"rows": new})
            there = pm.sample_posterior_predictive(
                trace, var_names=["f"], predictions=True, random_seed=seed, progressbar=False
            )
        means = there.predictions["f"].to_numpy().reshape(len(stds), -1)
        return Mixture(centre + scale * means, np.broadcast_to(scale * stds[:, None], means.shape))

    return predict


def deep_ensemble(X: Array, y: Array, seed: int) -> Predictor:
    """Bayesian deep ensemble of scikit-learn-contrib, standardised; a normal distribution per draw of each member.

    Its defaults (20 epochs, 10 draws) are for a first look; these are its makers' example's, with half the members.
    """
    from bde import BdeRegressor

    centre, scale = float(y.mean()), float(y.std())
    middle, spread = X.mean(axis=0), np.where(X.std(axis=0) > 0.0, X.std(axis=0), 1.0)
    model = BdeRegressor(
        n_members=4, hidden_layers=[16, 16], seed=seed, epochs=200, patience=10, warmup_steps=5000, n_samples=2000,
        n_thinning=20,
    )  # fmt: skip
    model.fit((X - middle) / spread, (y - centre) / scale)

    def predict(rows: Array) -> Mixture:
        raw = np.asarray(model.predict((rows - middle) / spread, raw=True), dtype=np.float64)
        raw = raw.reshape(-1, len(rows), 2)
        stds = np.logaddexp(0.0, raw[..., 1]) + 1e-6
        return Mixture(centre + scale * raw[..., 0], scale * stds)

    return predict


def tabpfn(X: Array, y: Array, seed: int) -> Predictor:
    """TabPFN, if its weights are at hand: a normal distribution per tenth of its own, from its quantiles."""
    from scipy.stats import norm
    from tabpfn import TabPFNRegressor

    model = TabPFNRegressor(device="cpu", random_state=seed).fit(X, y)

    def predict(rows: Array) -> Mixture:
        low, middle, high = model.predict(rows, output_type="quantiles", quantiles=[0.16, 0.5, 0.84])
        return Mixture.normal(middle, np.maximum(high - low, 1e-9) / (2.0 * norm.ppf(0.84)))

    return predict


_SK = ("sklearn",)
PEERS: dict[str, Entrant] = {
    "constant normal": Entrant((), constant),
    "BayesianRidge": Entrant(_SK, _means_and_stds(bayesian_ridge)),
    "SVR": Entrant(_SK, _points(support_vectors)),
    "random forest": Entrant(_SK, _points(forest)),
    "HistGradientBoosting": Entrant(_SK, _points(histogram_boosting)),
    "LightGBM": Entrant(("lightgbm",), _points(lightgbm)),
    "CatBoost": Entrant(("catboost",), _points(catboost)),
    "NGBoost": Entrant(("ngboost",), ngboost),
    "XGBDistribution": Entrant(("xgboost_distribution",), xgb_distribution),
    "scikit-learn GP": Entrant(_SK, process),
    "BART": Entrant(("pymc", "pymc_bart"), bart),
    "bde": Entrant(("bde",), deep_ensemble),
    "TabPFN": Entrant(("tabpfn",), tabpfn),
}
