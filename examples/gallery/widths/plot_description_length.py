"""
Does the precision of the code decide?
======================================

A description length sends the weights to some precision δ. A criterion whose answer hangs on δ is not to be trusted; `deltas` shows
what would be preferred if weights were sent to 0.01, 0.1 or 1.
"""

import matplotlib.pyplot as plt
import numpy as np

import bayessel as bs
from bayessel.diagnostics import mdl_w

x = np.linspace(-3, 3, 120)
y = np.cos(x**2) + np.random.default_rng(0).uniform(-0.1, 0.1, 120)

widths = np.geomspace(0.15, 1.5, 13)
found = bs.compare_widths(x, y, widths, model="rvm", criteria=("mdl-w",), n_jobs=1, progressbar=False)
print(found.deltas("mdl-w"))

# %%
fig, ax = plt.subplots()
fits = {r: bs.linear.fit_rvm(bs.RBFDictionary(x, r).design(x), y) for r in widths}
for delta in (0.01, 0.1, 1.0):
    lengths = np.array([mdl_w(fit, delta) for fit in fits.values()])
    (line,) = ax.semilogx(widths, lengths, "o-", ms=4, label=f"δ = {delta:g}")
    ax.plot(widths[lengths.argmin()], lengths.min(), "v", color=line.get_color(), ms=10)
ax.set(xlabel="width r", ylabel="MDL-w, nats", title="Curves move up and down, their minima hardly")
ax.set_xticks([0.2, 0.5, 1], ["0.2", "0.5", "1"])
ax.minorticks_off()
ax.legend()
plt.show()
