"""Prequential terms in ArviZ's container for pointwise predictive densities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from arviz_stats import ELPDData

from bayessel._check import FloatArray
from bayessel.criteria.prequential import PREQUENTIAL


@dataclass(kw_only=True, repr=False)
class ELPDDataPrequential(ELPDData):
    """Log densities of rows given those before; `arviz.compare` takes results of this kind together alone.

    The fields are those of ArviZ: ``elpd`` is minus the code length, ``se`` the spread of its terms over rows (and not
    the Monte Carlo error), ``elpd_i`` the terms by row of the data; there is no effective number of parameters ``p``.
    """

    @property
    def kind(self) -> str:
        """Name of the estimator, "prequential"."""
        return PREQUENTIAL.name


def prequential_elpd(
    terms: FloatArray, pareto_k: FloatArray, good_k: float, n_draws: int, warning: bool
) -> ELPDDataPrequential:
    """Terms by row of the data, (N,), as a container."""
    import xarray as xr

    n = len(terms)
    return ELPDDataPrequential(
        elpd=float(terms.sum()),
        se=float(np.sqrt(n * terms.var())),
        p=float("nan"),
        n_samples=n_draws,
        n_data_points=n,
        scale="log",
        warning=warning,
        good_k=good_k,
        elpd_i=xr.DataArray(terms, dims=["row"], coords={"row": np.arange(n)}, name="elpd_i"),
        pareto_k=xr.DataArray(pareto_k, dims=["row"], coords={"row": np.arange(n)}, name="pareto_k"),
    )
