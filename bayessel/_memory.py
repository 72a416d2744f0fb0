"""How much memory this process holds, and held at its peak."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

#: written to `/proc/self/clear_refs`, it sets VmHWM (the high-water mark of the resident memory) to what is held now
_RESET_VMHWM = "5"


def _status(key: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return float(line.split()[1]) * 1024 / 1e6
    raise OSError(f"/proc/self/status has no {key}")


def resident() -> float:
    """Megabytes (1e6 bytes) of memory that this process holds; off Linux the most it ever held."""
    try:
        return _status("VmRSS")
    except OSError:
        return _most_ever()


def high_water() -> float:
    """Most megabytes that this process held since `reset_high_water`; off Linux since it was started."""
    try:
        return _status("VmHWM")
    except OSError:
        return _most_ever()


def reset_high_water() -> None:
    """Set the high-water mark to what is held now; does nothing where the kernel cannot (off Linux)."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text(_RESET_VMHWM)


def _most_ever() -> float:
    """Most megabytes that this process held since it was started; 0 where the system does not say (Windows)."""
    try:
        import resource
    except ImportError:
        return 0.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e6 / 1024)
