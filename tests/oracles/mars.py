"""Slow twins of multivariate adaptive regression splines: least squares for every candidate, hinges written out."""

import math

import numpy as np


def squares(columns, y):
    """Residual sum of squares of a least-squares fit."""
    H = np.column_stack(columns)
    H = H / np.sqrt((H**2).sum(axis=0)).clip(1e-300)
    return float(np.sum((y - H @ np.linalg.lstsq(H, y, rcond=1e-11)[0]) ** 2))


def allowed_knots(x, b, span, end):
    """Knots of one parent and input: every span-th row with b > 0, from above, without the end ones."""
    rows = sorted(x[b > 0], reverse=True)
    return [rows[k] for k in range(end, len(rows) - end, span)]


def spans(D, rows):
    return max(1, int(-math.log2(-math.log(0.95) / (D * rows)) / 2.5))


def ends(D):
    return int(3 - math.log2(0.05 / D))


def grow(X, y, most, degree, span=None, end=None):
    """Forward pass: (residual sum of squares, parent, input, knot) per step and the columns; every knot by lstsq."""
    N, D = X.shape
    columns, used = [np.ones(N)], [set()]
    steps = []
    while len(columns) - 1 + 2 <= most:
        now = squares(columns, y)
        best = (now, None, None, None)
        for m in range(len(columns)):
            for v in range(D):
                if v in used[m] or len(used[m]) == degree:
                    continue
                b, x = columns[m], X[:, v]
                offered = allowed_knots(x, b, span or spans(D, (b > 0).sum()), ends(D) if end is None else end)
                for t in offered or [np.nan]:
                    pair = [b * np.maximum(x - t, 0), b * np.maximum(t - x, 0)] if offered else [b * x]
                    left = squares([*columns, *pair], y)
                    if left < best[0] - 1e-10 * now:
                        best = (left, m, v, t)
        left, m, v, t = best
        if m is None:
            return steps, columns
        steps.append(best)
        b, x = columns[m], X[:, v]
        pair = [b * np.maximum(x - t, 0), b * np.maximum(t - x, 0)] if t == t else [b * x]
        inside = squares([*columns], b * x) < 1e-9 * squares([b], b * x)
        for column in [min(pair, key=np.linalg.norm)] if inside else pair:
            columns.append(column)
            used.append(used[m] | {v})
    return steps, columns


def prune(columns, y, knots, penalty):
    """Backward pass: at each size the column whose absence costs least; (size, RSS, GCV) of each, and the best."""
    N = len(y)
    kept = list(range(len(columns)))
    path, subsets = [], []
    while True:
        rss = squares([columns[j] for j in kept], y)
        charged = len(kept) + penalty * len({knots[j - 1] for j in kept if j and knots[j - 1] >= 0})
        path.append((len(kept), rss, rss / N / (1 - charged / N) ** 2 if charged < N else np.inf))
        subsets.append(list(kept))
        if len(kept) == 1:
            return path, subsets[int(np.argmin([score for _, _, score in path]))]
        without = [squares([columns[i] for i in kept if i != j], y) for j in kept[1:]]
        kept.remove(kept[1 + int(np.argmin(without))])


def cubic(x, sign, lower, knot, upper):
    """Rounded corner as Friedman (1991), eqs. (34) and (35) print it."""
    if sign > 0:
        p = (2 * upper + lower - 3 * knot) / (upper - lower) ** 2
        r = (2 * knot - upper - lower) / (upper - lower) ** 3
        middle = p * (x - lower) ** 2 + r * (x - lower) ** 3
        return 0.0 if x <= lower else x - knot if x >= upper else middle
    p = (3 * knot - 2 * lower - upper) / (lower - upper) ** 2
    r = (lower + upper - 2 * knot) / (lower - upper) ** 3
    middle = p * (x - upper) ** 2 + r * (x - upper) ** 3
    return -(x - knot) if x <= lower else 0.0 if x >= upper else middle
