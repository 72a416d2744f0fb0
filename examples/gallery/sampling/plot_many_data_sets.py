"""
How do I fit one model to many data sets?
=========================================

`sample_many` compiles a model once and samples it given each of many data sets: simulations, bootstraps, groups. Here sixty simulated
data sets show how often an interval of 80 % holds the truth.
"""

import matplotlib.pyplot as plt
import numpy as np
import pymc as pm

import bayessel as bs

rng = np.random.default_rng(0)
truth = rng.normal(size=60)
datasets = [{"y": value + 0.5 * rng.normal(size=8)} for value in truth]

with pm.Model() as model:
    theta = pm.Normal("theta", 0.0, 1.0)
    pm.Normal("y", theta, 0.5, observed=np.zeros(8))

fits = bs.sample_many(model, datasets, draws=200, tune=10, chains=2, random_seed=1, progressbar=False, cores=1)
low, high = fits.posterior["theta"].quantile([0.1, 0.9], dim=("chain", "draw")).values
inside = (low < truth) & (truth < high)
print(f"{inside.sum()} of 60 intervals hold the truth")

# %%
order = np.argsort(truth)
fig, ax = plt.subplots()
for place, k in enumerate(order):
    ax.plot([place, place], [low[k], high[k]], color="C0" if inside[k] else "C3", lw=2)
ax.plot(truth[order], "k.", ms=4, label="truth")
ax.set(xlabel="data set", ylabel="theta", title=f"80 % intervals: {inside.sum()} of 60 hold the truth")
ax.legend()
plt.show()
