"""PyMC models: each function declares a ``pm.Model`` and never infers; and what a trace of one says of new rows."""

from bayessel.models._generalised import generalised
from bayessel.models._gp import gp
from bayessel.models._linear import linear
from bayessel.models._loss_differences import loss_differences
from bayessel.models._mlp import mlp
from bayessel.models._predict import predict
from bayessel.models._predictive import predictive_model
from bayessel.models._rvm import rvm
from bayessel.models._weights import draw_weights

__all__ = [
    "draw_weights",
    "generalised",
    "gp",
    "linear",
    "loss_differences",
    "mlp",
    "predict",
    "predictive_model",
    "rvm",
]
