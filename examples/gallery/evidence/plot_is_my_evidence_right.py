"""
Is my evidence right?
=====================

An evidence is an integral over all unknowns, and a wrong one looks like a right one. So try it where the truth is known in closed form:
heads of a coin, a mean under normal noise, a rate of counts. Each result comes with an error and says whether it is reliable.
"""

import matplotlib.pyplot as plt
import numpy as np
import pymc as pm
from scipy import special, stats

import bayessel as bs

y = np.array([0.3, 1.4, 0.8, 2.1, -0.2])
counts = np.array([3, 5, 2, 4, 7, 1])

with pm.Model() as coin:
    pm.Binomial("heads", 10, pm.Beta("p", 2, 2), observed=7)
with pm.Model() as mean:
    pm.Normal("y", pm.Normal("mu", 0, 2), 1, observed=y)
with pm.Model() as rate:
    pm.Poisson("counts", pm.Gamma("rate", 2, 0.5), observed=counts)

n, total = len(counts), counts.sum()
truth = {
    "coin": np.log(special.comb(10, 7)) + special.betaln(9, 5) - special.betaln(2, 2),
    "mean": stats.multivariate_normal(np.zeros(5), np.eye(5) + 4).logpdf(y),
    "rate": 2 * np.log(0.5)
    + special.gammaln(2 + total)
    - special.gammaln(2)
    - (2 + total) * np.log(0.5 + n)
    - special.gammaln(counts + 1).sum(),
}
found = {
    name: bs.evidence(model, random_seed=1, quiet=True)
    for name, model in {"coin": coin, "mean": mean, "rate": rate}.items()
}
for name, one in found.items():
    print(f"{name}: {one.value:.6f}, truth {truth[name]:.6f}, reliable: {one.reliable}")

# %%
fig, ax = plt.subplots()
errors = [max(abs(found[name].value - truth[name]), 1e-16) for name in truth]
ax.semilogy(list(truth), errors, "o", ms=9, label="distance from the closed form")
ax.axhline(0.1, color="k", ls=":", label="a tenth of a nat, which nobody would notice")
ax.set(ylabel="nats", ylim=(1e-17, 10), title="Three evidences with a known truth")
ax.margins(x=0.3)
ax.legend()
plt.show()
