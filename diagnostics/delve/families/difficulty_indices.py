"""How hard a task is: the indices of non-linearity and of unpredictability (Rasmussen 1996, eqs. 5.1 and 5.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayessel._check import as_count, as_generator
from bayessel._types import Seed
from bayessel.diagnostics.delve.families.source import Source


@dataclass(frozen=True)
class Difficulty:
    """Shares of the variance of targets.

    Parameters
    ----------
    nonlinearity : float
        I_nl: what the best linear fit leaves, without noise. Below 0.05 is called fairly linear, above 0.2 non-linear.
    unpredictability : float
        I_u: what noise there is in targets at the same inputs. 0.01 … 0.05 is called medium, above 0.2 high.
    """

    nonlinearity: float
    unpredictability: float


def difficulty(source: Source, n: int = 8192, repeats: int = 8, random_state: Seed = None) -> Difficulty:
    """Both indices from n cases, and so many targets for each of them.

    Examples
    --------
    >>> from bayessel.diagnostics.delve import families
    >>> found = difficulty(families.family("kin-8nm"), n=500, random_state=0)
    >>> bool(found.nonlinearity > 0.2)
    True
    """
    n, repeats = as_count(n, "n", 2), as_count(repeats, "repeats", 2)
    rng = as_generator(random_state)
    X = source.draw(n, rng)
    clean = source.respond(X, None)
    A = np.column_stack([np.ones(n), X - X.mean(axis=0)])
    A /= np.linalg.norm(A, axis=0)
    rest = clean - A @ np.linalg.lstsq(A, clean)[0]
    targets = np.stack([source.respond(X, rng) for _ in range(repeats)])
    noise = targets.var(axis=0, ddof=1).mean()
    total = targets.var()
    return Difficulty(float(np.mean(rest**2) / clean.var()), float(noise / total))
