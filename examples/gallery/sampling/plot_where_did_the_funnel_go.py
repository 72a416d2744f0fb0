"""
Why does my hierarchy not mix?
==============================

In a hierarchy the spread of the effects and the effects themselves form a funnel: where the spread is small, the effects have no room.
One step size cannot serve both ends. `bs.sample` integrates the effects out and draws them afterwards, and the funnel is gone.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pymc as pm

import bayessel as bs

effect = np.array([28.0, 8, -3, 7, -1, 1, 18, 12])
error = np.array([15.0, 10, 16, 11, 9, 11, 10, 18])

with pm.Model() as schools:
    mu, tau = pm.Normal("mu", 0, 10), pm.HalfNormal("tau", 10)
    theta = pm.Normal("theta", mu, tau, shape=8)
    pm.Normal("effect", theta, error, observed=effect)

settings = {"draws": 500, "tune": 300, "chains": 2, "random_seed": 1, "progressbar": False}
default = bs.sample(schools, **settings)
with schools, warnings.catch_warnings(action="ignore"):
    plain = bs.sample(schools, step=bs.PersistentHMC([mu, tau, theta]), **settings)

# %%
fig, axes = plt.subplots(1, 2, sharex=True, sharey=True, figsize=(8, 4))
for ax, trace, title in (
    (axes[0], plain, "Hamiltonian steps of all variables"),
    (axes[1], default, "effects integrated out"),
):
    log_tau = np.log(trace.posterior["tau"].values.ravel())
    ax.plot(trace.posterior["theta"].values[..., 0].ravel(), log_tau, ".", ms=3, alpha=0.5)
    ess = bs.diagnostics.convergence(trace).table.loc["tau", "ess_bulk"]
    ax.set(xlabel="effect of the first school", title=f"{title}\n{ess:.0f} effective draws of tau")
axes[0].set_ylabel("log tau")
plt.show()
