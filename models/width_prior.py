"""The log-normal prior of the width of radial functions, by default in units of the inputs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray, as_matrix, as_positive_vector
from bayessel.basis import RBFDictionary

#: Prior standard deviation of log r: 95 % of the prior between a twentieth and twenty of its median.
LOG_SPREAD = 1.5


def prior_of_width(
    dictionary: RBFDictionary, X: npt.ArrayLike, given: tuple[npt.ArrayLike, npt.ArrayLike] | None = None
) -> tuple[FloatArray, FloatArray]:
    """Median of the width's prior and standard deviation of its logarithm, each of the shape of the width, () or (D,).

    By default the standard deviation of each input (of one width their root mean square) and `LOG_SPREAD`.
    """
    inputs = as_matrix(X, "X", allow_1d=True)
    shape = np.shape(dictionary.width)
    if given is None:
        spreads = inputs.std(axis=0)
        # an input that does not vary has no scale; the width of the dictionary is one in its unit
        spreads = np.where(spreads > 1e-12 * np.abs(inputs).max(axis=0), spreads, dictionary.width)
        median = spreads if shape else np.sqrt(np.mean(spreads**2))
        return np.asarray(median, dtype=np.float64), np.full(shape, LOG_SPREAD)
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise TypeError(
            "width_prior must be None or a pair (median of the width, standard deviation of its logarithm), "
            f"got {given!r}"
        )
    size = shape[0] if shape else 1
    names = ("the median of width_prior", "the standard deviation of width_prior")
    parts = [as_positive_vector(value, name, size) for value, name in zip(given, names, strict=True)]
    return parts[0].reshape(shape), parts[1].reshape(shape)
