"""
Which width do the data support?
================================

A sum of bumps can follow a curve closely or smoothly: that is decided by their width. `compare_widths` fits the data at every width
of a list and asks several criteria. The evidence is the probability of the data under a width, in nats: 3 nats less are odds of
one to twenty.
"""

import matplotlib.pyplot as plt
import numpy as np

import bayessel as bs

rng = np.random.default_rng(1)
X = np.sort(rng.uniform(0, 1, size=(80, 1)), axis=0)
y = np.sin(12 * X[:, 0]) + 0.1 * rng.normal(size=80)

widths = np.geomspace(0.02, 2, 21)
found = bs.compare_widths(X, y, widths, criteria=("evidence", "gcv", "loo"), progressbar=False)
print(found.verdict())

# %%
# Widths within 3 nats of the best are all plausible; those far left follow the noise, those far right miss the waves.

evidence = found.table["evidence"]
fig, ax = plt.subplots()
ax.semilogx(evidence.index, evidence, "o-")
ax.axhspan(evidence.max() - 3, evidence.max(), alpha=0.2, label="within 3 nats of the best")
ax.axvline(found.best("evidence"), color="k", ls=":", label=f"best, r = {found.best('evidence'):.2f}")
ax.set(xlabel="width r", ylabel="log evidence, nats", title="Too narrow, right, too wide")
ax.legend(loc="lower left", bbox_to_anchor=(0.25, 0))
plt.show()
