"""
Can I sample my own PyMC model?
===============================

Any PyMC model goes into `bs.sample`. Parts that are Gaussian given the rest are integrated out where the graph of the model proves that
this is exact, here all but two scales of a hierarchy; `explain_steps` says what is done with each variable.
"""

import arviz as az
import matplotlib.pyplot as plt
import numpy as np
import pymc as pm

import bayessel as bs

rng = np.random.default_rng(0)
county = rng.integers(0, 12, size=120)
truth = rng.normal(1.0, 0.6, size=12)
radon = truth[county] + 0.8 * rng.normal(size=120)

with pm.Model() as model:
    level, spread = pm.Normal("level", 0, 3), pm.HalfNormal("spread", 2)
    noise = pm.HalfNormal("noise", 2)
    mean = pm.Normal("mean", level, spread, shape=12)
    pm.Normal("radon", mean[county], noise, observed=radon)

print(bs.explain_steps(model))
trace = bs.sample(model, 500, tune=200, chains=2, random_seed=1, progressbar=False)
print(az.summary(trace, var_names=["level", "spread", "noise"]))

# %%
# Means of counties with few measurements are drawn towards the common level.

rows = np.bincount(county, minlength=12)
raw = np.bincount(county, radon, minlength=12) / np.maximum(rows, 1)
draws = trace.posterior["mean"]
order = np.argsort(raw)
fig, ax = plt.subplots()
ax.plot(raw[order], "x", color="0.4", label="plain mean")
middle, sd = draws.mean(("chain", "draw")).values[order], draws.std(("chain", "draw")).values[order]
ax.errorbar(range(12), middle, 2 * sd, fmt="o", label="posterior, ± 2 standard deviations")
ax.plot(truth[order], "k_", ms=12, label="truth")
ax.set(xlabel="county, by its plain mean", ylabel="radon", title="Twelve counties, each helped by the others")
ax.legend()
plt.show()
