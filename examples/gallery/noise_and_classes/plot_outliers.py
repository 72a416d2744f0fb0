"""
What do a few wrong rows do to a fit?
=====================================

With normal noise every outlier pulls the curve, and the error bars of all rows grow. With ``likelihood="student"`` the noise has heavy
tails whose weight is found in the data, and a few wrong rows are taken for what they are.
"""

import matplotlib.pyplot as plt
import numpy as np

import bayessel as bs

rng = np.random.default_rng(0)
X = np.sort(rng.uniform(-3, 3, size=(80, 1)), axis=0)
y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=80)
y[5::16] += 5  # five rows are wrong

normal = bs.GPRegressor("map", random_state=0).fit(X, y)
robust = bs.GPRegressor(likelihood="student", random_state=0).fit(X, y)

# %%
grid = np.linspace(-3, 3, 200)[:, None]
fig, ax = plt.subplots()
for model, label in ((normal, "normal noise"), (robust, "heavy tails")):
    (line,) = ax.plot(grid, model.predict(grid), label=label)
ax.plot(grid, np.sin(2 * grid), "k:", label="truth")
ax.plot(X, y, ".", color="0.4", label="rows")
ax.set(xlabel="x", ylabel="y", title="Five of eighty rows are wrong")
ax.legend(loc="upper left", ncols=2)
plt.show()
