"""How soon chains of a network are where the posterior is, on training sets of 64 cases.

Guards `bayessel.samplers.network.step`.
"""

import numpy as np
import pytest

import bayessel as bs
from bayessel.diagnostics.delve import families
from bayessel.estimators._network import planned
from bayessel.estimators.standardise import Standardisation
from bayessel.mlp import Architecture
from bayessel.mlp.architecture import hidden_units
from bayessel.samplers.network.step import NetworkSampler
from bayessel.samplers.run.start import initial_points

CASES = 64
#: updates between looks at a chain; of so many looks in a row, all but one must be inside
EVERY, LOOKS = 5, 5


def task(name, seed):
    """Standardised inputs and targets."""
    X, y = families.family(name).sample(CASES, random_state=seed)
    units = Standardisation.of(X.to_numpy(), y.to_numpy())
    return units.inputs(X.to_numpy()), np.ravel(units.targets(y.to_numpy()))


def updates_of_a_default_fit(X, t):
    """Of one chain, tuning included."""
    size = Architecture(X.shape[1], hidden_units("auto", *X.shape)).size
    plan = planned(bs.MLPRegressor().get_params(), len(X), size)
    return plan.updates * (plan.tune + plan.draws)


def log_noise(model, seed, initialise, every=EVERY):
    """The log standard deviation of the noise of a chain that begins as those of `sample` do, after each draw."""
    rng = np.random.default_rng(seed)
    step = NetworkSampler(model=model, updates_per_draw=every, initialise=initialise, rng=rng)
    point = initial_points(model, None, [rng])[0]
    step.setup_chain(rng, 10_000, 0)
    while True:
        point, _ = step.step(point)
        yield -0.5 * float(np.ravel(point["tau_noise_log__"])[0])


def arrival(model, seed, low, high, most, initialise=True):
    """Updates until the noise is inside (low, high) at all looks in a row but one; infinity if more than `most`."""
    inside = []
    for k, value in enumerate(log_noise(model, seed, initialise), start=1):
        inside.append(low < value < high)
        if sum(inside[-LOOKS:]) >= LOOKS - 1:
            return max(k - LOOKS + 1, 1) * EVERY
        if k * EVERY > most:
            return np.inf


def arrivals(name, data_sets, chains, draws):
    """Updates until each chain is there, with initialisation and without, and a tenth of those of a default fit.

    There is where long runs, half of them begun without any help, have the noise in all but two of a hundred draws.
    """
    found, without = [], []
    for data in range(data_sets):
        X, t = task(name, data)
        model, most = bs.models.mlp(X, t), 0.1 * updates_of_a_default_fit(X, t)
        late = []
        for chain in range(4):
            run = log_noise(model, [1, data, chain], chain % 2 == 0, every=80)
            late += [next(run) for _ in range(draws)][draws // 2 :]
        low, high = np.quantile(late, [0.01, 0.99])
        for chain in range(chains):
            found.append(arrival(model, [2, data, chain], low, high, most))
            without.append(arrival(model, [2, data, chain], low, high, most, initialise=False))
    return found, without, most


def test_chains_are_there_within_a_tenth_of_the_budget():
    found, without, most = arrivals("pumadyn-8nm", 1, 6, 12)
    assert len(found) == 6 and max(found) < most
    # those that begin in the vague prior; windows and a momentum that is kept bring them in sooner than without
    assert np.median(without) > 1.2 * np.median(found)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kin-8nm", "pumadyn-8nm", "friedman-1"])
def test_twenty_chains_are_there_within_a_tenth_of_the_budget(name):
    """One may be late: a chain has gone astray once in 80, and runs of other bits (compiled anew) have others."""
    found, without, most = arrivals(name, 4, 5, 80)
    assert len(found) == 20 and sorted(found)[-2] < most
    if name == "pumadyn-8nm":  # most of kin is noise, with which all chains begin; Friedman's function takes both long
        assert np.median(without) > 1.5 * np.median(found)
