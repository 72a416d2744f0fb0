"""
Why is a sparse model so sure of itself far away?
=================================================

Away from the rows all functions of a sparse model vanish, and with them its doubts: the plain error bars shrink to the noise, where
they should grow. ``augment=True`` adds what was pruned as a process, and they grow back.
"""

import matplotlib.pyplot as plt
import numpy as np

import bayessel as bs

rng = np.random.default_rng(0)
X = rng.uniform(-5, 5, size=(60, 1))
y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=60)
model = bs.RVMRegressor(width=bs.width(lengthscale=1.0)).fit(X, y)

# %%
grid = np.linspace(-10, 10, 300)[:, None]
fig, axes = plt.subplots(1, 2, sharey=True, figsize=(8, 4))
for ax, augment, title in ((axes[0], False, "plain"), (axes[1], True, "augmented")):
    mean, std = model.predict(grid, return_std=True, augment=augment)
    ax.fill_between(grid[:, 0], mean - 2 * std, mean + 2 * std, alpha=0.25)
    ax.plot(grid, mean)
    ax.plot(grid, np.sin(grid), "k:")
    ax.plot(X, y, ".", color="0.4", ms=4)
    ax.set(xlabel="x", title=title, ylim=(-3.5, 3.5))
axes[0].set_ylabel("y, mean ± two standard deviations")
plt.show()
