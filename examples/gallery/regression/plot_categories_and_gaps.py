"""
What about words and gaps in a table?
=====================================

Every estimator takes a data frame as it is: numbers, words, ordered categories, true and false. Missing values are refused unless
you say what they mean; with ``missing="indicator"`` they are filled, and a column of its own says where.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import bayessel as bs

rng = np.random.default_rng(0)
n = 160
flats = pd.DataFrame(
    {
        "area": rng.normal(80, 20, n),
        "town": rng.choice(["Bonn", "Kiel", "Ulm"], n),
        "garden": rng.random(n) < 0.3,
        "state": pd.Categorical(rng.choice(["poor", "fair", "good"], n), ["poor", "fair", "good"], ordered=True),
    }
)
price = 3 * flats["area"] + 60 * (flats["town"] == "Bonn") + 30 * flats["garden"] + 15 * rng.normal(size=n)
flats.loc[rng.random(n) < 0.1, "area"] = np.nan
print(flats.head())

# %%
# The lengths have one row for each column that the model sees.

model = bs.GPRegressor(missing="indicator", random_state=0).fit(flats, price)
print(model.relevance_["standardised"].round(1))

# %%
# A gap is filled by the median, so flats of unknown size are predicted less well. Their intervals are hardly wider, for the noise is one for
# all rows: where many sizes are missing, leave such rows out or fill them by an imputer.

mean, std = model.predict(flats, return_std=True)
known = flats["area"].notna()
fig, ax = plt.subplots()
for rows, label in ((known, "area known"), (~known, "area missing")):
    ax.errorbar(price[rows], mean[rows], 1.64 * std[rows], fmt=".", alpha=0.6, label=label)
ax.axline((250, 250), slope=1, color="k", ls=":")
ax.set(xlabel="price", ylabel="fitted, with 90 % intervals", title="What is missing is filled, and a column says where")
ax.legend()
plt.show()
