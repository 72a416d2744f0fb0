"""
Which inputs matter?
====================

A Gaussian process has a length for each input: the distance over which the function changes along it. A short length means that
the input matters, a long one that it can go. Here two of six inputs do something, and the table says which, with intervals.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import bayessel as bs

rng = np.random.default_rng(0)
names = ["dose", "age", "weight", "height", "room", "month"]
X = pd.DataFrame(rng.normal(size=(120, 6)), columns=names)
y = np.sin(2 * X["dose"]) + X["age"] ** 2 / 2 + 0.2 * rng.normal(size=120)

model = bs.GPRegressor(random_state=0).fit(X, y)
table = model.relevance_
print(table.round(2))

# %%
# The inverse of the length is easier to read: the longer the bar, the more an input matters.

fig, ax = plt.subplots()
inverse = 1 / table["length"]
errors = [inverse - 1 / table["upper"], 1 / table["lower"] - inverse]
ax.barh(names, inverse, xerr=np.abs(errors), color="C0", ecolor="0.4", capsize=3)
ax.invert_yaxis()
ax.set(xlabel="1 / length, with 95 % intervals", title="dose and age matter; of the others nothing is seen")
plt.show()
