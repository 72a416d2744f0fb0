"""
How often does it happen in an hour?
====================================

Calls were counted over shifts of different length. A count is not a number with normal noise, and a long shift has more calls:
``likelihood="poisson"`` with ``exposure`` finds the rate in one hour, and predicts whole distributions of counts.
"""

import matplotlib.pyplot as plt
import numpy as np

import bayessel as bs

rng = np.random.default_rng(2)
time = np.sort(rng.uniform(0, 24, 80))
hours = rng.uniform(0.5, 6, 80)
rate = np.exp(1 + np.cos(2 * np.pi * (time - 15) / 24))
calls = rng.poisson(hours * rate)

model = bs.GPRegressor(likelihood="poisson", random_state=0).fit(time[:, None], calls, exposure=hours)

# %%
# The interval is of counts in one hour, so its ends are whole numbers.

grid = np.linspace(0, 24, 150)
there = model.predictive(grid[:, None])
low, high = there.quantile([0.05, 0.95])
fig, ax = plt.subplots()
ax.scatter(time, calls / hours, s=8 * hours, color="0.4", label="calls per hour (larger: longer shift)")
ax.fill_between(grid, low, high, step="mid", alpha=0.2, label="90 % of one-hour counts")
ax.plot(grid, there.mean, label="rate")
ax.plot(grid, np.exp(1 + np.cos(2 * np.pi * (grid - 15) / 24)), "k:", label="true rate")
ax.set(xlabel="time of day", ylabel="calls in an hour", title="Rate from unequal shifts")
ax.legend(fontsize="small", loc="upper left")
plt.show()
