"""Chains that an estimator carries with it: sampled, stopped on time, gone on with later, also after a pickle."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bayessel._check import FloatArray


def run(archive: bytes | None, model: Any, **options: Any) -> tuple[Any, bytes]:
    """`bayessel.sample` in a store that is packed into bytes at the end; the run in `archive` is gone on with."""
    from bayessel.samplers.run._sample import sample

    with TemporaryDirectory(prefix="bayessel-") as name:
        folder = Path(name) / "run"
        if archive is not None:
            with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
                tar.extractall(folder, filter="data")
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
    import arviz_stats
    import numpy as np

    if theta.shape[1] < 4:
        return np.inf, 0.0
    by_name = {"theta": np.asarray(theta)}
    import arviz_base

    data = arviz_base.dict_to_dataset(by_name)
    rhat = np.asarray(arviz_stats.rhat(data)["theta"])
    size = np.asarray(arviz_stats.ess(data)["theta"])
    return float(rhat.max()), float(size.min())
