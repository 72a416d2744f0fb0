"""Chains that an estimator carries with it: sampled, stopped on time, gone on with later, also after a pickle."""

from __future__ import annotations

import io
import tarfile
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy.special import logsumexp

from bayessel._check import FloatArray
from bayessel.errors import SamplingWarning

#: of fewer draws per chain nothing can be said
FEWEST = 4


def run(archive: bytes | None, model: Any, **options: Any) -> tuple[Any, bytes]:
    """`bayessel.sample` in a store that is packed into bytes at the end; the run in `archive` is gone on with."""
    from bayessel.samplers.run._sample import sample

    with TemporaryDirectory(prefix="bayessel-") as name:
        folder = Path(name) / "run"
        if archive is not None:
            with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
                tar.extractall(folder, filter="data")
        with warnings.catch_warnings():
            # that there is no draw yet is said by the estimator, which knows what stands in for them
            warnings.simplefilter("ignore", SamplingWarning)
            trace = sample(model, store=folder, **options)
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=1) as tar:
            tar.add(folder, arcname=".")
    if "advice" in trace.attrs:
        # the folder was ours; the user goes on with continue_fit
        trace.attrs["advice"] = trace.attrs["advice"].replace("run it again with the same store", "call continue_fit()")
    return trace, packed.getvalue()


def kept_draws(draws: int, chains: int, states: int) -> list[int]:
    """Numbers of the draws of each chain that stand for all: evenly spread, the last among them."""
    each = min(draws, -(-states // chains))
    return [draws - 1 - (k * draws) // each for k in range(each)][::-1]


def agreement(theta: FloatArray) -> tuple[float, float]:
    """Largest R-hat and least effective sample size over the parameters, of draws (chains, draws, k)."""
    from arviz_stats.base.array import array_stats

    if theta.shape[1] < FEWEST:
        return np.inf, 0.0
    with np.errstate(divide="ignore", invalid="ignore"):  # chains that never moved
        rhat, size = (measure(theta, chain_axis=0, draw_axis=1) for measure in (array_stats.rhat, array_stats.ess))
    return (float(np.max(rhat)), float(np.min(size))) if np.isfinite(rhat).all() else (np.inf, 0.0)


def left_out_weights(log_densities: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Log weights (S, n) that turn draws from the posterior of all rows into draws without each row.

    They are ∝ 1/p(t_i | t_{−i}, θ), Pareto-smoothed; with them the shapes of their tails, (n,), infinite where nothing
    can be fitted to one.
    """
    from arviz_stats.base.array import array_stats

    weights, shapes = np.empty_like(log_densities), np.full(log_densities.shape[1], np.inf)
    for i, column in enumerate(log_densities.T):
        weights[:, i] = -column - logsumexp(-column)
        if np.ptp(column) > 0.0:
            try:
                weights[:, i], shapes[i] = array_stats.psislw(column)
            except ValueError:  # the largest are all equal: the chains moved too rarely
                continue
    return weights, shapes
