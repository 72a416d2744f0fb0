"""PyMC models: each function declares a ``pm.Model`` and never infers."""
