"""A process that fits one method after the other: jobs come pickled on standard input, what became of them goes back.

``python -m benchmarks.field.worker`` is started by `benchmarks.field.race`, for peers by the interpreter that
PEERS_PYTHON names, which has no bayessel. A job that takes more than its seconds of processor ends the process, by the
operating system.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import pickle
import resource
import sys
import time
import traceback
import warnings
from contextlib import ExitStack
from typing import Any, BinaryIO

import numpy as np

from benchmarks.field.peers import PEERS, Entrant

#: warnings kept of a job, and characters of each
WARNINGS, LENGTH = 4, 200
_PATCHES = ExitStack()


def entrant(name: str) -> Entrant:
    """A peer, or one of ours, which are not imported before the first is asked for, and count processor time."""
    if name in PEERS:
        return PEERS[name]
    own = sys.modules.get("benchmarks.field.own")
    if own is None:
        own = importlib.import_module("benchmarks.field.own")
        _PATCHES.enter_context(importlib.import_module("benchmarks.processor_clock").processor_time())
    found: Entrant = own.OURS[name]
    return found


def missing(method: Entrant) -> str:
    """Name of a package that a method needs and that is not there, or an empty text."""
    return next((name for name in method.needs if importlib.util.find_spec(name) is None), "")


def done(method: Entrant, job: dict[str, Any]) -> dict[str, Any]:
    """Fit, predict and score: arrays over test rows, seconds of processor, and what was said on the way."""
    found: dict[str, Any] = {"error": "", "status": ""}
    caught: list[warnings.WarningMessage] = []
    began = time.process_time()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            predictor = method.fit(job["X"], job["y"], job["seed"])
            there = predictor(job["X_test"])
            found["seconds"] = time.process_time() - began
        found["status"] = getattr(predictor, "status", "")
        y = job["y_test"]
        with np.errstate(all="ignore"):
            found |= {"residual": y - there.mean(), "std": there.std()}
            found |= {"log_density": there.log_density(y), "crps": there.crps(y), "cdf": there.cdf(y)}
        if not np.isfinite(found["residual"]).all():
            raise ValueError("predicted means are not all finite")
    except Exception as error:
        found = {"error": _told(error), "status": "", "seconds": time.process_time() - began}
    meant = [one for one in caught if not issubclass(one.category, DeprecationWarning | FutureWarning)]
    said = dict.fromkeys(f"{one.category.__name__}: {one.message}"[:LENGTH] for one in meant)
    return found | {"notes": list(said)[:WARNINGS]}


def _told(error: Exception) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{last.name} ({os.path.basename(last.filename)}:{last.lineno})"
    return f"{type(error).__name__}: {error}"[:LENGTH] + f" in {place}"


def _limit(seconds: float) -> None:
    """End this process when it has used so many more seconds of processor."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(used.ru_utime + used.ru_stime + seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def serve(jobs: BinaryIO, answers: BinaryIO) -> None:
    """Answer every job until there are no more; "who" asks which packages are missing."""
    while True:
        try:
            job = pickle.load(jobs)
        except EOFError:
            return
        if "who" in job:
            answer: dict[str, Any] = {name: missing(entrant(name)) for name in job["who"]}
        else:
            _limit(job["limit"])
            answer = done(entrant(job["method"]), job)
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    # whatever a method prints must not come between the answers
    private = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(sys.stdin.buffer, private)
