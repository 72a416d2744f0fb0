"""
How small can a classifier be?
==============================

`RVMClassifier` keeps a handful of radial functions of the hundred on offer. Its boundary is drawn by these alone, and yet close to that
of all functions together.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

import bayessel as bs

X, y = make_moons(150, noise=0.25, random_state=1)
few = bs.RVMClassifier(width=1.0).fit(X, y)
many = bs.EvidenceClassifier(width=1.0).fit(X, y)
print(f"{few.n_basis_} functions, {few.status_.name}")

# %%
a, b = np.meshgrid(np.linspace(-2, 3, 100), np.linspace(-1.5, 2, 100))
grid = np.column_stack([a.ravel(), b.ravel()])
fig, ax = plt.subplots()
ax.scatter(*X.T, c=np.where(y == 1, "C0", "C1"), s=15)
for model, style in ((many, "--"), (few, "-")):
    ax.contour(a, b, model.predict_proba(grid)[:, 1].reshape(a.shape), [0.5], colors="k", linestyles=style)
ax.plot([], [], "k-", label=f"{few.n_basis_} functions")
ax.plot([], [], "k--", label="a function at each of 150 rows")
ax.set(title="Where the probability is one half", xlabel="x₁", ylabel="x₂")
ax.legend()
plt.show()
