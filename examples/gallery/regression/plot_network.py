"""
Does a network know what it does not know?
==========================================

`MLPRegressor` samples the weights of a small network instead of fitting them, and predicts by the mixture of all networks drawn.
Where they disagree the error bars grow. The chains here are short, for the sake of this page; the defaults take some twenty seconds.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import bayessel as bs

rng = np.random.default_rng(2)
X = np.concatenate([rng.uniform(-3, -1, 30), rng.uniform(0.5, 3, 30)])[:, None]
y = np.tanh(3 * X[:, 0]) + 0.3 * X[:, 0] + 0.15 * rng.normal(size=60)

model = bs.MLPRegressor(
    "mc", hidden=6, draws=150, tune=150, updates_per_draw=5, cores=1, random_state=0, progressbar=False
)
with warnings.catch_warnings(action="ignore"):  # chains as short as these have not met yet, and say so
    model.fit(X, y)
print(model.status_.name)

# %%
grid = np.linspace(-5, 5, 200)[:, None]
mean, std = model.predict(grid, return_std=True)
fig, ax = plt.subplots()
ax.fill_between(grid[:, 0], mean - 1.64 * std, mean + 1.64 * std, alpha=0.25, label="90 %")
ax.plot(grid, mean, label="mean of the networks")
ax.plot(X, y, ".", color="0.3", label="rows")
ax.set(xlabel="x", ylabel="y", title="Between the clusters and outside of them networks differ")
ax.legend(loc="upper left")
plt.show()
