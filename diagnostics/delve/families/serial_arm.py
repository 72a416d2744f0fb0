"""Arms of links in series: where the end is, and how joints accelerate under torques; many arms at a time.

Links are given by the four parameters of Denavit and Hartenberg (1955), standard convention: link i turns by θ_i about
the z-axis of frame i − 1, is offset by d_i along it, has length a_i along the new x-axis and twist α_i about that. All
arguments have a leading axis over cases, N, or are the same for all of them.

Torques are found by the recursion of Newton and Euler (Luh, Walker and Paul, 1980), outwards for motions, inwards for
forces; each is linear in the accelerations, so one recursion per joint gives the inertia matrix M, one more everything
else, and accelerations solve a system of the size of the arm (method 1 of Walker and Orin, 1982).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayessel._check import FloatArray

#: m/s²
GRAVITY = 9.81


@dataclass(frozen=True)
class Geometry:
    """Lengths a, twists α and offsets d, each (J,) or (N, J)."""

    a: FloatArray
    alpha: FloatArray
    d: FloatArray


@dataclass(frozen=True)
class Masses:
    """What moves, for each link, with or without a leading axis over cases.

    Masses m (J,), centres of mass r (J, 3) in the link's own frame, inertia tensors about them (J, 3, 3), inertia of
    the motors as the joints feel it (J,), and viscous friction at the joints (J,).
    """

    m: FloatArray
    r: FloatArray
    inertia: FloatArray
    motor: FloatArray
    friction: FloatArray


def rotations(geometry: Geometry, theta: FloatArray) -> FloatArray:
    """(N, J, 3, 3) matrices that take vectors of frame i to frame i − 1."""
    c, s = np.cos(theta), np.sin(theta)
    ca, sa = np.cos(geometry.alpha) * np.ones_like(c), np.sin(geometry.alpha) * np.ones_like(c)
    zero = np.zeros_like(c)
    rows = [[c, -s * ca, s * sa], [s, c * ca, -c * sa], [zero, sa, ca]]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def positions(geometry: Geometry, theta: FloatArray) -> FloatArray:
    """(N, J, 3): origins of frames 1 … J in the frame of the base."""
    turn = rotations(geometry, theta)
    a = geometry.a * np.ones_like(theta)
    step = np.stack([a * np.cos(theta), a * np.sin(theta), geometry.d * np.ones_like(theta)], axis=-1)
    at, frame, found = np.zeros((len(theta), 3)), np.broadcast_to(np.eye(3), (len(theta), 3, 3)), []
    for i in range(theta.shape[1]):
        at = at + _apply(frame, step[:, i])
        frame = frame @ turn[:, i]
        found.append(at)
    return np.stack(found, axis=1)


def torques(
    geometry: Geometry,
    masses: Masses,
    theta: FloatArray,
    velocity: FloatArray,
    acceleration: FloatArray,
    gravity: float = GRAVITY,
) -> FloatArray:
    """(N, J) torques at the joints that make them accelerate like this."""
    N, J = theta.shape
    R = rotations(geometry, theta)
    ones = np.ones((N, J))
    # origin of frame i seen from the one before, in axes of frame i
    a, d, alpha = (part * ones for part in (geometry.a, geometry.d, geometry.alpha))
    p = np.stack([a, d * np.sin(alpha), d * np.cos(alpha)], axis=-1)
    m, r = masses.m * ones, masses.r * ones[..., None]
    inertia = masses.inertia * ones[..., None, None]
    z = np.array([0.0, 0.0, 1.0])
    w, dw = np.zeros((N, 3)), np.zeros((N, 3))
    dv = np.tile([0.0, 0.0, gravity], (N, 1))  # an arm that is pulled down feels like one carried up
    force, moment = [], []
    for i in range(J):
        back = np.swapaxes(R[:, i], 1, 2)
        spin = velocity[:, i, None] * z
        dw = _apply(back, dw + acceleration[:, i, None] * z + np.cross(w, spin))
        w = _apply(back, w + spin)
        dv = _apply(back, dv) + np.cross(dw, p[:, i]) + np.cross(w, np.cross(w, p[:, i]))
        at_centre = dv + np.cross(dw, r[:, i]) + np.cross(w, np.cross(w, r[:, i]))
        force.append(m[:, i, None] * at_centre)
        moment.append(_apply(inertia[:, i], dw) + np.cross(w, _apply(inertia[:, i], w)))
    f, n = np.zeros((N, 3)), np.zeros((N, 3))
    tau = np.empty((N, J))
    for i in reversed(range(J)):
        if i < J - 1:
            f, n = _apply(R[:, i + 1], f), _apply(R[:, i + 1], n)
        # about the origin of frame i − 1; what comes from outside acts at that of frame i
        n = n + np.cross(p[:, i], f) + np.cross(p[:, i] + r[:, i], force[i]) + moment[i]
        f = f + force[i]
        tau[:, i] = np.einsum("nj,nj->n", n, R[:, i, 2])  # the joint's axis in frame i is the last row of R
    return tau + masses.motor * acceleration + masses.friction * velocity


def inertia_matrix(geometry: Geometry, masses: Masses, theta: FloatArray) -> FloatArray:
    """(N, J, J) matrix M of the kinetic energy ½ θ̇ᵀM θ̇."""
    still = np.zeros_like(theta)
    columns = [
        torques(geometry, masses, theta, still, np.eye(theta.shape[1])[i] * np.ones_like(theta), gravity=0.0)
        for i in range(theta.shape[1])
    ]
    return np.stack(columns, axis=-1)


def accelerations(
    geometry: Geometry,
    masses: Masses,
    theta: FloatArray,
    velocity: FloatArray,
    torque: FloatArray,
    gravity: float = GRAVITY,
) -> FloatArray:
    """(N, J) accelerations of the joints under torques."""
    rest = torque - torques(geometry, masses, theta, velocity, np.zeros_like(theta), gravity)
    return np.linalg.solve(inertia_matrix(geometry, masses, theta), rest[..., None])[..., 0]


def energy(
    geometry: Geometry, masses: Masses, theta: FloatArray, velocity: FloatArray, gravity: float = GRAVITY
) -> FloatArray:
    """(N,) kinetic and potential energy."""
    M = inertia_matrix(geometry, masses, theta)
    kinetic = 0.5 * np.einsum("ni,nij,nj->n", velocity, M, velocity)
    frame, origin = np.broadcast_to(np.eye(3), (len(theta), 3, 3)), positions(geometry, theta)
    turn, potential = rotations(geometry, theta), np.zeros(len(theta))
    m, r = masses.m * np.ones_like(theta), masses.r * np.ones((*theta.shape, 1))
    for i in range(theta.shape[1]):
        frame = frame @ turn[:, i]
        height = origin[:, i, 2] + _apply(frame, r[:, i])[:, 2]
        potential += m[:, i] * gravity * height
    return np.asarray(kinetic + potential)


def _apply(matrices: FloatArray, vectors: FloatArray) -> FloatArray:
    return np.einsum("nij,nj->ni", matrices, vectors)
