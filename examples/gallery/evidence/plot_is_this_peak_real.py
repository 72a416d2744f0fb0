"""
Is this peak real?
==================

A spectrum of counts with a bump on a falling background. Theory puts a peak at 6.2, of unknown height.
Two PyMC models, without and with it: the ratio of their evidences says how much the data speak for the peak, its freedom paid for. A
peak that may lie anywhere has to pay for that too, some three nats more here, and nothing is left of it.
"""

import matplotlib.pyplot as plt
import numpy as np
import pymc as pm

import bayessel as bs

rng = np.random.default_rng(4)
energy = np.linspace(0, 10, 50)
counts = rng.poisson(30 * np.exp(-energy / 6) + 14 * np.exp(-0.5 * ((energy - 6.2) / 0.35) ** 2))


def spectrum(peak):
    with pm.Model() as model:
        mean = pm.math.exp(pm.Normal("level", 3, 1) - energy / 6)  # the decay is known
        if peak:
            mean = mean + pm.HalfNormal("height", 20) * np.exp(-0.5 * ((energy - 6.2) / 0.35) ** 2)
        pm.Poisson("counts", mean, observed=counts)
    return model


found = {name: bs.evidence(spectrum(name == "peak"), random_seed=1, quiet=True) for name in ("no peak", "peak")}
factor = bs.bayes_factor(found["peak"], found["no peak"])
print(factor)

# %%
nats = found["peak"].value - found["no peak"].value
fig, ax = plt.subplots()
ax.step(energy, counts, where="mid", color="0.3")
ax.plot(energy, 30 * np.exp(-energy / 6), "C0--", label="true background")
ax.plot(
    energy,
    30 * np.exp(-energy / 6) + 14 * np.exp(-0.5 * ((energy - 6.2) / 0.35) ** 2),
    "C1",
    label="with the true peak",
)
ax.set(xlabel="energy", ylabel="counts", title=f"{nats:+.1f} nats for a peak, odds of {np.exp(nats):.0f} to 1")
ax.legend()
plt.show()
