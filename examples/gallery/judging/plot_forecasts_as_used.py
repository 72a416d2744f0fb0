"""
How far ahead can this series be predicted?
===========================================

A model of a series should be judged as it is used: fitted to the past, asked for the next values, again and again.
`rolling_origin` does that, with standard errors that know that errors of forecasts go together in time.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import BayesianRidge

import bayessel as bs
from bayessel.basis import lagged

rng = np.random.default_rng(0)
months = pd.date_range("2005-01-01", periods=150, freq="MS")
noise = np.convolve(rng.normal(size=150), 0.8 ** np.arange(12))[:150]
load = pd.Series(noise + 2 * np.sin(2 * np.pi * np.arange(150) / 12), months)

scores = {}
for horizon in (1, 3, 6, 12):
    inputs, target, _ = lagged(load, lags=[1, 2, 12], horizon=horizon)
    models = {"lags": BayesianRidge()}
    found = bs.diagnostics.rolling_origin(models, inputs, target, initial=80, step=6, horizon=6, gap=horizon - 1)
    scores[horizon] = found.table.iloc[0]
table = pd.DataFrame(scores).T
print(table)

# %%
fig, ax = plt.subplots()
ax.errorbar(table.index, table["squared_error"], 2 * table["squared_error_se"], fmt="o-", capsize=3)
ax.axhline(load.var(), color="k", ls=":", label="variance of the series")
ax.set(
    xlabel="months ahead",
    ylabel="squared error of the forecasts",
    title="What the past still says",
    xticks=list(scores),
)
ax.legend()
plt.show()
