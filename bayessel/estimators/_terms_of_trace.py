"""The trace of an estimator, with the log density of each row in units of the data, for `arviz.loo`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayessel._numerics import few_threads
from bayessel.estimators._chains import Chains
from bayessel.estimators._data_units import FitInDataUnits

if TYPE_CHECKING:
    import xarray as xr


def trace_with_terms(chains: Chains | None, fit: FitInDataUnits) -> xr.DataTree | None:
    """Draws of the chains; the terms, which no draw needs, are made when the trace is first asked for.

    They are densities of the targets of a row in units of the data, given parameters in standardised units. The trace
    gets the name of these targets, as that of the fit.
    """
    if chains is None or chains.trace is None:
        return None
    trace: xr.DataTree = chains.trace
    if chains.n_draws and "log_likelihood" not in trace:
        import xarray as xr

        with few_threads(fit.n_rows**2):
            terms = fit.inner.log_likelihood() + fit.log_units / fit.n_rows
        posterior = trace["posterior"]
        coords = {name: np.asarray(posterior[name]) for name in ("chain", "draw")} | {"row": np.arange(fit.n_rows)}
        values = terms.reshape(len(coords["chain"]), len(coords["draw"]), -1)
        units = "log probability of the labels" if fit.predicts_labels else "log density in units of the data"
        said = {"terms": fit.inner.terms, "units": units}
        group = xr.Dataset({"t": (("chain", "draw", "row"), values, said)}, coords=coords, attrs=said)
        trace["log_likelihood"] = xr.DataTree(group)
        trace.attrs["target_fingerprint"] = fit.target_fingerprint
    return trace
