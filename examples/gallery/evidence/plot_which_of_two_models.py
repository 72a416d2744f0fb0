"""
Which of two PyMC models?
=========================

Accidents in a week, counted at twenty crossings: is one rate enough, or does every crossing have its own? Both models are written in
PyMC; the ratio of their evidences answers, and leave-one-out by ArviZ stands beside it, asking which predicts better.
"""

import arviz as az
import matplotlib.pyplot as plt
import numpy as np
import pymc as pm

import bayessel as bs

accidents = np.array([1, 0, 2, 1, 9, 0, 1, 3, 0, 0, 2, 7, 1, 0, 1, 2, 0, 5, 1, 0])

with pm.Model() as one_rate:
    rate = pm.Exponential("rate", 0.5)
    pm.Poisson("accidents", rate, observed=accidents)

with pm.Model() as own_rates:
    mean, shape = pm.Exponential("mean", 0.5), pm.Exponential("shape", 1.0)
    pm.NegativeBinomial("accidents", mu=mean, alpha=shape, observed=accidents)  # rates drawn from a Gamma, summed out

models = {"one rate": one_rate, "own rates": own_rates}
found = {name: bs.evidence(model, random_seed=1, quiet=True) for name, model in models.items()}
print(bs.bayes_factor(found["own rates"], found["one rate"]))

traces = {
    name: bs.sample(model, 400, tune=200, chains=2, random_seed=1, progressbar=False) for name, model in models.items()
}
print(az.compare(traces)[["rank", "elpd", "elpd_diff"]])

# %%
k = np.arange(12)
fig, ax = plt.subplots()
ax.bar(k, np.bincount(accidents, minlength=12), color="0.8", label="crossings")
for (name, model), style in zip(models.items(), ("o--", "o-"), strict=True):
    draws = pm.sample_posterior_predictive(traces[name], model=model, random_seed=1, progressbar=False)
    values = draws.posterior_predictive["accidents"].values.ravel()
    ax.plot(k, 20 * np.bincount(values, minlength=12)[:12] / values.size, style, label=name)
ax.set(xlabel="accidents in a week", ylabel="crossings", title="One rate cannot explain nine at a crossing")
ax.legend()
plt.show()
