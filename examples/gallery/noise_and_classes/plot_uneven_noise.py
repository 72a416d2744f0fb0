"""
What if some places are noisier than others?
============================================

One noise level for all rows is too wide in the quiet places and too narrow in the loud ones. ``likelihood="heteroscedastic"`` makes the
logarithm of the noise a second function of the inputs.
"""

import matplotlib.pyplot as plt
import numpy as np

import bayessel as bs

rng = np.random.default_rng(1)
X = np.sort(rng.uniform(-3, 3, size=(120, 1)), axis=0)
y = np.sin(2 * X[:, 0]) + np.exp(0.7 * X[:, 0] - 1.5) * rng.normal(size=120)

even = bs.GPRegressor("map", random_state=0).fit(X, y)
uneven = bs.GPRegressor(likelihood="heteroscedastic", random_state=0).fit(X, y)
print("one noise level:", even.status_.name)

# %%
grid = np.linspace(-3, 3, 200)[:, None]
fig, axes = plt.subplots(1, 2, sharey=True, figsize=(8, 4))
for ax, model, title in ((axes[0], even, "one noise level"), (axes[1], uneven, "noise as a function")):
    mean, std = model.predict(grid, return_std=True)
    ax.fill_between(grid[:, 0], mean - 1.64 * std, mean + 1.64 * std, alpha=0.25)
    ax.plot(grid, mean)
    ax.plot(X, y, ".", color="0.4", ms=4)
    ax.set(xlabel="x", title=title)
axes[0].set_ylabel("y, 90 % intervals")
plt.show()
