"""The public originals: DELVE's data sets as OpenML keeps them, fetched once and cached by scikit-learn.

OpenML's copies come from L. Torgo's collection: the rows are DELVE's, their order need not be, so instances are not
those of the published studies. Terms of use are those of each data set; DELVE's families are for non-commercial use.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayessel._check import one_of
from bayessel.diagnostics.delve._task import Attribute, Dataset, delve_attributes


class Original(NamedTuple):
    """Name and version on OpenML, the target's column, cases, and what is known of it."""

    name: str
    version: int
    target: str
    cases: int
    attributes: dict[str, Attribute]


ORIGINALS = {
    "kin-8nm": Original("kin8nm", 1, "y", 8192, delve_attributes("kin-8nm")),
    "pumadyn-8nh": Original("puma8NH", 1, "thetadd3", 8192, delve_attributes("pumadyn-8nh")),
    "pumadyn-32nm": Original("puma32H", 1, "thetadd6", 8192, delve_attributes("pumadyn-32nm")),
    "bank-8fm": Original("bank8FM", 1, "rej", 8192, delve_attributes("bank-8fm")),
    "bank-32nh": Original("bank32nh", 1, "rej", 8192, delve_attributes("bank-32nh")),
    "cpusmall": Original("cpu_small", 1, "usr", 8192, {"family": "comp-activ", "inputs": 12}),
    "abalone": Original("abalone", 1, "Class_number_of_rings", 4177, {"family": "abalone", "inputs": 10}),
    "boston": Original("boston", 1, "MEDV", 506, {"family": "boston", "inputs": 13}),
}


def fetch(name: str, data_home: str | None = None) -> Dataset:
    """A data set by DELVE's name, from scikit-learn's cache or from openml.org.

    Parameters
    ----------
    name
        One of ``bayessel.diagnostics.delve.originals.ORIGINALS``.
    data_home
        Folder of the cache; default: scikit-learn's.

    Raises
    ------
    OSError
        Not in the cache, and openml.org cannot be reached: `delve.load` reads local files, `delve.families` generates
        tasks of the same kind.
    ValueError
        What came is not the data set that is meant.
    """
    from sklearn.datasets import fetch_openml

    original = ORIGINALS[one_of(name, "name", tuple(ORIGINALS))]
    try:
        found = fetch_openml(original.name, version=original.version, data_home=data_home, as_frame=True, parser="auto")
    except OSError as error:
        raise OSError(
            f"{name} is not in the cache and openml.org cannot be reached ({error}); read local files with delve.load, "
            "or generate tasks of the same kind with delve.families"
        ) from error
    table = found.frame
    by_name = {str(column).casefold(): column for column in table.columns}
    target = by_name.get(original.target.casefold())
    if target is None or len(table) != original.cases:
        raise ValueError(
            f"{original.name} of OpenML has {len(table)} rows and columns {', '.join(map(str, table.columns))}; needed "
            f"were {original.cases} rows and a target {original.target!r}: another version of the data"
        )
    table = table[[column for column in table.columns if column != target] + [target]]
    for column in table.columns[table.dtypes == "category"]:
        words = table[column].astype(str)
        numbers = words.str.fullmatch(r"-?\d+(\.\d+)?").all()  # OpenML keeps some numbers as words
        table = table.assign(**{str(column): words.astype(np.float64) if numbers else words})
    return Dataset(name, table, original.attributes)
