"""What a model of ours remembers of itself, beside its graph: a mark on its observed variable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pymc as pm

from bayessel.basis import RBFDictionary
from bayessel.covariance import Covariance


@dataclass(frozen=True)
class Declared:
    """The function of `bayessel.models` that declared a model, and what its graph does not hold.

    Attributes
    ----------
    maker : str
        Its name.
    collapsed : bool
        Whether weights are integrated out.
    covariance : Covariance, optional
        Of a Gaussian process.
    likelihood : str
        Of a network, of `generalised`, and of a Gaussian process whose function is not integrated out.
    dictionary : RBFDictionary, optional
        Of a design whose width is a random variable.
    """

    maker: str
    collapsed: bool = False
    covariance: Covariance | None = None
    likelihood: str = ""
    dictionary: RBFDictionary | None = None

    @property
    def has_latent(self) -> bool:
        """Whether targets are independent given a latent function, by one of the likelihoods that others have too."""
        return self.maker == "generalised" or (self.maker == "gp" and bool(self.likelihood))


def remember(observed: Any, mark: Declared) -> None:
    """Put the mark on the observed variable."""
    observed.tag.declared = mark


def declared(model: Any, caller: str) -> tuple[Declared, Any]:
    """The mark of a model and its observed variable, or an error that says what was needed."""
    if not isinstance(model, pm.Model):
        raise TypeError(f"model must be a pymc.Model, got {type(model).__name__}; estimators have .to_pymc()")
    for rv in model.observed_RVs:
        if isinstance(mark := getattr(rv.tag, "declared", None), Declared):
            return mark, rv
    raise ValueError(
        f"{caller} needs a model that a function of bayessel.models declared, got one that observes "
        f"{', '.join(rv.name for rv in model.observed_RVs) or 'nothing'}; for others pm.set_data and "
        "pm.sample_posterior_predictive are there"
    )
