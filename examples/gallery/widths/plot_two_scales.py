"""
Are there two time scales in my series?
=======================================

A slow wave with a fast one on top: no single width shows both. A relevance vector machine keeps a few functions at each width, and
the curve of its evidence has one optimum for each scale. `scales` lists the optima, with the dip between them.
"""

import matplotlib.pyplot as plt
import numpy as np

import bayessel as bs

x = np.linspace(0, 10, 90)
flow = 3 * np.sin(0.9 * x) + 0.6 * np.sin(9 * x) + 0.15 * np.random.default_rng(2).normal(size=90)

widths = np.geomspace(0.12, 12, 19)
found = bs.compare_widths(x, flow, widths, model="rvm", criteria=("evidence",), n_jobs=1, progressbar=False)
for scale in found.scales("evidence"):
    print(scale)

# %%
fine, slow = sorted(scale.width for scale in found.scales("evidence")[:2])
grid = np.linspace(0, 10, 400)[:, None]
fig, ax = plt.subplots()
ax.plot(x, flow, ".", color="0.5", label="rows")
for width, style in ((fine, "-"), (slow, "--")):
    model = bs.RVMRegressor(width=width).fit(x[:, None], flow)
    ax.plot(grid, model.predict(grid), style, label=f"r = {width:.2g}: {model.n_basis_} functions")
ax.set(xlabel="time", ylabel="flow", title="Both optima say something true")
ax.legend()
plt.show()
