"""
Are the probabilities of a classifier honest?
=============================================

Of the rows to which a classifier gives 0.8, eight in ten should belong to the class. `class_calibration` counts, on rows left out
or on new ones, and tests whether what is left is chance.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.naive_bayes import GaussianNB

import bayessel as bs

X, y = load_breast_cancer(return_X_y=True)
X = X[:, :8]
train, test = np.arange(0, 569, 4), np.setdiff1d(np.arange(569), np.arange(0, 569, 4))

models = {
    "EvidenceClassifier": bs.EvidenceClassifier().fit(X[train], y[train]),
    "naive Bayes": GaussianNB().fit(X[train], y[train]),
}
for name, model in models.items():
    found = bs.diagnostics.class_calibration(model, X[test], y[test])
    print(f"{name}: log loss {found.log_loss:.3f}, calibrated: {found.calibrated}")

# %%
edges = np.linspace(0, 1, 7)
fig, ax = plt.subplots(figsize=(5, 4.5))
ax.plot([0, 1], [0, 1], "k:", label="honest")
for name, model in models.items():
    p = model.predict_proba(X[test])[:, 1]
    group = np.clip(np.digitize(p, edges) - 1, 0, 5)
    said = [p[group == k].mean() for k in range(6) if np.any(group == k)]
    seen = [y[test][group == k].mean() for k in range(6) if np.any(group == k)]
    ax.plot(said, seen, "o-", label=name)
ax.set(xlabel="probability that was said", ylabel="share that came true", title="427 new rows")
ax.legend()
plt.show()
