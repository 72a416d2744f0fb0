"""
How sure can I be of the width?
===============================

A best width is a number without an error bar. With ``widths="posterior"`` the width is a random variable of a PyMC model with a
prior, sampled together with the precisions; the result is an interval instead of a choice.
"""

import matplotlib.pyplot as plt
import numpy as np

import bayessel as bs

rng = np.random.default_rng(5)
x = np.sort(rng.uniform(-1, 1, 60))
y = np.sin(5 * x) + 0.3 * rng.normal(size=60)

found = bs.compare_widths(x, y, "posterior", centers=10, draws=400, tune=300, chains=2, progressbar=False)
low, middle, high = np.ravel(found.posterior.quantile([0.025, 0.5, 0.975]))
print(f"width {middle:.2f}, 95 % interval {low:.2f} to {high:.2f}; highest evidence at {found.best('evidence'):.2f}")

# %%
draws = np.ravel(found.posterior.trace.posterior["width"])
fig, ax = plt.subplots()
ax.hist(np.log10(draws), bins=40, density=True, alpha=0.5)
for value in (low, high):
    ax.axvline(np.log10(value), color="C0", ls="--")
ax.axvline(np.log10(found.best("evidence")), color="C1", label="highest evidence")
ticks = np.array([0.2, 0.3, 0.5, 0.8])
ax.set_xticks(np.log10(ticks), ticks)
ax.set(xlabel="width r", yticks=[], title="Posterior of the width; dashed: 95 % interval")
ax.legend()
plt.show()
