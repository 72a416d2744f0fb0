"""
Can I bring my own columns?
===========================

Where a trend is known to be a parabola and a season to be two waves, say so: dictionaries of polynomials, of Fourier functions and
of functions of your own add up. The evidence then says which degree the data support.
"""

import matplotlib.pyplot as plt
import numpy as np

import bayessel as bs
from bayessel.basis import FourierDictionary, PolynomialDictionary

rng = np.random.default_rng(0)
years = np.sort(rng.uniform(2000, 2020, 150))[:, None]
y = 0.02 * (years[:, 0] - 2010) ** 2 + np.sin(2 * np.pi * years[:, 0]) + 0.3 * rng.normal(size=150)

season = FourierDictionary(order=2, period=1.0)
fits = {
    degree: bs.EvidenceRegressor(dictionary=PolynomialDictionary(degree) + season).fit(years, y)
    for degree in (1, 2, 3, 4, 5)
}
table = bs.diagnostics.compare({f"degree {degree}": fit for degree, fit in fits.items()})
print(table[["evidence", "elpd-loo", "status"]].round(1))

# %%
evidence = np.array([fit.log_evidence_ for fit in fits.values()])
fig, ax = plt.subplots()
ax.plot(list(fits), evidence - evidence.max(), "o-")
ax.axhspan(-3, 0, alpha=0.15, label="within 3 nats of the best")
ax.set(xlabel="degree of the trend", ylabel="log evidence, from the best", title="A parabola is enough")
ax.set_xticks(list(fits))
ax.legend(loc="lower right")
plt.show()
