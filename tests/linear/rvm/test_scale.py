"""Units of design and target change nothing; what would leave double precision is refused before it does.

Guards `bayessel.linear.rvm.problem`, `bayessel.linear.forward.settings`, `bayessel.linear.selection._search`,
`bayessel.linear.design_fit`.
"""

import numpy as np
import pytest

from bayessel.fit import Status
from bayessel.linear import fit_evidence, fit_rvm, forward_select, search

FITS = {
    "fit_evidence": fit_evidence,
    "fit_evidence, centred": lambda F, t: fit_evidence(F, t, centre=True),
    "fit_evidence, mackay": lambda F, t: fit_evidence(F, t, method="mackay"),
    "fit_evidence, em": lambda F, t: fit_evidence(F, t, method="em"),
    "search": search,
    "search, loo": lambda F, t: search(F, t, score="loo", centre=True),
    "search, sffs": lambda F, t: search(F, t, "sffs"),
    "forward_select": forward_select,
    "forward_select, evidence": lambda F, t: forward_select(F, t, stop="evidence"),
    "forward_select, rfs": lambda F, t: forward_select(F, t, "rfs"),
    "forward_select, rols": lambda F, t: forward_select(F, t, "rols"),
    "forward_select, backward": lambda F, t: forward_select(F, t, "backward"),
}
ROWS = 60


def problem():
    rng = np.random.default_rng(0)
    F = rng.normal(size=(ROWS, 20))
    return F, F[:, [3, 7]] @ [2.0, -1.0] + 0.3 * rng.normal(size=ROWS)


@pytest.mark.parametrize("name", FITS)
def test_units_change_nothing(name):
    F, t = problem()
    plain = FITS[name](F, t)
    for power_F, power_t in ((200, 0), (-200, 0), (0, 200), (0, -200), (200, -200), (-200, 200)):
        unit_F, unit_t = 2.0**power_F, 2.0**power_t  # 2^200 is 1.6e60
        fit = FITS[name](unit_F * F, unit_t * t)
        np.testing.assert_array_equal(fit.basis, plain.basis)
        assert fit.log_evidence == pytest.approx(plain.log_evidence - ROWS * np.log(unit_t), rel=1e-9)
        np.testing.assert_allclose(fit.coef * unit_F / unit_t, plain.coef, rtol=1e-4)  # iterations stop near the end
        assert fit.status is plain.status


@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("unit", [1e80, 1e-80])
def test_what_leaves_double_precision_is_refused(name, unit):
    F, t = problem()
    for scaled, word in (((unit * F, t), r"\w+"), ((F, unit * t), "t")):
        with pytest.raises(ValueError, match=f"^{word} has values of size .*, whose powers leave double precision"):
            FITS[name](*scaled)


class Made:
    """Columns that are made when they are looked at."""

    def __init__(self, F):
        self.F, self.shape = F, F.shape

    def columns(self, which):
        return self.F[:, which]


@pytest.mark.parametrize("fit", [search, forward_select])
def test_so_are_columns_made_when_they_are_looked_at(fit):
    F, t = problem()
    made = Made(1e80 * F)
    with pytest.raises(ValueError, match=r"has values of size .*, whose powers leave"):
        fit(made, t)


@pytest.mark.parametrize("fit", [search, fit_rvm])
@pytest.mark.parametrize("unit", [1e40, 1e-60])
def test_single_precision_holds_less(fit, unit, monkeypatch):
    monkeypatch.setattr("bayessel.linear.columns.dictionary.STORE_DOUBLE", 0)
    F, t = problem()
    made = Made(unit * F)
    with pytest.raises(ValueError, match=r"Phi has values of size .*, whose powers leave double precision"):
        fit(made, t)


def test_a_start_where_nothing_is_determined_is_no_end():
    F, t = problem()
    best = fit_evidence(F, t)
    for method in ("mackay", "em"):
        fit = fit_evidence(F, t, method=method, alpha0=1e150)
        assert fit.status is Status.CONVERGED
        assert fit.log_evidence == pytest.approx(best.log_evidence, rel=1e-9)
