"""
Are my error bars the right size?
=================================

Where each row lies in its own predictive distribution, as a number between nought and one, is uniform if the error bars are right.
`predictive_calibration` looks at rows left out or at new ones, counts intervals and tests for uniformity.
"""

import matplotlib.pyplot as plt
import numpy as np

import bayessel as bs

rng = np.random.default_rng(0)
X = rng.normal(size=(150, 2))
y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=150)
new = rng.normal(size=(300, 2))
later = np.sin(2 * new[:, 0]) + new[:, 1] + 0.3 * rng.normal(size=300)

models = {
    "average over all that is unknown": bs.EvidenceRegressor(),
    "everything maximised": bs.RVMRegressor(inference="type2", width=0.6),
}
found = {name: bs.diagnostics.predictive_calibration(model.fit(X, y), new, later) for name, model in models.items()}
for name, one in found.items():
    print(name, one.describe(), sep="\n", end="\n\n")

# %%
fig, ax = plt.subplots()
ax.plot([0, 1], [0, 1], "k:", label="right")
for name, one in found.items():
    ax.plot(one.coverage.index, one.coverage["covered"], "o-", label=name)
ax.set(xlabel="what the interval promises", ylabel="new rows inside", title="Error bars, checked on 300 new rows")
ax.legend()
plt.show()
