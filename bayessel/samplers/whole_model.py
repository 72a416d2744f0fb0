"""Step methods that sample all variables of one kind of model together, and how they know such a model."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import pymc as pm
from pymc import modelcontext
from pymc.step_methods import BlockedStep

from bayessel._pymc import LogTransform, get_random_generator
from bayessel._types import Seed


class WholeModelStep(BlockedStep):
    """Base of the steps for models that a function of `bayessel.models` declared, with its settings on each variable.

    Attributes
    ----------
    maker : str
        Name of that function, and of the tag that holds the settings.
    observed : str
        The observed variable.
    has_settings : bool
        Whether the step takes settings.
    unidentified : tuple of str
        Variables of which chains may differ though they agree in what the model predicts: not judged after sampling.
    """

    default_blocked = True
    maker: ClassVar[str]
    observed: ClassVar[str]
    has_settings: ClassVar[bool]
    unidentified: ClassVar[tuple[str, ...]] = ()

    def __init__(self, model: pm.Model | None, rng: Seed) -> None:
        self.model = modelcontext(model)
        said = self.said_of(self.model)
        if said is None:
            raise ValueError(
                f"{type(self).__name__} needs a model that bayessel.models.{self.maker} made and to which nothing was "
                "added; bayessel.steps finds steps for other models"
            )
        self.said = said
        self.vars = list(self.model.value_vars)
        self.rng = get_random_generator(rng)
        self.value = {str(rv.name): str(self.model.rvs_to_values[rv].name) for rv in self.model.free_RVs}

    @staticmethod
    @abstractmethod
    def _expected(said: Mapping[str, Any]) -> Mapping[str, bool]:
        """Names of the variables by the settings, and whether the logarithm of each is sampled."""

    @classmethod
    def said_of(cls, model: pm.Model) -> dict[str, Any] | None:
        """The settings, where the variables that have them are all there is in the model."""
        free = list(model.free_RVs)
        said: dict[str, Any] | None = getattr(free[0].tag, cls.maker, None) if free else None
        if said is None or any(getattr(rv.tag, cls.maker, None) is not said for rv in free):
            return None
        expected = cls._expected(said)
        alone = {str(rv.name) for rv in free} == set(expected) and not model.potentials
        logs = all(isinstance(model.rvs_to_transforms[rv], LogTransform) for rv in free if expected.get(str(rv.name)))
        return said if alone and logs and [rv.name for rv in model.observed_RVs] == [cls.observed] else None
