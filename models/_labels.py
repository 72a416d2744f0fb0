"""Labels of columns, which become coordinates of a model's dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


def column_labels(names: Sequence[str] | None, n_columns: int, of: str = "Phi") -> Sequence[Any] | npt.NDArray[np.int_]:
    """As many different labels as columns; numbers if there are none."""
    if names is None:
        return np.arange(n_columns)
    found = [str(name) for name in names]
    if len(found) != n_columns or len(set(found)) != n_columns:
        raise ValueError(
            f"names must be {n_columns} different labels, one per column of {of}, "
            f"got {len(found)} of which {len(set(found))} differ"
        )
    return found
