"""PyMC models: each function declares a ``pm.Model`` and never infers."""

from bayessel.models._gp import gp
from bayessel.models._linear import linear
from bayessel.models._logistic import logistic
from bayessel.models._loss_differences import loss_differences
from bayessel.models._mlp import mlp
from bayessel.models._rvm import draw_weights, rvm

__all__ = ["draw_weights", "gp", "linear", "logistic", "loss_differences", "mlp", "rvm"]
