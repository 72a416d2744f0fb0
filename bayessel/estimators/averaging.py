"""`average`: several models averaged in place of one picked, whether they are fitted or not."""

from __future__ import annotations

from collections.abc import Mapping

from numpy.typing import ArrayLike

from bayessel._types import Seed
from bayessel.estimators.averaged_regressor import AveragedRegressor
from bayessel.estimators.member_checks import Members, is_fitted


def average(
    members: Members | None = None,
    weights: str | Mapping[str, float] = "stacking",
    *,
    densities: str = "auto",
    prior: Mapping[str, float] | None = None,
    data: tuple[ArrayLike, ArrayLike] | None = None,
    random_state: Seed = None,
    n_jobs: int | None = None,
    progressbar: bool = True,
) -> AveragedRegressor:
    r"""Average models instead of picking one: :math:`p(t_*|t) = \sum_k w_k\,p(t_*|t, H_k)`.

    Parameters
    ----------
    members
        Name -> estimator or fit of an engine. Estimators that are not fitted make a regressor that fits them; fitted
        ones, or fits of engines on one design, make one that predicts at once. None: `EvidenceRegressor`,
        `GPRegressor`, `RVMRegressor` and `BasisSearchRegressor` with their defaults.
    weights
        ``"stacking"``: those under which the mixture predicts rows held out best, a constant with normal noise among
        the candidates. ``"evidence"`` or ``"model-evidence"``: in proportion to evidence times `prior`; all evidences
        must be of one kind (`bayessel.diagnostics.compare` tells them apart). A mapping: these numbers, made to sum to
        one.
    densities
        Of stacking, and of the comparison with a constant that every average makes. ``"folds"``: of rows held out of
        three folds, with every member fitted anew. ``"loo"``: of each row left out at the hyperparameters of all rows,
        which needs no refit and flatters models that chose functions or many widths. ``"auto"``: folds, and
        leave-one-out for fits that cannot be made anew.
    prior
        Of weights by evidence: name -> a positive number. None: all equal.
    data
        (X, y) that fitted members were fitted to, for folds; not needed where the members keep them.
    random_state
        Seed of members that have none.
    n_jobs
        Processes for fits and folds, as everywhere in bayessel. The numbers are the same.
    progressbar
        Show how far long work is; never in pipes.

    Returns
    -------
    AveragedRegressor

    Raises
    ------
    DataMismatchError
        A ``ValueError``: the fits are of different data.

    Examples
    --------
    >>> import numpy as np
    >>> import bayessel as bs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 1, size=(60, 1))
    >>> y = np.sin(6 * X[:, 0]) + 0.1 * rng.normal(size=60)
    >>> narrow, wide = (bs.EvidenceRegressor(width=r).fit(X, y) for r in (0.1, 0.4))
    >>> both = bs.average({"narrow": narrow, "wide": wide}, weights="evidence")
    >>> bool(both.weights_.loc["wide", "weight"] > 0.9)
    True
    >>> low, high = both.predictive([[0.5]]).quantile([0.05, 0.95])
    """
    made = AveragedRegressor(members, weights, densities, prior, random_state, n_jobs, progressbar)
    members = made.chosen_members()
    done = {name: is_fitted(member) for name, member in members.items()}
    if not any(done.values()):
        if data is not None:
            raise ValueError("data are of fitted members; these are not fitted: call .fit(X, y) on what is returned")
        return made
    if not all(done.values()):
        missing = ", ".join(repr(name) for name, there in done.items() if not there)
        raise ValueError(f"some members are fitted and others are not ({missing}): fit all of them, or none")
    return made.of_fitted(members, data)
