"""
What if the machine dies in the middle?
=======================================

With ``store=`` the draws are on the disk as they are made. The same call later goes on where the first one ended, and makes the draws
that an undisturbed run would have made, bit for bit. Here the first run is ended early on purpose.
"""

from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
import pymc as pm

import bayessel as bs

with pm.Model() as model:
    tau = pm.HalfNormal("tau", 1)
    x = pm.StudentT("x", nu=4, mu=0, sigma=tau, shape=6)
    pm.Normal("y", x, 0.5, observed=np.linspace(-1, 1, 6))

settings = {"tune": 100, "chains": 1, "random_seed": 1, "cores": 1, "progressbar": False}
with TemporaryDirectory() as folder:
    ended = bs.sample(model, 80, store=f"{folder}/run", **settings)
    resumed = bs.sample(model, 300, store=f"{folder}/run", **settings)
whole = bs.sample(model, 300, **settings)
print("draws taken from the disk:", resumed.attrs["resumed_draws"])
print("the same draws:", bool((resumed.posterior["tau"] == whole.posterior["tau"]).all()))

# %%
fig, ax = plt.subplots()
ax.plot(whole.posterior["tau"][0], color="0.8", lw=4, label="undisturbed run")
ax.plot(ended.posterior["tau"][0], "C0", lw=1.2, label="before the crash")
ax.plot(np.arange(80, 300), resumed.posterior["tau"][0, 80:], "C1", lw=1.2, label="after it")
ax.set(xlabel="draw", ylabel="tau", title="Two calls, one chain")
ax.legend()
plt.show()
