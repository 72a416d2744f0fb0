"""
How do models of different kinds compare?
=========================================

A process, a sparse model and bumps with one precision predict each row from all the others; the sum of the log densities puts them on
one table. The error of a difference is that of the differences of the rows, which is much smaller than that of each sum.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

import bayessel as bs

X, y = load_diabetes(return_X_y=True, as_frame=True)
X, y = X.iloc[::3], y.iloc[::3]
fits = {
    "GPRegressor": bs.GPRegressor(random_state=0).fit(X, y),
    "EvidenceRegressor": bs.EvidenceRegressor().fit(X, y),
    "RVMRegressor": bs.RVMRegressor().fit(X, y),
    "type II": bs.EvidenceRegressor(inference="type2").fit(X, y),
}
left_out = {name: fit.leave_one_out().log_densities for name, fit in fits.items()}

# %%
best = max(left_out, key=lambda name: left_out[name].sum())
fig, ax = plt.subplots(figsize=(7, 3))
for place, terms in enumerate(left_out.values()):
    difference = terms - left_out[best]
    ax.errorbar(difference.sum(), place, xerr=2 * np.sqrt(len(y)) * difference.std(), fmt="o", capsize=3)
ax.set_yticks(range(len(fits)), fits)
ax.axvline(0, color="k", ls=":")
ax.set(
    xlabel=f"log density of rows left out, less that of {best} (bars: two standard errors)",
    title="Diabetes data, 148 rows",
)
plt.show()
