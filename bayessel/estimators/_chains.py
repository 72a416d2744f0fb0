"""Chains that an estimator carries with it: sampled, stopped on time, gone on with later, also after a pickle."""

from __future__ import annotations

import io
import tarfile
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

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
    import arviz_base
    import arviz_stats

    if theta.shape[1] < FEWEST:
        return np.inf, 0.0
    data = arviz_base.dict_to_dataset({"theta": theta})
    rhat, size = arviz_stats.rhat(data)["theta"], arviz_stats.ess(data)["theta"]
    return float(rhat.max()), float(size.min())
