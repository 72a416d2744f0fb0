"""
Is an effect a line or a curve?
===============================

A covariance can be made of parts: a smooth function of the first input, a plane in all of them, noise. The function that is found
splits into these parts again, each with error bars of its own. Here the first input acts along a curve, the second along a line.
"""

import matplotlib.pyplot as plt
import numpy as np

import bayessel as bs
from bayessel.covariance import Linear, Noise, SquaredExponential

rng = np.random.default_rng(3)
X = rng.uniform(-2, 2, size=(100, 2))
y = np.cos(2.5 * X[:, 0]) + 0.7 * X[:, 1] + 0.2 * rng.normal(size=100)

parts = SquaredExponential().on([0]) + Linear() + Noise()
model = bs.GPRegressor(covariance=parts, random_state=0).fit(X, y)
default = bs.GPRegressor(random_state=0).fit(X, y)
print(f"log evidence of the parts {model.log_evidence_:.1f}, of the default {default.log_evidence_:.1f} nats")

# %%
# A slice along each input, the other held at nought.

grid = np.linspace(-2, 2, 100)
fig, axes = plt.subplots(1, 2, sharey=True)
for column, (ax, truth) in enumerate(zip(axes, (np.cos(2.5 * grid), 1 + 0.7 * grid), strict=True)):
    slice_ = np.zeros((100, 2))
    slice_[:, column] = grid
    mean, std = model.predict(slice_, return_std=True)
    ax.fill_between(grid, mean - 1.64 * std, mean + 1.64 * std, alpha=0.25)
    ax.plot(grid, mean, label="process")
    ax.plot(grid, truth, "k:", label="truth")
    ax.set(xlabel=f"input {column + 1}", title=("a curve", "a line")[column])
axes[0].set_ylabel("y")
axes[0].legend()
plt.show()
