"""
Where do three classes meet?
============================

`GPClassifier` gives each class a smooth function of the inputs and turns them into probabilities. Far from the rows it returns to the
frequencies of the classes instead of being sure of the nearest one.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

import bayessel as bs

X, y = load_iris(return_X_y=True)
X = X[:, [0, 2]]  # two of four measures, so that it can be drawn
model = bs.GPClassifier("map", random_state=0).fit(X, y)
print(model.describe())

# %%
a, b = np.meshgrid(np.linspace(3.5, 9, 60), np.linspace(-1, 9, 60))
p = model.predict_proba(np.column_stack([a.ravel(), b.ravel()])).reshape(60, 60, 3)
fig, ax = plt.subplots()
ax.imshow(p, origin="lower", extent=(3.5, 9, -1, 9), aspect="auto", alpha=0.6)
ax.scatter(*X.T, c=np.array(["#b00000", "#007000", "#0000b0"])[y], edgecolor="w", lw=0.5)
ax.set(xlabel="sepal length, cm", ylabel="petal length, cm", title="Mixed colours: it is not sure")
plt.show()
