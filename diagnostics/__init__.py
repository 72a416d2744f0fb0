"""Reading results: may draws be used, what is the evidence, which of several fits is best, do error bars cover.

`predictive_calibration` is of predictions, `class_calibration` of probabilities; `calibration` is of samplers.

Studies (`delve`), `prequential` lengths and those of models (`prequential_of`), `rolling_origin` and `calibration` fit
what they are given; nothing else here fits a model.
"""

from typing import TYPE_CHECKING, Any

from bayessel.diagnostics import calibration, delve
from bayessel.diagnostics._bridge import bridge_sampling
from bayessel.diagnostics._compare import compare
from bayessel.diagnostics._convergence import convergence
from bayessel.diagnostics._mdl import flag_length, mdl_alpha, mdl_w
from bayessel.diagnostics._nml import nml
from bayessel.diagnostics._predictive_calibration import predictive_calibration
from bayessel.diagnostics._prequential import prequential
from bayessel.diagnostics._rolling_origin import rolling_origin
from bayessel.diagnostics.class_reliability import class_calibration

if TYPE_CHECKING:
    from bayessel.marginal_likelihood.prequential_length import prequential_of
    from bayessel.marginal_likelihood.prior_sensitivity import prior_sensitivity

__all__ = [
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


def __getattr__(name: str) -> Any:
    """Load what needs PyMC on first use."""
    if name == "prequential_of":
        from bayessel.marginal_likelihood.prequential_length import prequential_of

        return prequential_of
    if name == "prior_sensitivity":
        from bayessel.marginal_likelihood.prior_sensitivity import prior_sensitivity

        return prior_sensitivity
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
