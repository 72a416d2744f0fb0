"""Mutual information of labels and predicted labels."""

from __future__ import annotations

import numpy as np

from bayessel._check import FloatArray


def mutual_information(
    right: FloatArray | float, wrong: FloatArray | float, positive: float, negative: float
) -> FloatArray:
    """Bits between labels and predicted labels, from the weights of +1 called +1 and of -1 called +1.

    Counts against the classifier when its labels are worse than chance: a mirror image carries the same information,
    but nobody would turn round what leave-one-out says of a mean of balanced classes. `right` and `wrong` may be
    arrays; `positive` and `negative` are the weights of the classes.
    """
    a = np.clip(np.asarray(right, dtype=np.float64), 0.0, positive)  # sums of weights round
    b = np.clip(np.asarray(wrong, dtype=np.float64), 0.0, negative)
    total = positive + negative
    called, others = a + b, (positive - a) + (negative - b)

    def part(joint: FloatArray, of_class: float, of_label: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore", invalid="ignore"):
            value = joint / total * np.log2(joint * total / (of_class * of_label))
        return np.where(joint > 0.0, value, 0.0)

    J = part(a, positive, called) + part(b, negative, called)
    J = J + part(positive - a, positive, others) + part(negative - b, negative, others)
    return np.where(a * negative >= b * positive, np.maximum(J, 0.0), -np.maximum(J, 0.0))
