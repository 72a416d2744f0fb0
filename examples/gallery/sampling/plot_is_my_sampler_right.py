"""
Does my sampler draw from the posterior?
========================================

Draw parameters from the prior, data from the model, and posterior draws given these data: the rank of the true parameter among them is
uniform if, and only if, the sampler is right. Hundreds of such runs are one call.
"""

import matplotlib.pyplot as plt
import numpy as np
import pymc as pm

import bayessel as bs

with pm.Model() as model:
    t = pm.Data("t", np.zeros(3))
    precision = pm.Gamma("precision", 2.0, 2.0)
    mean = pm.Normal("mean", 0.0, 1.0)
    pm.Normal("obs", mean, tau=precision, observed=t)

ranks = bs.diagnostics.calibration.sbc(
    model, bs.steps, replications=100, draws=31, thin=1, tune=30, random_seed=3, progressbar=False, n_jobs=1
)
print(ranks.text)

# %%
fig, axes = plt.subplots(1, len(ranks.names), sharey=True, figsize=(8, 3.2))
for ax, name, column in zip(axes, ranks.names, ranks.ranks.T, strict=True):
    ax.hist(column, bins=np.arange(-0.5, 32.5, 4))
    ax.axhline(len(column) / 8, color="k", ls=":")
    ax.set(xlabel="rank of the truth among 31 draws", title=name)
axes[0].set_ylabel("simulations")
plt.show()
