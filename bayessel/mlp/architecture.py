"""A multi-layer perceptron with one layer of tanh units and direct connections: layout, outputs, derivatives.

f_k(x) = Σ_h v_hk tanh(Σ_i x_i u_ih + a_h) + Σ_i x_i w_ik + b_k

Neal (1996), Bayesian Learning for Neural Networks; Rasmussen (1996), eq. 3.12. Leading axes of the weights are draws: a
whole chain is one call.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bayessel._check import FloatArray, as_count

#: the smallest and the largest hidden layer that are chosen (Rasmussen 1996, § 3.7)
FEWEST_HIDDEN, MOST_HIDDEN = 6, 25


class Weights(NamedTuple):
    """The parameters by name, in the order in which they are packed, each in C order.

    Examples
    --------
    >>> weights = Architecture(inputs=1, hidden=2).split(np.arange(8.0))
    >>> weights.input_hidden.tolist(), weights.bias.tolist()
    ([[2.0, 3.0]], [4.0])
    """

    hidden_bias: FloatArray  # a (…, H)
    input_hidden: FloatArray  # u (…, D, H)
    bias: FloatArray  # b (…, K)
    hidden_output: FloatArray  # v (…, H, K)
    input_output: FloatArray  # w (…, D, K)


@dataclass(frozen=True)
class Architecture:
    """Numbers of inputs D, hidden units H and outputs K; where each weight lies in the packed vector.

    Examples
    --------
    >>> net = Architecture(inputs=2, hidden=3)
    >>> net.size, net.shapes["input_hidden"]
    (15, (2, 3))
    """

    inputs: int
    hidden: int
    outputs: int = 1

    def __post_init__(self) -> None:
        for name in ("inputs", "hidden", "outputs"):
            as_count(getattr(self, name), name)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name -> shape, in packed order."""
        D, H, K = self.inputs, self.hidden, self.outputs
        return dict(zip(Weights._fields, ((H,), (D, H), (K,), (H, K), (D, K)), strict=True))

    @property
    def slices(self) -> dict[str, slice]:
        """Name -> its place in the packed vector."""
        found, start = {}, 0
        for name, shape in self.shapes.items():
            stop = start + int(np.prod(shape))
            found[name] = slice(start, stop)
            start = stop
        return found

    @property
    def size(self) -> int:
        """Number of weights, H(1 + D + K) + K + DK."""
        D, H, K = self.inputs, self.hidden, self.outputs
        return H * (1 + D + K) + K + D * K

    def split(self, vector: FloatArray) -> Weights:
        """The weights in a packed vector (…, size), as views where it is contiguous."""
        if vector.shape[-1] != self.size:
            raise ValueError(f"{self} has {self.size} weights, got a vector of {vector.shape[-1]}")
        lead, shapes = vector.shape[:-1], self.shapes
        return Weights(*(vector[..., part].reshape(lead + shapes[name]) for name, part in self.slices.items()))


def forward(weights: Weights, X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Outputs f (…, n, K) and hidden values Z = tanh(Xu + a) (…, n, H) for inputs X (n, D).

    Examples
    --------
    >>> weights = Architecture(inputs=1, hidden=2).split(np.zeros(8))
    >>> f, Z = forward(weights, np.array([[0.5], [1.0]]))
    >>> f.shape, Z.shape, float(f.max())
    ((2, 1), (2, 2), 0.0)
    """
    from bayessel.mlp import compiled_passes

    lead, (H, K) = weights.bias.shape[:-1], weights.hidden_output.shape[-2:]
    columns = np.ascontiguousarray(X.T, dtype=np.float64)
    Z, f = np.empty((*lead, H, len(X))), np.empty((*lead, K, len(X)))
    packed = pack(weights)
    for index in np.ndindex(lead):
        compiled_passes.forward(packed[index], columns, Z[index], f[index])
    return np.swapaxes(f, -1, -2), np.swapaxes(Z, -1, -2)


def backward(weights: Weights, X: FloatArray, Z: FloatArray, df: FloatArray) -> FloatArray:
    """Derivatives of a loss by the packed weights (…, size), given those by the outputs, df (…, n, K)."""
    from bayessel.mlp import compiled_passes

    columns, below = np.ascontiguousarray(X.T, dtype=np.float64), np.empty(len(X))
    Z, df = (np.ascontiguousarray(np.swapaxes(part, -1, -2)) for part in (Z, df))
    packed = pack(weights)
    gradient = np.empty(packed.shape)
    for index in np.ndindex(packed.shape[:-1]):
        compiled_passes.backward(packed[index], columns, Z[index], df[index], below, gradient[index])
    return gradient


def pack(weights: Weights) -> FloatArray:
    """The packed vector (…, size), leading axes those of the draws: the inverse of `Architecture.split`."""
    lead = np.shape(weights.bias)[:-1]
    return np.concatenate([np.asarray(part, dtype=np.float64).reshape((*lead, -1)) for part in weights], axis=-1)


def hidden_units(
    value: int | str, n: int, inputs: int, outputs: int = 1, fewest: int = FEWEST_HIDDEN, most: int = MOST_HIDDEN
) -> int:
    """`value` as a number of hidden units; "auto": within bounds the fewest with at least n weights."""
    if not isinstance(value, str):
        return as_count(value, "hidden")
    if value != "auto":
        raise ValueError(f"hidden must be 'auto' or a number of hidden units, got {value!r}")
    needed = -(-(as_count(n, "n") - outputs * (1 + inputs)) // (1 + inputs + outputs))
    return min(max(needed, fewest), most)
