"""Tables of the lengths of a Gaussian process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayessel._check import FloatArray

if TYPE_CHECKING:
    import pandas as pd


def lengths_of_draws(weights: FloatArray) -> pd.DataFrame:
    r"""Medians and central 95 % intervals of the lengths :math:`w^{-1/2}`, from draws of w, (S, m)."""
    import pandas as pd

    m = weights.shape[1]
    table = pd.DataFrame({"weight": np.zeros(m), "length": np.full(m, np.inf)})
    table[["lower", "upper", "std"]] = np.nan
    used = (weights > 0.0).all(axis=0)  # a term may look at some of the inputs only
    lengths = weights[:, used] ** -0.5
    table.loc[used, ["lower", "length", "upper"]] = np.quantile(lengths, [0.025, 0.5, 0.975], axis=0).T
    table.loc[used, "std"] = np.log(lengths).std(axis=0)
    table.loc[used, "weight"] = table.loc[used, "length"] ** -2.0
    return table


def in_units(table: pd.DataFrame, scale: FloatArray, names: Any) -> pd.DataFrame:
    """The table with lengths in units of the inputs beside those without units, a row for each name."""
    import pandas as pd

    table["standardised"] = table["length"]
    for name in ("length", "lower", "upper"):
        table[name] *= scale
    table.index = pd.Index(range(len(table)) if names is None else names, name="input")
    return table[["length", "lower", "upper", "standardised", "weight", "std"]]
