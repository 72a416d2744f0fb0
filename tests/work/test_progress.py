"""The progress bar: nothing in pipes, a line that stays on a terminal, a share that makes sense under a budget.

Guards `bayessel.work.progress`.
"""

import io

import pytest
import rich.console

from bayessel.work.progress import Progress, seconds_left, share_done


@pytest.fixture
def screen(monkeypatch):
    made = io.StringIO()
    plain = rich.console.Console
    monkeypatch.setattr(rich.console, "Console", lambda **_: plain(file=made, force_terminal=True, width=100))
    return made


def test_a_line_stays(screen):
    with Progress(True, "counting sheep", 3) as bar:
        for k in range(3):
            bar.advance(f"sheep {k}")
    last = screen.getvalue().rpartition("\x1b[2K")[2]  # after the last time the line was wiped
    assert "sheep 2" in last and "3 of 3" in last


def test_nothing_where_it_is_not_wanted_or_too_early(screen):
    for bar in (Progress(False, "a", 3), Progress(True, "a", 3, after=60.0)):
        with bar:
            bar.advance()
    assert screen.getvalue() == ""


def test_nothing_in_pipes(capfd):
    with Progress(True, "counting sheep", 3) as bar:
        bar.advance()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("done", "total", "elapsed", "budget", "share"),
    [
        (3, 12, 1.0, None, 0.25),
        (91, 1_000_050, 30.0, 60.0, 0.5),  # the budget ends it long before the steps do
        (9, 10, 6.0, 60.0, 0.9),
        (5, None, 70.0, 60.0, 1.0),
        (5, None, 3.0, None, None),
        (0, 0, 0.0, None, 1.0),
    ],
)
def test_the_share_is_of_what_ends_first(done, total, elapsed, budget, share):
    assert share_done(done, total, elapsed, budget) == share


def test_the_time_left_is_within_the_budget():
    assert seconds_left(90_000.0, 20.0, 60.0) == 40.0
    assert seconds_left(5.0, 20.0, 60.0) == 5.0
    assert seconds_left(None, 20.0, None) is None
