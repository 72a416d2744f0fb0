"""
Can a season be carried on?
===========================

A series with a trend and a season is continued for three years. The covariance says what is assumed: a season that may change its
shape slowly, a smooth trend, noise. The error bars of the forecast grow with the distance from the last month.
"""

import matplotlib.pyplot as plt
import numpy as np

import bayessel as bs
from bayessel.covariance import Matern52, Noise, Periodic, SquaredExponential

rng = np.random.default_rng(0)
years = np.arange(2008, 2020, 1 / 12)
sales = 50 + 3 * np.sqrt(years - 2007) + 2.5 * np.sin(2 * np.pi * years) + 0.6 * rng.normal(size=years.size)

season = SquaredExponential() * Periodic(amplitude=False)
model = bs.GPRegressor("map", covariance=season + Matern52() + Noise(), random_state=0).fit(years[:, None], sales)
print(model.describe())

# %%
ahead = np.arange(2018, 2023, 1 / 24)
mean, std = model.predict(ahead[:, None], return_std=True)
fig, ax = plt.subplots()
ax.plot(years, sales, ".", color="0.4", label="months")
ax.fill_between(ahead, mean - 1.64 * std, mean + 1.64 * std, alpha=0.25, label="90 %")
ax.plot(ahead, mean, label="forecast")
ax.plot(ahead, 50 + 3 * np.sqrt(ahead - 2007) + 2.5 * np.sin(2 * np.pi * ahead), "k:", label="truth without noise")
ax.set(xlabel="year", ylabel="sales", title="Three years ahead")
ax.legend(loc="upper left")
plt.show()
