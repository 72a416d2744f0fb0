"""
Why do the criteria disagree?
=============================

Evidence, cross-validation and description length answer different questions: how probable are the data, how well are new rows
predicted, how short can a description of the data be? Leave-one-out charges nothing for a function that does no harm, so it goes on to
the narrowest width; the description length pays for every function. On other draws of these data all three agree.
"""

import matplotlib.pyplot as plt
import numpy as np

import bayessel as bs

rng = np.random.default_rng(2)
x = np.linspace(-3, 3, 200)
y = np.cos(x**2) + rng.uniform(-0.1, 0.1, 200)

widths = np.geomspace(0.05, 2.5, 15)
asked = ("evidence", "mdl-w", "loo")
found = bs.compare_widths(x, y, widths, model="rvm", criteria=asked, n_jobs=1, progressbar=False)
print(found.verdict())

# %%
# All curves as losses between nought and one, to be compared by where they are lowest.

table = found.table
losses = {
    "minus evidence": -table["evidence"],
    "description length": table["mdl-w"],
    "leave-one-out": np.log(table["loo"]),
}
fig, ax = plt.subplots()
for name, loss in losses.items():
    scaled = (loss - loss.min()) / (loss.max() - loss.min())
    (line,) = ax.semilogx(table.index, scaled, "o-", ms=3, label=name)
    ax.plot(loss.idxmin(), 0, "v", color=line.get_color(), ms=9, clip_on=False)
ax.set(xlabel="width r", ylabel="loss, scaled to [0, 1]", title="Triangles: what each of them prefers")
ax.legend()
plt.show()
