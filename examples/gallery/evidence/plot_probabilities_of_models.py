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
found.plot()
plt.show()
