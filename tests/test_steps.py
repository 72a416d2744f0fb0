"""Which step gets which variable, over the whole zoo; the explanations; a user's own assignments."""

import pytest

import bayessel as bs
from tests import gibbs_models


def chosen(text):
    """Variable -> step, from the lines of `explain_steps`."""
    found = {}
    for line in text.splitlines():
        name, rest = line.split("  ", 1)
        found[name.strip()] = rest.strip().split("  ")[0]
    return found


@pytest.mark.parametrize("make", gibbs_models.ALL, ids=lambda make: make.__name__)
def test_every_variable_gets_the_step_that_is_right_for_it(make):
    model, expected = make()
    assert chosen(bs.explain_steps(model)) == expected
