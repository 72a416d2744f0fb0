"""
Does the prior decide the answer?
=================================

An evidence depends on the prior as much as on the data: a prior ten times as wide lowers it by up to 2.3 nats for each unknown.
`prior_sensitivity` shows the whole curve from one run, so that nobody has to guess how much of a Bayes factor is prior.
"""

import matplotlib.pyplot as plt
import numpy as np
import pymc as pm

import bayessel as bs

effect = np.array([28.0, 8, -3, 7, -1, 1, 18, 12])
error = np.array([15.0, 10, 16, 11, 9, 11, 10, 18])

with pm.Model() as schools:
    mu = pm.Normal("mu", 0, 5)
    tau = pm.HalfCauchy("tau", 5)
    theta = pm.Normal("theta", mu, tau, shape=8)
    pm.Normal("effect", theta, error, observed=effect)

curve = bs.diagnostics.prior_sensitivity(schools, None, "tau", random_seed=1)
print(curve)

# %%
ax = curve.plot()
ax.set_title("Eight schools: a narrower prior of tau is more probable")
plt.show()
