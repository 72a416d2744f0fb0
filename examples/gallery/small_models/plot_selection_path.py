"""
When does another function stop paying?
=======================================

A search adds and removes functions, guided by the evidence. Its path shows what each size is worth: steep at first, then flat. The
search returns the smallest model within a nat of the best, because a nat is no reason to take more.
"""

import matplotlib.pyplot as plt
import numpy as np

import bayessel as bs

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(-8, 8, size=(150, 1)), axis=0)
y = np.sin(x[:, 0]) + 0.3 * x[:, 0] + 0.2 * rng.normal(size=150)
F = bs.RBFDictionary(x, bs.width(omega=1.0), bias=False).design(x)

fit = bs.linear.search(F, y, "sffs", centre=True)
print(f"{fit.n_basis} functions, {fit.n_added} were added and {fit.n_removed} removed on the way")

# %%
sizes = sorted(fit.path)
values = np.array([fit.path[size].value for size in sizes])
fig, ax = plt.subplots()
ax.plot(sizes, values - values.max(), "o-", ms=4)
ax.axvline(fit.n_basis, color="C1", label=f"returned: {fit.n_basis} functions")
ax.axhline(-1, color="k", ls=":", label="a nat below the best")
ax.set(xlabel="functions", ylabel="model evidence, from the best", ylim=(-40, 2), title="A steep rise, then a plain")
ax.legend(loc="lower right")
plt.show()
