"""Judging a run of the zoo: which steps were chosen, and how far moments are from the truth in Monte Carlo errors."""

import re
import warnings

import arviz as az
import numpy as np

import bayessel as bs
from tests.samplers.zoo.case import Case, H, Truth


def chosen(text: str) -> dict[str, str]:
    """Variable -> step, from the lines of `explain_steps`."""
    found = {}
    for row in text.splitlines():
        name, rest = row.split("  ", 1)
        found[name.strip()] = rest.strip().split("  ")[0]
    return found


def unexpected(case: Case, split: str = "conjugate") -> dict[str, str]:
    """Variables with a step that the case does not allow; HMC in place of an exact draw is a matter of speed."""
    found = chosen(bs.explain_steps(case.model, split=split))
    assert set(found) == set(case.expected), (found, case.expected)
    return {
        name: step
        for name, step in found.items()
        if step.partition("[")[0] != case.expected[name] and not (split == "auto" and step in (H, "MarginalHMC"))
    }


def draws_of(posterior, quantity: str) -> np.ndarray:
    """(chain, draw) of "mu", "beta[0,1]", "log s"."""
    match = re.fullmatch(r"(log )?(\w+)(?:\[([\d,]+)\])?", quantity)
    assert match is not None, quantity
    log, name, place = match.groups()
    values = np.asarray(posterior[name].values, dtype=float)
    values = values[(slice(None), slice(None), *map(int, (place or "").split(",") if place else ()))]
    assert values.ndim == 2, f"{quantity} is no scalar"
    return np.log(values) if log else values


def distances(posterior, truth: Truth) -> dict[str, float]:
    """How many Monte Carlo standard errors the mean and the sd of each quantity are off."""
    off: dict[str, float] = {}
    for quantity, (mean, sd) in truth.items():
        x = draws_of(posterior, quantity)
        off[f"mean of {quantity}"] = float((x.mean() - mean) / az.mcse(x, method="mean"))
        off[f"sd of {quantity}"] = float((x.std() - sd) / az.mcse(x, method="sd"))
    return off


def worst(off: dict[str, float]) -> float:
    """The largest distance, of a number that is no number infinity."""
    return max(abs(z) if np.isfinite(z) else np.inf for z in off.values())


def sampled(case: Case, draws: int | None = None, chains: int = 4, seed: int = 1, **more):
    """The posterior of a case by `bs.sample`, on one core."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Numba will use object mode")
        # PyMC computes initial points in C where graphs are nested, and says that this is slow without BLAS
        warnings.filterwarnings("ignore", message="PyTensor could not link to a BLAS")
        return bs.sample(
            case.model,
            draws or case.draws,
            tune=500,
            chains=chains,
            cores=1,
            random_seed=seed,
            progressbar=False,
            **more,
        )
