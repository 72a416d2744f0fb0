"""
What if I know how exact each row is?
=====================================

Two instruments measure the same curve, one ten times as exact as the other. ``noise_std`` tells the fit so, up to a common factor
that it finds itself; exact rows then count for more.
"""

import matplotlib.pyplot as plt
import numpy as np

import bayessel as bs

rng = np.random.default_rng(3)
X = rng.uniform(0, 6, size=(60, 1))
exact = np.arange(60) < 15
s = np.where(exact, 0.1, 1.0)
y = np.sin(X[:, 0]) + s * rng.normal(size=60)

told = bs.EvidenceRegressor().fit(X, y, noise_std=s)
untold = bs.EvidenceRegressor().fit(X, y)

# %%
grid = np.linspace(0, 6, 200)[:, None]
fig, ax = plt.subplots()
ax.plot(X[~exact], y[~exact], ".", color="0.7", label="noisy instrument")
ax.plot(X[exact], y[exact], "o", color="0.2", ms=5, label="exact instrument")
ax.plot(grid, np.sin(grid), "k:", label="truth")
ax.plot(grid, untold.predict(grid), "--", label="all rows alike")
ax.plot(grid, told.predict(grid), label="noise of each row given")
ax.set(xlabel="x", ylabel="y", title="Fifteen exact rows are worth more than forty-five noisy ones")
ax.legend(fontsize="small")
plt.show()
