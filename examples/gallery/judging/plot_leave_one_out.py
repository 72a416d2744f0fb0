"""
How well would each row be predicted without itself?
====================================================

Leaving each row out and fitting again costs as many fits as there are rows. For models that are linear in their weights, and for
Gaussian processes, the answer is a formula: no second fit, and the same numbers.
"""

import matplotlib.pyplot as plt
import numpy as np

import bayessel as bs

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(-3, 3, 40))
y = np.sin(x) + 0.2 * rng.normal(size=40)
F = bs.RBFDictionary(x[::4], 1.0, bias=False).design(x)
fit = bs.linear.fit_evidence(F, y)
formula = y - fit.leave_one_out().errors

# %%
# The same by forty fits, the precisions held at those of all rows.

refits = np.empty(40)
for row in range(40):
    rest = np.arange(40) != row
    mean = bs.linear.posterior(F[rest], y[rest], fit.alpha, fit.beta).coef
    refits[row] = F[row] @ mean
print("largest difference:", np.abs(formula - refits).max())

fig, ax = plt.subplots()
ax.plot(x, y, ".", color="0.6", label="rows")
ax.plot(x, refits, "o", mfc="none", ms=9, label="forty fits, one row left out of each")
ax.plot(x, formula, "x", ms=5, label="formula")
ax.set(xlabel="x", ylabel="y", title="Leave-one-out without fitting again")
ax.legend()
plt.show()
