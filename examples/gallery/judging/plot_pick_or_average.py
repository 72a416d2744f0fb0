"""
Should I pick the best model, or average?
=========================================

With few rows the best of several models is often best by chance. A mixture, weighed by the evidence or by how well rows left out are
predicted, never loses much to the model that turns out best, and its error bars grow where the models disagree.
"""

import matplotlib.pyplot as plt
import numpy as np

import bayessel as bs

rng = np.random.default_rng(3)
X = np.sort(rng.uniform(-2, 2, size=(25, 1)), axis=0)
y = np.sin(3 * X[:, 0]) + 0.3 * rng.normal(size=25)

members = {f"r = {r}": bs.EvidenceRegressor(width=r).fit(X, y) for r in (0.4, 0.8, 1.6)}
by_evidence = bs.average(members, weights="evidence")
stacked = bs.average(members, random_state=0, n_jobs=1)
print(by_evidence.weights_["weight"].round(2), stacked.weights_["weight"].round(2), sep="\n")

# %%
grid = np.linspace(-3, 3, 200)[:, None]
fig, ax = plt.subplots()
for name, member in members.items():
    ax.plot(grid, member.predict(grid), lw=1, label=name)
low, high = by_evidence.predictive(grid).quantile([0.05, 0.95])
ax.fill_between(grid[:, 0], low, high, color="0.5", alpha=0.25, label="average, 90 %")
ax.plot(grid, by_evidence.predict(grid), "k", lw=2, label="average")
ax.plot(X, y, ".", color="0.4")
ax.set(xlabel="x", ylabel="y", ylim=(-3, 3), title="Where the models part, the average is unsure")
ax.legend(fontsize="small", ncols=2)
plt.show()
