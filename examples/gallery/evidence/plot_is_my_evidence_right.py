"""
Is my evidence right?
=====================

An evidence is an integral over all unknowns, and any one method can miss. `bs.evidence` computes it by routes that share nothing but
the density, each of which says whether it believes itself. Here the truth is known in closed form.
"""

import matplotlib.pyplot as plt
import numpy as np
import pymc as pm
from scipy import stats

import bayessel as bs

rng = np.random.default_rng(0)
x = rng.normal(size=(12, 4))
y = x @ [1.0, -0.5, 0.0, 0.3] + 0.5 * rng.normal(size=12)

with pm.Model() as model:
    w = pm.Normal("w", 0, 1, shape=4)
    pm.Normal("y", x @ w, 0.5, observed=y)

truth = stats.multivariate_normal(np.zeros(12), x @ x.T + 0.25 * np.eye(12)).logpdf(y)
found = bs.evidence(model, routes=["laplace", "bridge", "annealing"], effort=0.3, random_seed=1, quiet=True)
print(found)
print(f"truth {truth:.3f} nats")

# %%
ax = found.plot()
ax.axvline(truth, color="k", ls=":", label="truth")
ax.set_title("Routes that know nothing of each other meet at the truth")
ax.legend()
plt.show()
