"""
Are the probabilities of a classifier honest?
=============================================

Of the rows to which a classifier gives 0.8, eight in ten should belong to the class. `class_calibration` counts, on rows left out
or on new ones, and tests whether what is left is chance. Naive Bayes takes inputs that repeat each other for independent witnesses,
and is far too sure.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.naive_bayes import GaussianNB

import bayessel as bs

rng = np.random.default_rng(0)
signal = rng.normal(size=(700, 1))
X = signal + 0.3 * rng.normal(size=(700, 4))  # four measurements of one thing
y = rng.random(700) < 1 / (1 + np.exp(-1.5 * signal[:, 0]))
train, test = slice(200), slice(200, 700)

models = {"EvidenceClassifier": bs.EvidenceClassifier(), "naive Bayes": GaussianNB()}
for name, model in models.items():
    found = bs.diagnostics.class_calibration(model.fit(X[train], y[train]), X[test], y[test])
    print(f"{name}: log loss {found.log_loss:.3f}, calibrated: {found.calibrated}")

# %%
edges = np.linspace(0, 1, 9)
fig, ax = plt.subplots(figsize=(5, 4.5))
ax.plot([0, 1], [0, 1], "k:", label="honest")
for name, model in models.items():
    p = model.predict_proba(X[test])[:, 1]
    group = np.clip(np.digitize(p, edges) - 1, 0, 7)
    said = [p[group == k].mean() for k in range(8) if np.any(group == k)]
    seen = [y[test][group == k].mean() for k in range(8) if np.any(group == k)]
    ax.plot(said, seen, "o-", label=name)
ax.set(xlabel="probability that was said", ylabel="share that came true", title="500 new rows")
ax.legend()
plt.show()
