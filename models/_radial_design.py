r"""A design of radial functions whose width is a random variable: the columns of an `RBFDictionary` in symbols.

With inputs X (N, D), centres c and a width r, one number or one for each input,

    z_nj = Σ_d (x_nd − c_jd)²/r_d²,    Φ_nj = φ(z_nj),

where φ is the function of the dictionary, :math:`e^{-z}` of the Gaussian one. Inputs and centres are data of the model,
what the dictionary has beside the functions (inputs as columns, a bias) follows them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pymc as pm
import pytensor.tensor as pt

from bayessel._check import FloatArray, as_matrix, check_magnitude
from bayessel.basis import RBFDictionary
from bayessel.basis.dictionary import Dictionary
from bayessel.models.width_prior import prior_of_width


@dataclass(frozen=True)
class RadialInputs:
    """A dictionary of radial functions at inputs, and the prior of its width.

    Attributes
    ----------
    dictionary : RBFDictionary
        Its width says whether there is one or one for each input; the number itself is not used.
    inputs : array (N, D)
        The training rows.
    median : array () or (D,)
        Median of the log-normal prior of r, in units of the inputs.
    log_sd : array () or (D,)
        Standard deviation of log r.
    """

    dictionary: RBFDictionary
    inputs: FloatArray
    median: FloatArray
    log_sd: FloatArray

    def design(self) -> FloatArray:
        """The design at the median of the prior."""
        return at_width(self.dictionary, self.median).design(self.inputs)

    def declare(self) -> tuple[Any, Any, tuple[Any, ...]]:
        """Declare inputs, centres and ``width`` in the model on the stack: (Φ, r, data)."""
        model: Any = pm.modelcontext(None)
        model.add_coord("input", np.arange(self.inputs.shape[1]))
        model.add_coord("center", np.arange(len(self.dictionary.centers)))
        X = pm.Data("X", self.inputs, dims=("row", "input"))
        centers = pm.Data("centers", self.dictionary.centers, dims=("center", "input"))
        width = pm.LogNormal(
            "width",
            pt.constant(np.log(self.median)),
            pt.constant(self.log_sd),
            dims="input" if np.ndim(self.dictionary.width) else None,
        )
        return symbolic_design(self.dictionary, X, centers, width), width, (X, centers)


def as_radial(
    Phi: npt.ArrayLike | RBFDictionary,
    X: npt.ArrayLike | None,
    width_prior: tuple[npt.ArrayLike, npt.ArrayLike] | None,
    *,
    without_bias: bool = False,
) -> RadialInputs | None:
    """A dictionary with inputs and prior, checked; None where Phi is a design."""
    if not isinstance(Phi, Dictionary):
        for name, value in (("X", X), ("width_prior", width_prior)):
            if value is not None:
                raise ValueError(
                    f"{name} goes with a dictionary in place of Phi, got a {type(Phi).__name__}: give "
                    "bs.RBFDictionary(centers, width) to sample its width, or the design alone"
                )
        return None
    if not isinstance(Phi, RBFDictionary):
        raise TypeError(
            f"only a RBFDictionary has a width to sample, got a {type(Phi).__name__}: give dictionary.design(X) as Phi"
        )
    if Phi.metric is not None:
        raise ValueError(
            "a dictionary with a full metric has no width to sample: give widths, RBFDictionary(centers, width), or "
            "dictionary.design(X) as Phi"
        )
    if X is None:
        raise ValueError("a dictionary in place of Phi needs the inputs of its design: give X, one row for each of t")
    inputs = as_matrix(X, "X", allow_1d=True)
    check_magnitude(inputs, "X")
    Phi.check_inputs(inputs)
    dictionary: Any = Phi.without_bias() if without_bias else Phi
    median, log_sd = prior_of_width(dictionary, inputs, width_prior)
    return RadialInputs(dictionary, inputs, median, log_sd)


def symbolic_design(dictionary: RBFDictionary, X: Any, centers: Any, width: Any) -> Any:
    """The columns of ``dictionary.design(X)`` at a width that is a variable."""
    # differences come first, so that inputs such as calendar years keep their digits
    z = (((X[:, None, :] - centers[None, :, :]) / width) ** 2).sum(axis=2)
    columns = [_radial(dictionary.kind, z)]
    if dictionary.linear:
        columns.append(X / pt.constant(np.asarray(dictionary.slopes, dtype=np.float64)))
    if dictionary.bias:
        columns.append(pt.ones((X.shape[0], 1)))
    return columns[0] if len(columns) == 1 else pt.concatenate(columns, axis=1)


def _radial(kind: str, z: Any) -> Any:
    if kind == "gaussian":
        return pt.exp(-z)
    if kind == "cauchy":
        return 1.0 / (1.0 + z)
    return pt.sqrt(1.0 + z) if kind == "multiquadric" else 1.0 / pt.sqrt(1.0 + z)


def at_width(dictionary: RBFDictionary, width: FloatArray) -> RBFDictionary:
    """The same functions at another width."""
    return RBFDictionary(dictionary.centers, width, dictionary.kind, dictionary.bias, dictionary.slopes)
