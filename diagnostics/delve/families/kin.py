"""kin: how far the end of an arm of eight links is from a fixed point.

Eight inputs: the angles of the joints, of an arm whose geometry is fixed. Thirty-two: angles, twists, lengths and
offsets of all links. Angles are disturbed by additive uniform noise before the distance is taken; with 32 inputs, the
other inputs and the distance by multiplicative uniform noise besides (Rasmussen 1996, § 5.1; written by Z. Ghahramani).

The thesis gives no numbers. The arm is a Puma 560 (Corke and Armstrong-Hélouvry 1994) with two more links; their
lengths, the point and the ranges were found by least squares on DELVE's kin-8fh, -8fm, -8nm and a part of -32fm. Of
kin-8nm and -8fm the arm leaves 4.4 and 2.6 % of the variance unexplained, which is what noise of that kind makes. The
fairly linear tasks have an index of non-linearity of 0.054, as kin-8fm itself has, and not below 0.05. Ranges for 32
inputs that depend non-linearly are our own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayessel._check import FloatArray
from bayessel.diagnostics.delve._task import delve_attributes
from bayessel.diagnostics.delve.families.serial_arm import Geometry, positions
from bayessel.diagnostics.delve.families.source import Source

LINKS = 8
_RIGHT = np.pi / 2
#: of the tasks with eight inputs
ARM = Geometry(
    a=np.array([0.0, 0.4318, 0.0203, 0.0, 0.0, 0.0, 0.2, 0.3]),
    alpha=np.array([_RIGHT, 0.0, -_RIGHT, _RIGHT, -_RIGHT, 0.0, np.pi, 0.0]),
    d=np.array([0.0, 0.0, 0.15005, 0.4318, 0.0, 0.0, 0.0, 0.1]),
)
#: coordinates of the point, all three the same
POINT = {8: 0.1, 32: 0.2}
#: links of arms with 32 inputs have no length with probability 0.3, no offset with 0.5, or else about 0.3 of it
NO_LENGTH, NO_OFFSET, SIZE, SPREAD = 0.3, 0.5, 0.3, 0.015


class KinLevel(NamedTuple):
    """Ranges: angles are uniform within ± `angle`, twists with 32 inputs among 0 and ± `twist`.

    `noise` is the half-width of the noise of angles, `share` that of the factors of everything else.
    """

    angle: float
    twist: float
    noise: float
    share: float


LEVELS = {
    "8fm": KinLevel(0.1 * np.pi, 0.0, 0.0158 * np.pi, 0.0),
    "8fh": KinLevel(0.1 * np.pi, 0.0, 0.0546 * np.pi, 0.0),
    "8nm": KinLevel(0.5 * np.pi, 0.0, 0.0634 * np.pi, 0.0),
    "8nh": KinLevel(0.5 * np.pi, 0.0, 0.2190 * np.pi, 0.0),
    "32fm": KinLevel(0.1 * np.pi, np.pi / 8, 0.020 * np.pi, 0.067),
    "32fh": KinLevel(0.1 * np.pi, np.pi / 8, 0.058 * np.pi, 0.19),
    "32nm": KinLevel(0.5 * np.pi, np.pi / 2, 0.054 * np.pi, 0.054),
    "32nh": KinLevel(0.5 * np.pi, np.pi / 2, 0.160 * np.pi, 0.16),
}


def kin(kind: str) -> Source:
    """One of the eight, "8fm" … "32nh"."""
    inputs = int(kind[:-2])
    level = LEVELS[kind]
    names = tuple(
        f"{part}{i + 1}"
        for part in (("theta",) if inputs == LINKS else ("theta", "alpha", "a", "d"))
        for i in range(LINKS)
    )

    def draw(n: int, rng: np.random.Generator) -> FloatArray:
        theta = rng.uniform(-level.angle, level.angle, (n, LINKS))
        if inputs == LINKS:
            return theta
        twist = rng.choice([-level.twist, 0.0, level.twist], (n, LINKS))
        a, d = (
            np.where(rng.uniform(size=(n, LINKS)) < none, 0.0, rng.normal(SIZE, SPREAD, (n, LINKS)))
            for none in (NO_LENGTH, NO_OFFSET)
        )
        return np.hstack([theta, twist, a, d])

    def respond(X: FloatArray, rng: np.random.Generator | None) -> FloatArray:
        theta, shape = X[:, :LINKS], X[:, LINKS:]
        factor = np.ones(len(X))
        if rng is not None:
            theta = theta + rng.uniform(-level.noise, level.noise, theta.shape)
            shape = shape * (1.0 + rng.uniform(-level.share, level.share, shape.shape))
            factor += rng.uniform(-level.share, level.share, len(X))
        arm = ARM
        if inputs != LINKS:
            arm = Geometry(alpha=shape[:, :LINKS], a=shape[:, LINKS : 2 * LINKS], d=shape[:, 2 * LINKS :])
        end = positions(arm, theta)[:, -1]
        return np.asarray(factor * np.linalg.norm(end - POINT[inputs], axis=1))

    return Source(f"kin-{kind}", names, "y", draw, respond, delve_attributes(f"kin-{kind}"))
