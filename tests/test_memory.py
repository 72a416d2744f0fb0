"""Memory of this process, against what an array is known to take.

Guards `bayessel._memory`.
"""

import numpy as np

from bayessel import _memory as memory

MEGABYTES = 64


def test_an_array_shows_in_what_is_held_and_its_peak_stays():
    memory.reset_high_water()
    before = memory.resident()
    array = np.ones(MEGABYTES * 1_000_000 // 8)
    held = memory.resident() - before
    assert array[-1] == 1.0 and 0.9 * MEGABYTES < held < 1.5 * MEGABYTES
    del array
    assert memory.high_water() - before > 0.9 * MEGABYTES
