"""Models of the same data, compiled to draw data from one and to compute the evidence of all."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

import numpy as np
import pymc as pm

from bayessel.diagnostics.calibration._compiled_setup import CompiledSetup
from bayessel.diagnostics.calibration._joint import JointModel
from bayessel.errors import SamplingWarning
from bayessel.marginal_likelihood.compiled_evidence import CompiledEvidence
from bayessel.marginal_likelihood.model_evidence import ModelEvidence


class CompiledModels:
    """Joint distributions and evidences of models of the same data.

    Attributes
    ----------
    evidences : list of callable
        seed -> evidence of a model, given the data that were drawn last.
    """

    def __init__(self, models: Sequence[pm.Model], routes: Sequence[str], effort: float) -> None:
        self._joints = [JointModel(model, np.random.default_rng(0)) for model in models]
        self._compiled = [CompiledEvidence(model, routes=routes, effort=effort) for model in models]
        self.evidences = [_Quiet(one) for one in self._compiled]

    def draw_data(self, which: int, rng: np.random.Generator) -> None:
        """Give all models data drawn from one of them."""
        joint = self._joints[which]
        joint.reseed(rng)
        _, data = joint.draw()
        by_name = dict(zip(_names(joint.model), data, strict=True))
        for one in self._joints:
            one.set_data([by_name[name] for name in _names(one.model)])


class _Quiet:
    """An evidence whose warnings are in its result alone."""

    def __init__(self, compiled: CompiledEvidence) -> None:
        self._compiled = compiled

    def __call__(self, random_seed: int) -> ModelEvidence:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SamplingWarning)
            return self._compiled(random_seed)


class EvidenceSetup(CompiledSetup[CompiledModels]):
    """Models of the same data.

    Parameters
    ----------
    models : mapping of names to pymc.Model
        Two or more, with the same observed variables.
    routes, effort
        As for `bayessel.evidence`.
    """

    def __init__(self, models: Mapping[str, pm.Model], routes: Sequence[str], effort: float) -> None:
        if not isinstance(models, Mapping) or len(models) < 2:
            raise ValueError(f"models must be two or more PyMC models by name, got {_said(models)}")
        super().__init__(list(models.values()))
        self.names = tuple(str(name) for name in models)
        self._arguments = tuple(routes), effort
        first = _shapes(self.models[0])
        for name, model in models.items():
            if (own := _shapes(model)) != first:
                raise ValueError(
                    f"models must have the same observed variables, of the same shapes; {self.names[0]} has {first}, "
                    f"and {name} has {own}"
                )

    def compiled(self) -> CompiledModels:
        """Compile all of them."""
        return CompiledModels(self.models, *self._arguments)


def _said(models: object) -> str:
    return f"{len(models)} of them" if isinstance(models, Mapping) else type(models).__name__


def _names(model: pm.Model) -> list[str]:
    return [str(rv.name) for rv in model.observed_RVs]


def _shapes(model: pm.Model) -> dict[str, tuple[int, ...]]:
    """Shapes of the observed variables, by name."""
    return {
        str(rv.name): tuple(int(k) for k in rv.shape.eval())
        for rv in sorted(model.observed_RVs, key=lambda rv: rv.name)
    }
