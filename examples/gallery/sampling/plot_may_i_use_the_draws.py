"""
May I use these draws?
======================

Chains that have not come to the same place give no posterior. `bs.diagnostics.convergence` reads any trace, judges every variable and
says what to do; ArviZ draws the chains. Here a posterior has two modes, and chains that stay in one of them disagree.
"""

import warnings

import arviz as az
import matplotlib.pyplot as plt
import pymc as pm

import bayessel as bs

with pm.Model() as two_modes:
    x = pm.Normal("x", 0, 3)
    pm.Normal("y", x**2, 0.5, observed=4.0)  # x is 2, or -2

with warnings.catch_warnings(action="ignore"):  # it says that the draws should not be used
    trace = bs.sample(two_modes, 300, tune=200, chains=4, random_seed=3, progressbar=False)
print(bs.diagnostics.convergence(trace))
print(az.summary(trace)[["mean", "sd", "r_hat"]])

# %%
fig, ax = plt.subplots()
for chain in trace.posterior["x"].values:
    ax.plot(chain, lw=0.7)
ax.set(xlabel="draw", ylabel="x", title=f"R-hat {float(az.rhat(trace)['x']):.1f}: every chain sees one of two modes")
plt.show()
