"""Reading results: may draws be used, what is the evidence, which of several fits is best, do error bars cover.

`predictive_calibration` is of predictions, `class_calibration` of probabilities; `calibration` is of samplers.

Studies (`delve`), `prequential` lengths and those of models (`prequential_of`), `rolling_origin` and `calibration` fit
what they are given; nothing else here fits a model.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bayessel.diagnostics._prequential import prequential

if TYPE_CHECKING:
    from bayessel.diagnostics import calibration, delve
    from bayessel.diagnostics._bridge import bridge_sampling
    from bayessel.diagnostics._compare import compare
    from bayessel.diagnostics._convergence import convergence
    from bayessel.diagnostics._mdl import flag_length, mdl_alpha, mdl_w
    from bayessel.diagnostics._nml import nml
    from bayessel.diagnostics._predictive_calibration import predictive_calibration
    from bayessel.diagnostics._rolling_origin import rolling_origin
    from bayessel.diagnostics.calibration_display import PredictiveCalibrationDisplay
    from bayessel.diagnostics.class_reliability import class_calibration
    from bayessel.diagnostics.fit_display import FitDisplay
    from bayessel.diagnostics.relevance_display import RelevanceDisplay
    from bayessel.marginal_likelihood.prequential_length import prequential_of
    from bayessel.marginal_likelihood.prior_sensitivity import prior_sensitivity

__all__ = [
    "FitDisplay",
    "PredictiveCalibrationDisplay",
    "RelevanceDisplay",
    "bridge_sampling",
    "calibration",
    "class_calibration",
    "compare",
    "convergence",
    "delve",
    "flag_length",
    "mdl_alpha",
    "mdl_w",
    "nml",
    "predictive_calibration",
    "prequential",
    "prequential_of",
    "prior_sensitivity",
    "rolling_origin",
]

_DEFINED_IN = {
    "FitDisplay": "bayessel.diagnostics.fit_display",
    "PredictiveCalibrationDisplay": "bayessel.diagnostics.calibration_display",
    "RelevanceDisplay": "bayessel.diagnostics.relevance_display",
    "bridge_sampling": "bayessel.diagnostics._bridge",
    "class_calibration": "bayessel.diagnostics.class_reliability",
    "compare": "bayessel.diagnostics._compare",
    "convergence": "bayessel.diagnostics._convergence",
    "flag_length": "bayessel.diagnostics._mdl",
    "mdl_alpha": "bayessel.diagnostics._mdl",
    "mdl_w": "bayessel.diagnostics._mdl",
    "nml": "bayessel.diagnostics._nml",
    "predictive_calibration": "bayessel.diagnostics._predictive_calibration",
    "prequential_of": "bayessel.marginal_likelihood.prequential_length",
    "prior_sensitivity": "bayessel.marginal_likelihood.prior_sensitivity",
    "rolling_origin": "bayessel.diagnostics._rolling_origin",
}
_PACKAGES = ("calibration", "delve")


def __getattr__(name: str) -> Any:
    """Load a name on first use (PEP 562)."""
    if name in _PACKAGES:
        return import_module(f"bayessel.diagnostics.{name}")
    if name in _DEFINED_IN:
        return getattr(import_module(_DEFINED_IN[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
