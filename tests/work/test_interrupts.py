"""A block that Ctrl-C ends: what was begun is kept, what was not goes on as the exception, other errors too.

Guards `bayessel.work.interrupts`.
"""

import pytest

from bayessel.work.interrupts import InterruptGuard


@pytest.mark.parametrize("count", [0, 1, 2])
def test_ctrl_c_ends_a_block_that_has_begun(count):
    found = []
    with InterruptGuard(lambda: found) as guard:
        for k in range(count):
            found.append(k)
            if k:
                raise KeyboardInterrupt
    assert found == list(range(count)) and guard.interrupted == (count == 2)


def test_what_has_not_begun_and_other_errors_are_raised():
    with pytest.raises(KeyboardInterrupt), InterruptGuard(lambda: []) as guard:
        raise KeyboardInterrupt
    assert not guard.interrupted
    with pytest.raises(SystemExit), InterruptGuard():
        raise SystemExit
