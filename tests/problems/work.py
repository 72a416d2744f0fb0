"""Units of work for tests: quick, slow, failing, fatal once or always; they note in a diary who did them."""

import os
import time
from pathlib import Path

import numpy as np

from bayessel.work import WorkUnit
from bayessel.work.seeds import seed_sequence


def noted(diary, name):
    """One line per unit that was begun: process and name."""
    if diary is not None:
        with open(diary, "a") as file:
            file.write(f"{os.getpid()} {name}\n")


def lines(diary):
    """(process, name) of what was begun."""
    path = Path(diary)
    return [(int(pid), name) for pid, name in map(str.split, path.read_text().splitlines())] if path.exists() else []


def spectrum(seed, diary=None, seconds=0.0):
    """Singular values of a random matrix: what depends on threads would show in its last bits."""
    noted(diary, seed)
    time.sleep(seconds)
    rng = np.random.default_rng(seed)
    return np.linalg.svd(rng.normal(size=(40, 30)), compute_uv=False)


def fatal_once(mark, seed):
    """Ends its process the first time."""
    if not Path(mark).exists():
        Path(mark).touch()
        os._exit(7)
    return spectrum(seed)


def fatal(seed):
    os._exit(7)


def failing(seed):
    raise ZeroDivisionError(f"the unit of seed {seed}")


def busy(seconds):
    """Compute for so many seconds of processor time."""
    end = time.process_time() + seconds
    total = 0.0
    while time.process_time() < end:
        total += float(np.sum(np.sqrt(np.arange(1000.0))))
    return total > 0.0


def units(count, seed=3, **options):
    """Units that differ in their seeds, which come from their names."""
    made = []
    for k in range(count):
        own = int(seed_sequence(seed, "unit", k).generate_state(1)[0])
        made.append(WorkUnit(f"unit {k}", spectrum, (own, *options.values())))
    return made
