"""pumadyn: how a joint of a Puma 560 accelerates under torques at others.

Eight inputs: angles and velocities of joints 1 … 3, torques at 1 and 2; the target is the acceleration of joint 3.
Thirty-two: angles and velocities of all six joints, five torques, and factors of the masses, lengths and frictions of
five links; the target is the acceleration of joint 6 (Rasmussen 1996, § 5.1; written by Z. Ghahramani with P. Corke's
simulator). Angles, velocities and torques are disturbed by gaussian noise.

Parameters of the robot: Corke and Armstrong-Hélouvry (1994). The motors' inertia is felt through the gears; friction is
the motors' own, at the joint, without them, so small that its factors cannot be seen in the target. With that the
accelerations agree with DELVE's pumadyn-8nm and -32nm to 3.2 and 2.8 % of their variance, with slopes of 0.98 and 1.00:
it is the same arm. Ranges of inputs are DELVE's; those of 32 inputs that depend fairly linearly were found from a part
of -32fm. The noise was set by what remains unexplained. With 32 inputs that is gaussian and the same everywhere, as
from noise in a torque at the last joint.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayessel._check import FloatArray
from bayessel.diagnostics.delve._task import delve_attributes
from bayessel.diagnostics.delve.families.serial_arm import Geometry, Masses, accelerations
from bayessel.diagnostics.delve.families.source import Source

JOINTS = 6
_RIGHT = np.pi / 2
GEOMETRY = Geometry(
    a=np.array([0.0, 0.4318, 0.0203, 0.0, 0.0, 0.0]),
    alpha=np.array([_RIGHT, 0.0, -_RIGHT, _RIGHT, -_RIGHT, 0.0]),
    d=np.array([0.0, 0.0, 0.15005, 0.4318, 0.0, 0.0]),
)
GEARS = np.array([-62.6111, 107.815, -53.7063, 76.0364, 71.923, 76.686])
MASSES = Masses(
    m=np.array([0.0, 17.4, 4.8, 0.82, 0.34, 0.09]),
    r=np.array(
        [
            [0.0, 0.0, 0.0],
            [-0.3638, 0.006, 0.2275],
            [-0.0203, -0.0141, 0.070],
            [0.0, 0.019, 0.0],
            [0.0, 0.0, 0.0],
            [0.0, 0.0, 0.032],
        ]
    ),
    inertia=np.stack(
        [
            np.diag(moments)
            for moments in (
                [0.0, 0.35, 0.0],
                [0.13, 0.524, 0.539],
                [0.066, 0.086, 0.0125],
                [1.8e-3, 1.3e-3, 1.8e-3],
                [0.3e-3, 0.4e-3, 0.3e-3],
                [0.15e-3, 0.15e-3, 0.04e-3],
            )
        ]
    ),
    motor=GEARS**2 * np.array([200e-6, 200e-6, 200e-6, 33e-6, 33e-6, 33e-6]),
    friction=np.array([1.48e-3, 0.817e-3, 1.38e-3, 71.2e-6, 82.6e-6, 36.7e-6]),
)


class PumadynLevel(NamedTuple):
    """Ranges: angles and velocities within ± `angle`, torques within ± `torque`, factors within `low` … `high`.

    `noise` is the standard deviation of that of angles, velocities and torques with eight inputs, `last` that of the
    torque at the last joint with 32.
    """

    angle: float
    torque: float
    low: float
    high: float
    noise: float
    last: float


LEVELS = {
    "8fm": PumadynLevel(0.3 * np.pi, 0.3, 1.0, 1.0, 0.11, 0.0),
    "8fh": PumadynLevel(0.3 * np.pi, 0.3, 1.0, 1.0, 0.41, 0.0),
    "8nm": PumadynLevel(0.6 * np.pi, 0.6, 1.0, 1.0, 0.12, 0.0),
    "8nh": PumadynLevel(0.6 * np.pi, 0.6, 1.0, 1.0, 0.41, 0.0),
    "32fm": PumadynLevel(0.3 * np.pi, 30.0, 0.55, 1.45, 0.0, 0.00054),
    "32fh": PumadynLevel(0.3 * np.pi, 30.0, 0.55, 1.45, 0.0, 0.0019),
    "32nm": PumadynLevel(0.75 * np.pi, 75.0, 0.25, 2.5, 0.0, 0.00098),
    "32nh": PumadynLevel(0.75 * np.pi, 75.0, 0.25, 2.5, 0.0, 0.0034),
}


def pumadyn(kind: str) -> Source:
    """One of the eight, "8fm" … "32nh"."""
    few = kind.startswith("8")
    joints, torques, factors = (3, 2, 0) if few else (JOINTS, JOINTS - 1, JOINTS - 1)
    level = LEVELS[kind]
    parts = (("theta", joints), ("thetad", joints), ("tau", torques), ("dm", factors), ("da", factors), ("db", factors))
    names = tuple(f"{part}{i + 1}" for part, count in parts for i in range(count))
    moving = 2 * joints + torques

    def draw(n: int, rng: np.random.Generator) -> FloatArray:
        angles = rng.uniform(-level.angle, level.angle, (n, 2 * joints))
        return np.hstack(
            [
                angles,
                rng.uniform(-level.torque, level.torque, (n, torques)),
                rng.uniform(level.low, level.high, (n, 3 * factors)),
            ]
        )

    def respond(X: FloatArray, rng: np.random.Generator | None) -> FloatArray:
        n = len(X)
        state = X[:, :moving]
        last = np.zeros((n, 1))
        if rng is not None:
            state = state + level.noise * rng.normal(size=state.shape)
            last += level.last * rng.normal(size=last.shape)
        rest = np.zeros((n, JOINTS - joints))
        theta = np.hstack([state[:, :joints], rest])
        velocity = np.hstack([state[:, joints : 2 * joints], rest])
        torque = np.hstack([state[:, 2 * joints :], np.zeros((n, JOINTS - 1 - torques)), last])
        geometry, masses = GEOMETRY, MASSES
        if factors:
            m, a, b = (np.hstack([part, np.ones((n, 1))]) for part in np.split(X[:, moving:], 3, axis=1))
            geometry = Geometry(GEOMETRY.a * a, GEOMETRY.alpha, GEOMETRY.d)
            masses = Masses(MASSES.m * m, MASSES.r, MASSES.inertia, MASSES.motor, MASSES.friction * b)
        return accelerations(geometry, masses, theta, velocity, torque)[:, joints - 1]

    return Source(f"pumadyn-{kind}", names, f"thetadd{joints}", draw, respond, delve_attributes(f"pumadyn-{kind}"))
