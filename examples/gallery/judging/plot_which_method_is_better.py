"""
Which method is better, and is it chance?
=========================================

One split of the data says little. `delve` fits every method to several training sets that share no row, so that the scatter over sets
and over test rows gives standard errors, and paired tests say which differences are real.
"""

from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import BayesianRidge

import bayessel as bs
from bayessel.diagnostics import delve

rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, size=(700, 2))
y = np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.2 * rng.normal(size=700)

tasks = [delve.Task.from_arrays(X, y, size=n, instances=4, test_cases=60, name="waves") for n in (16, 32, 64)]
methods = {"evidence": bs.EvidenceRegressor(), "forest": RandomForestRegressor(50), "linear": BayesianRidge()}
with TemporaryDirectory() as folder:
    study = delve.run(methods, tasks, store=f"{folder}/study", n_jobs=1, progressbar=False)
    print(study.table("squared"))
    found = {
        name: [study.compare(name, "linear", "squared", task) for task in study.tasks]
        for name in ("evidence", "forest")
    }

# %%
fig, ax = plt.subplots()
for name, pairs in found.items():
    ax.errorbar(
        [16, 32, 64], [p.mean for p in pairs], [2 * p.std_error for p in pairs], fmt="o-", capsize=3, label=name
    )
ax.axhline(0, color="k", ls=":", label="linear")
ax.set(xlabel="training rows", ylabel="squared loss less that of the linear model", xticks=[16, 32, 64])
ax.set_title("Four training sets of each size; bars are two standard errors")
ax.legend()
plt.show()
