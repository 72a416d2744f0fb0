"""
What does a prior mean?
=======================

A prior over functions is best looked at: draw some. Each panel shows functions that a covariance expects before any data; choose the one
whose curves look like those you would not be surprised to see.
"""

import matplotlib.pyplot as plt
import numpy as np

from bayessel.covariance import Linear, Matern12, Matern52, Periodic, SquaredExponential

# %%
# Every scale is one; parameters of a covariance are logarithms.

x = np.linspace(0, 4, 150)
families = {
    "SquaredExponential": SquaredExponential(),
    "Matern52": Matern52(),
    "Matern12": Matern12(),
    "Linear": Linear(),
    "Periodic": Periodic(),
    "SquaredExponential * Periodic": SquaredExponential() * Periodic(amplitude=False),
}
fig, axes = plt.subplots(2, 3, figsize=(9, 5), sharex=True)
rng = np.random.default_rng(0)
for ax, (name, family) in zip(axes.flat, families.items(), strict=True):
    theta = np.zeros(len(family.names(1)))
    K = family.matrix(theta, x[:, None])
    ax.plot(x, rng.multivariate_normal(np.zeros(150), K + 1e-8 * np.eye(150), size=4, method="cholesky").T, lw=1)
    ax.set_title(name, fontsize="medium")
plt.show()
