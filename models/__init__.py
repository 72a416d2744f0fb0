"""PyMC models: each function declares a ``pm.Model`` and never infers."""

from bayessel.models._linear import linear

__all__ = ["linear"]
