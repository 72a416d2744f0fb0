"""
Which terms of a long list are in the data?
===========================================

Sixty candidate frequencies, three of them real. A search by the evidence adds and removes terms; what is chosen can be
read off. It may hold a small term too many: by the evidence that costs less than a nat, and its weight shows how little it is.
"""

import matplotlib.pyplot as plt
import numpy as np

import bayessel as bs

rng = np.random.default_rng(7)
t = np.sort(rng.uniform(0, 10, 200))
frequencies = np.linspace(0.1, 6, 60)
true = {0.8: 1.0, 2.3: 0.6, 4.1: 0.4}
y = sum(size * np.sin(2 * np.pi * f * t) for f, size in true.items()) + 0.4 * rng.normal(size=200)

columns = np.sin(2 * np.pi * np.outer(t, frequencies))
fit = bs.linear.search(columns, y, "sffs", centre=True)
print("found:", frequencies[np.sort(fit.basis)].round(2))

# %%
ridge = np.abs(bs.linear.fit_evidence(columns, y, centre=True).coef)
fig, ax = plt.subplots()
ax.vlines(frequencies, 0, ridge, color="0.7", lw=3, label="weights of all 60 columns")
ax.vlines(frequencies[fit.basis], 0, np.abs(fit.coef), color="C0", lw=3, label="of those selected")
ax.plot(list(true), list(true.values()), "kx", ms=9, label="truth")
ax.set(
    xlabel="frequency",
    ylabel="size of the weight",
    title=f"{fit.n_basis} of sixty are taken, the three true ones among them",
)
ax.legend()
plt.show()
