"""Decisions that several methods share: named numbers, each with its reason and guarded by a test.

A number belongs here when two places must agree on it, or when a reader of a result would ask why. What only one
algorithm needs to work (tolerances, block sizes, steps) stays beside that algorithm.
"""

from __future__ import annotations

import numpy as np

from bayessel.fit import Status

# How many rows must be left to the noise, as a share of all: N − γ ≥ share · N.

#: For ratios: where a fit passes through every row, GCV, LOO and their like are ratios of two vanishing numbers, and
#: log σ² of a description length falls without end, whatever the data. Up to nine tenths of the rows they still hold.
NOISE_SHARE_OF_RATIOS = 0.1
#: For expansions: UEV, FPE and BIC are derived for γ ≪ N and fall to zero long before every row is passed through.
NOISE_SHARE_OF_EXPANSIONS = 0.25
#: For evidences maximised over widths or many precisions: functions for almost every row explain any data, and the
#: evidence is then that of the rows one by one; such a maximum is ranked behind the others.
NOISE_SHARE_OF_EVIDENCES = 0.1
#: For sparse searches: with this share left to the noise the evidence alone decides between starts; below it, data that
#: want to be interpolated are tried again from louder noise.
NOISE_SHARE_OF_CERTAINTY = 0.3
#: Rows that a network must leave to the noise besides its share: with fewer the noise is estimated from one or two.
NOISE_ROWS_OF_NETWORKS = 3.0

# What counts as separate optima.

#: Widths that differ by less than this factor are one scale.
SEPARATE_WIDTHS = 1.5
#: Ends of searches from different starts whose widths differ by less than this factor are one optimum: an ascent stops
#: within a few per cent of it, and optima of one scale are further apart.
SAME_WIDTHS = 1.3
#: Preferred widths closer than this fraction are one choice, however fine the grid.
CLOSE_WIDTHS = 0.1
#: Local optima whose log evidence is further below the best, in nats, are no rivals: their odds are below 1 to 20 000.
RIVAL_NATS = 10.0
#: Minima of an error within this share of the best are rivals: its own sampling error is mostly larger.
RIVAL_SHARE = 0.05

# What is a tie.

#: Criteria in nats that differ by less are equal: rounding of sums over some thousand rows.
TIE_NATS = 1e-6
#: Laplace's approximations of evidences that differ by less are equal: their curvatures are differences.
TIE_LAPLACE_NATS = 1e-3
#: A fit whose objective is higher by less, in nats, than one already there is no improvement: what optimisers leave.
IMPROVEMENT_NATS = 0.01
#: Evidence given up for fewer functions, in nats: it is often flat over the number of functions, and odds of e to 1 are
#: no reason for more of them.
FLAT_NATS = 1.0

# What is strong, and what a reader may shrug off.

#: Evidence ratios of 20 to 1 are commonly called strong; on the logarithm that is about 3 nats.
STRONG_NATS = float(np.log(20.0))
#: The share of an error estimate a reader may lose and shrug: mostly less than its own sampling error.
SMALL_LOSS = 0.05
#: Monte Carlo errors of an evidence beyond, in nats, are themselves unsure: the proposal misses the posterior.
LARGEST_EVIDENCE_ERROR = 0.5

#: Statuses that need no attention in a comparison: few well-determined parameters spoil only an approximation, which is
#: then replaced, functions so wide that some are combinations of others belong to every grid, and penalties of zero to
#: every search for local ones. Narrower than what estimators do not warn of (`Status.distrusted`): an optimum at an end
#: of the grid is worth a mark in a table.
HARMLESS = frozenset({Status.CONVERGED, Status.FEW_WELL_DETERMINED, Status.COLLINEAR_SKIPPED, Status.IMPROPER_PRIOR})


def leaves_noise(n_rows: float, gamma: float, share: float) -> bool:
    """Whether a fit with γ well-determined parameters leaves this share of its rows to the noise."""
    return bool(n_rows - gamma >= share * n_rows)
