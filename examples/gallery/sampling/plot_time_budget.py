"""
What if there is only a second?
===============================

With ``time_budget=`` a run ends on time, tuning included, with chains of equal length, and says how far it came. The longer it may
take, the narrower the error of the answer.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pymc as pm

import bayessel as bs

rng = np.random.default_rng(0)
x = rng.normal(size=(200, 5))
y = rng.random(200) < 1 / (1 + np.exp(-x @ [1.0, -1, 0.5, 0, 0]))

with pm.Model() as model:
    w = pm.Normal("w", 0, 2, shape=5)
    pm.Bernoulli("y", logit_p=x @ w, observed=y)

budgets, errors, draws = (0.3, 0.6, 1.2), [], []
for budget in budgets:
    with warnings.catch_warnings(action="ignore"):  # that the run has ended before all draws were made
        trace = bs.sample(
            model, 20_000, tune=200, chains=2, random_seed=1, time_budget=f"{budget}s", progressbar=False, cores=1
        )
    w0 = trace.posterior["w"].values[..., 0]
    draws.append(w0.size)
    ess = float(bs.diagnostics.convergence(trace).table["ess_bulk"].min()) if w0.size else np.nan
    errors.append(w0.std() / np.sqrt(ess))
    print(f"{budget} s: {trace.attrs['status']}, {w0.size} draws")

# %%
fig, ax = plt.subplots()
ax.loglog(budgets, errors, "o-")
for budget, error, count in zip(budgets, errors, draws, strict=True):
    ax.annotate(f"{count} draws", (budget, error), xytext=(5, 5), textcoords="offset points")
ax.set(xlabel="seconds", ylabel="Monte Carlo error of a weight", title="Four times as long, half of the error")
ax.set_xticks(budgets, budgets)
ax.minorticks_off()
ax.margins(x=0.2)
plt.show()
