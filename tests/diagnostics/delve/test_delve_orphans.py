"""Processes of a study that is killed do not stay.

Guards `bayessel.diagnostics.delve._run`.
"""

import os
import signal
import time

import pytest

from bayessel.diagnostics import delve
from tests.problems.delve import Noisy, child, diary, task, wait_for


def running(pid):
    """Whether a process runs; one that nobody has waited for is there, but dead."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="looks at processes as Linux shows them")
def test_workers_of_a_killed_study_end(tmp_path):
    """Amid units that would take ten minutes."""
    book = tmp_path / "diary"
    methods = {"long": Noisy(diary=str(book), seconds=600.0)}
    with child(lambda: delve.run(methods, task(), n_jobs=2, progressbar=False)) as pid:
        wait_for(lambda: len(diary(book)) == 2)
        time.sleep(0.2)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    workers = {worker for worker, _ in diary(book)}
    assert len(workers) == 2
    try:
        wait_for(lambda: not any(map(running, workers)), 20.0)
    finally:
        for worker in filter(running, workers):
            os.kill(worker, signal.SIGKILL)
