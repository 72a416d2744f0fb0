"""
How few functions are enough?
=============================

A relevance vector machine begins with a function at every row and a precision for each weight. Most precisions run away to infinity
and take their functions with them. What is left is a model that can be written down.
"""

import matplotlib.pyplot as plt
import numpy as np

import bayessel as bs

rng = np.random.default_rng(0)
X = np.sort(rng.uniform(-10, 10, size=(120, 1)), axis=0)
y = np.sinc(X[:, 0] / np.pi) + 0.08 * rng.normal(size=120)

model = bs.RVMRegressor(width=3.0).fit(X, y)
print(f"{model.n_basis_} of 121 functions, log evidence {model.log_evidence_:.1f} nats, {model.status_.name}")

# %%
grid = np.linspace(-10, 10, 300)[:, None]
used = model.basis_[model.basis_ < len(X)]
fig, ax = plt.subplots()
ax.plot(X, y, ".", color="0.6", label="rows")
ax.plot(X[used], y[used], "o", mfc="none", ms=10, color="C3", label="rows whose function stays")
ax.plot(grid, model.predict(grid), label=f"{model.n_basis_} functions")
ax.set(xlabel="x", ylabel="y", title="A handful of 120 rows carry the curve")
ax.legend()
plt.show()
