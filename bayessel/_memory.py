"""How much memory this process holds, and held at its peak."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path


def _status(key: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return float(line.split()[1]) * 1024 / 1e6
    raise OSError(f"/proc/self/status has no {key}")


def resident() -> float:
    """Megabytes (1e6 bytes) of memory that this process holds; off Linux the mark of its whole life."""
    try:
        return _status("VmRSS")
    except OSError:
        return _life()


def high_water() -> float:
    """Most megabytes that this process held since `start_again`; off Linux since its birth."""
    try:
        return _status("VmHWM")
    except OSError:
        return _life()


def start_again() -> None:
    """Reset the kernel's high-water mark, where it has one."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _life() -> float:
    try:
        import resource
    except ImportError:  # Windows
        return 0.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e6 / 1024)
