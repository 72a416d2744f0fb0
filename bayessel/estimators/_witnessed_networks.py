r"""Sampled networks beside a reference, by the weights under which refitted folds predict the rows left out best.

Chains of a network may end near interpolation, with next to no noise, and nothing in them says so. The reference is the
model of radial functions whose hyperparameters are integrated out (`bayessel.estimators.stacked_widths`). Both are
fitted anew to three folds, the network with chains of its own, and rows left out decide the share w of the networks in

.. math:: w\,p_{\mathrm{networks}}(t|x) + (1-w)\,p_{\mathrm{reference}}(t|x).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import cast, override

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from bayessel._check import FloatArray
from bayessel.estimators import held_out
from bayessel.estimators._sampled_networks import SampledNetworks
from bayessel.estimators.stacked_widths import LEAST_WEIGHT, RadialModel, fit_stacked
from bayessel.fit import LeaveOneOut, Status
from bayessel.linear.integrated.mixture import IntegratedFit
from bayessel.prediction import Prediction

#: rows of which folds are made
MOST_ROWS = 600

#: (inputs, targets) of a fold -> networks sampled there
Sample = Callable[[FloatArray, FloatArray], SampledNetworks]


@dataclass(frozen=True, eq=False)
class NetworkWitness:
    """What refitted folds say of networks and of their reference.

    Attributes
    ----------
    reference : IntegratedFit
        All radial functions and a trend, hyperparameters integrated out.
    share : float
        Weight of the networks beside it.
    gains : (2, n) array
        Nats over a constant of rows left out, predicted by the networks and by the reference.
    """

    reference: IntegratedFit = field(repr=False)
    share: float
    gains: FloatArray = field(repr=False)

    @cached_property
    def mixed(self) -> FloatArray:
        """Nats over a constant of these rows, predicted by both with their weights, (n,)."""
        with np.errstate(divide="ignore"):
            weights = np.log([self.share, 1.0 - self.share])
        return np.asarray(np.logaddexp(*(self.gains + weights[:, None])))

    @property
    def notes(self) -> tuple[Status, ...]:
        """FELL_BACK where the reference predicts alone; whether a constant would do."""
        notes = () if self.share > 0.0 else (Status.FELL_BACK,)
        return (*notes, Status.NO_BETTER_THAN_CONSTANT) if held_out.unsure(self.mixed) else notes


def witness_of(X: FloatArray, t: FloatArray, sample: Sample) -> NetworkWitness | None:
    """The reference of standardised rows and the share of networks that `sample` makes; None of too few rows."""
    rows, rank = held_out.some_rows(X, t[:, None], most=MOST_ROWS)
    if rank.max() + 1 < 2 * held_out.N_FOLDS or not np.ptp(t) > 0.0:
        return None
    Z, shown, fold = X[rows], t[rows], rank % held_out.N_FOLDS
    model = RadialModel(None, "gaussian", True)

    def networks(k: int, train: npt.NDArray[np.bool_], seen: FloatArray) -> Prediction:
        return cast(Prediction, sample(Z[train], seen).predict(Z[~train]))

    def radial(k: int, train: npt.NDArray[np.bool_], seen: FloatArray) -> Prediction:
        return fit_stacked(Z[train], seen, model)[0].predict(Z[~train])

    known = held_out.gains_over_constant(shown[:, None], fold, radial)
    reference = fit_stacked(X, t, model)[0]
    gains = np.array([held_out.gains_over_constant(shown[:, None], fold, networks), known])
    share = float(held_out.stacking_weights(gains)[0])
    share = 0.0 if share < LEAST_WEIGHT else 1.0 if share > 1.0 - LEAST_WEIGHT else share
    return NetworkWitness(reference, share, gains)


def notes_beside(witness: NetworkWitness, notes: list[Status]) -> list[Status]:
    """What is to be said of chains and folds; nothing of chains that disagree where the reference predicts alone."""
    kept = [note for note in notes if witness.share > 0.0 or note is not Status.CHAINS_DISAGREE]
    return [*kept, *witness.notes]


@dataclass(frozen=True, eq=False, kw_only=True)
class WitnessedNetworks(SampledNetworks):
    """Networks drawn from their posterior, and the reference beside them.

    Attributes
    ----------
    witness : NetworkWitness
        The reference, and the share of the networks.
    """

    witness: NetworkWitness = field(repr=False)

    @override
    def predict(self, rows: ArrayLike) -> Prediction:
        """Mixtures over the networks and the reference."""
        rows = self.networks.checked(rows)
        return self._mixed(lambda: cast(Prediction, super(WitnessedNetworks, self).predict(rows)), rows)

    @override
    def leave_one_out(self) -> LeaveOneOut:
        """Each row predicted from all others: by importance weights of the draws, and exactly by the reference."""
        there = self.witness.reference.leave_one_out()
        if self.witness.share == 0.0:
            return there
        here = super().leave_one_out()
        assert here.prediction is not None and there.prediction is not None
        share = self.witness.share
        mixed = Prediction.mixture([here.prediction, there.prediction], [share, 1.0 - share])
        return LeaveOneOut.of(mixed, self.target[:, 0])

    @property
    @override
    def noise_std(self) -> FloatArray:
        """Root mean square of the noise over the mixture, (1,)."""
        share = self.witness.share
        squares = share * self.noise.mean(axis=0) + (1.0 - share) * self.witness.reference.noise_std**2
        return np.asarray(np.sqrt(squares))

    @property
    @override
    def details(self) -> tuple[str, ...]:
        """What refitted folds say of networks and reference."""
        share, mixed = self.witness.share, self.witness.mixed
        gain, error = held_out.mean_gain(mixed), held_out.error_of_mean(mixed)
        said = f"networks have {100.0 * share:.0f} % of the predictions, all radial functions the rest: rows left out "
        return (f"{said}of refitted folds are worth {gain:.2g} ± {error:.1g} nats each over a constant",)

    def _mixed(self, networks: Callable[[], Prediction], rows: FloatArray) -> Prediction:
        share = self.witness.share
        if share == 1.0:
            return networks()
        reference = self.witness.reference.predict(rows)
        return Prediction.mixture([networks(), reference], [share, 1.0 - share]) if share > 0.0 else reference
