"""Settings that every script of the gallery starts with."""

import warnings
from typing import Any


def reset(gallery_conf: dict[str, Any], file: str) -> None:
    """Pictures of one size and sharpness; warnings of one script are not those of the next."""
    import matplotlib.pyplot as plt

    plt.rcParams.update({"figure.figsize": (7.0, 4.0), "figure.dpi": 110, "figure.constrained_layout.use": True})
    plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})
    warnings.resetwarnings()
