"""
How far may the curve be off?
=============================

A fitted curve is a guess. `EvidenceRegressor` without any settings averages over the width of its functions, the signal and the
noise, so its error bars hold what is unknown of all of them. They are narrow where rows are dense, wider in the gap, and they grow
outside of the data.
"""

import matplotlib.pyplot as plt
import numpy as np

import bayessel as bs

rng = np.random.default_rng(1)
X = np.concatenate([rng.uniform(0, 4, 40), rng.uniform(6, 10, 40)])[:, None]  # nothing between 4 and 6
y = np.sin(X[:, 0]) + 0.15 * rng.normal(size=80)

model = bs.EvidenceRegressor().fit(X, y)
print(model.describe())

# %%
# Ninety in a hundred new rows should lie inside of the band: it is for observations, noise included.

grid = np.linspace(-2, 12, 300)[:, None]
there = model.predictive(grid)
low, high = there.quantile([0.05, 0.95])

fig, ax = plt.subplots()
ax.fill_between(grid[:, 0], low, high, alpha=0.25, label="90 % of new rows")
ax.plot(grid, there.mean, label="mean")
ax.plot(grid, np.sin(grid), "k:", label="truth")
ax.plot(X, y, ".", color="0.3", label="rows")
ax.set(xlabel="x", ylabel="y", ylim=(-2.8, 2.4), title="Wide where nothing was seen")
ax.legend(ncols=4, loc="upper center")
plt.show()
