"""
Which kind of function fits best?
=================================

Bumps can have the shape of a bell, or heavier tails; the truth here is a sum of two with heavy tails. Several kinds are compared on one scale, since the evidence is the probability
of the same data under each of them.
"""

import matplotlib.pyplot as plt
import numpy as np

import bayessel as bs

rng = np.random.default_rng(4)
x = np.sort(rng.uniform(-5, 5, 90))
y = 1 / (1 + 4 * (x - 1) ** 2) - 0.7 / (1 + 2 * (x + 2) ** 2) + 0.05 * rng.normal(size=90)

kinds = ("gaussian", "cauchy", "inverse_multiquadric")
found = bs.compare_widths(x, y, np.geomspace(0.2, 5, 13), kind=kinds, criteria=("evidence",), progressbar=False)
print(found.best("evidence"))

# %%
table = found.table.reset_index()
fig, ax = plt.subplots()
for kind, rows in table.groupby("kind", sort=False):
    ax.semilogx(rows["width"], rows["evidence"], "o-", ms=4, label=kind)
ax.set_ylim(bottom=table["evidence"].max() - 40)
ax.set(
    xlabel="width r",
    ylabel="log evidence, nats",
    title="Each kind at its own width comes within two nats",
    xlim=(0.18, 4),
)
ax.set_xticks([0.2, 0.5, 1, 2, 4], ["0.2", "0.5", "1", "2", "4"])
ax.minorticks_off()
ax.legend()
plt.show()
