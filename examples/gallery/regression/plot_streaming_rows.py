"""
Can new rows come in without a new fit?
=======================================

Rows of a stream are added to a ridge regression by `partial_fit` and taken out again by `forget`: the sums that the fit needs are
changed, and the fit is the one that all rows in the window would give. Here the truth moves, and a window of 200 rows follows it.
"""

import matplotlib.pyplot as plt
import numpy as np

import bayessel as bs

rng = np.random.default_rng(0)
time = np.arange(1200)
X = rng.uniform(-1, 1, size=(1200, 1))
slope = np.sin(2 * np.pi * time / 800)  # the effect changes its sign and comes back
y = slope * X[:, 0] + 0.2 * rng.normal(size=1200)

model = bs.EvidenceRegressor(width=2.0, centers=np.linspace(-1, 1, 5)[:, None]).fit(X[:200], y[:200])
seen, found = [], []
for start in range(200, 1200, 50):
    model.partial_fit(X[start : start + 50], y[start : start + 50])
    model.forget(X[start - 200 : start - 150], y[start - 200 : start - 150])
    seen.append(start + 50)
    found.append(np.ptp(model.predict([[-0.5], [0.5]])) * np.sign(np.diff(model.predict([[-0.5], [0.5]]))[0]))

# %%
fig, ax = plt.subplots()
ax.plot(time, slope, "k:", label="true slope")
ax.plot(np.array(seen) - 100, found, "o-", label="slope in the window, at its middle")
ax.set(xlabel="row", ylabel="slope", title="A window of 200 rows, moved by 50")
ax.legend()
plt.show()
