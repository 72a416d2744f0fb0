"""
Are probabilities of models true?
=================================

Where evidences say that a model is right with probability 0.3, it should be the right one in three of ten cases. So: let two models
make data in turn, ask the evidences which it was, and count.
"""

import matplotlib.pyplot as plt
import numpy as np
import pymc as pm

import bayessel as bs


def mean_of_three(width):
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, width)
        pm.Normal("y", mu, 1, observed=pm.Data("data", np.zeros(3)))
    return model


pair = {"narrow": mean_of_three(0.5), "wide": mean_of_three(3)}
found = bs.diagnostics.calibration.model_probabilities(pair, 60, random_seed=1, progressbar=False, n_jobs=1)
print(found)

# %%
count, said, share, error = (np.array(one) for one in zip(*found.ranges("wide"), strict=True))
fig, ax = plt.subplots(figsize=(5, 4.5))
ax.plot([0, 1], [0, 1], "k:", label="true probabilities")
ax.errorbar(said, share, 2 * error, fmt="o", capsize=3, label="ranges of probability, ± 2 standard errors")
ax.set(xlabel="probability of the wide model", ylabel="share of the simulations that it made")
ax.set_title(f"{count.sum():.0f} simulations")
ax.legend(fontsize="small")
plt.show()
