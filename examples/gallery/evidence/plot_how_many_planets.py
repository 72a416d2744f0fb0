"""
How many planets?
=================

The speed of a star along our line of sight moves in circles, one sine for each planet. How many sines do forty noisy speeds support?
The periods are unknown, which makes the evidence hard: there are many narrow modes. Here a grid of periods stands for the prior, and
given the periods everything is linear, so each evidence is a sum of exact ones.
"""

from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np

import bayessel as bs

rng = np.random.default_rng(6)
time = np.sort(rng.uniform(0, 100, 40))
speed = 8 * np.sin(2 * np.pi * time / 31) + 5 * np.sin(2 * np.pi * time / 9.3 + 1) + 2 * rng.normal(size=40)
periods = np.geomspace(4, 60, 60)


def columns(*chosen):
    return np.column_stack([wave(2 * np.pi * time / period) for period in chosen for wave in (np.sin, np.cos)])


def log_evidence(planets):
    """Average over all sets of periods, amplitudes N(0, 6²) and noise 2 integrated exactly."""
    one = [
        bs.linear.log_evidence(columns(*chosen) if chosen else np.zeros((40, 1)), speed, 1 / 36, 1 / 4, centre=True)
        for chosen in combinations(periods, planets)
    ]
    return np.logaddexp.reduce(one) - np.log(len(one))


values = np.array([log_evidence(planets) for planets in (0, 1, 2)])
best = max(
    combinations(periods, 2),
    key=lambda chosen: bs.linear.log_evidence(columns(*chosen), speed, 1 / 36, 1 / 4, centre=True),
)
print("log evidence of 0, 1, 2 planets:", values.round(1), " best periods", np.round(best, 1))

# %%
# A third planet would take 34 220 triples of periods; `BasisSearchRegressor` and `bs.linear.search` are for that.

fig, axes = plt.subplots(1, 2, figsize=(8.5, 4), width_ratios=[2, 1])
grid = np.linspace(0, 100, 600)
design = np.column_stack([wave(2 * np.pi * grid / period) for period in best for wave in (np.sin, np.cos)])
fit = bs.linear.posterior(columns(*best), speed - speed.mean(), 1 / 36, 1 / 4)
axes[0].plot(grid, speed.mean() + design @ fit.coef)
axes[0].errorbar(time, speed, 2, fmt=".", color="0.4")
axes[0].set(xlabel="day", ylabel="speed, m/s", title="Two planets")
axes[1].bar(["0", "1", "2"], values - values[0], color="C0")
axes[1].set(xlabel="planets", ylabel="log evidence over that of none", title="Two are supported")
plt.show()
