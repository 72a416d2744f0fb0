"""Every warning and exception of the library, raised by a call that deserves it.

Guards `bayessel.errors`.
"""

import inspect
import pickle

import numpy as np
import pytest

import bayessel as bs
from bayessel import errors
from bayessel.linear import fit_evidence
from bayessel.widths._comparison import WidthComparison
from bayessel.work._run import run
from bayessel.work.unit import WorkUnit

X = np.linspace(0.0, 1.0, 12)[:, None]
Y = np.sin(6.0 * X[:, 0])


class Closed:
    """An executor that takes no work."""

    def submit(self, function, *arguments):
        raise RuntimeError("cannot schedule new futures after shutdown")


def of_another_version():
    """Unpickle an estimator that says it was fitted by version 0."""
    model = bs.EvidenceRegressor(width=0.5)
    model.version_ = "0"
    pickle.loads(pickle.dumps(model))


def torn_store(folder):
    """Take up a comparison whose last record was cut short."""
    bs.compare_widths(X, Y, [0.3, 0.6], store=folder, progressbar=False)
    log = folder / "results.log"
    log.write_bytes(log.read_bytes()[:-5])
    bs.compare_widths(X, Y, [0.3, 0.6], store=folder, progressbar=False)


def damaged_file(folder):
    """Load a comparison from a file that holds none."""
    (folder / "no.nc").write_bytes(b"no comparison")
    WidthComparison.from_netcdf(folder / "no.nc")


CALLS = {
    "NumericalWarning": lambda folder: bs.EvidenceRegressor(width=0.5).fit(X, np.ones(12)),
    "VersionWarning": lambda folder: of_another_version(),
    "SamplingWarning": lambda folder: run([WorkUnit("one", abs, (-1,))], executor=Closed()),
    "StoreWarning": lambda folder: torn_store(folder / "store"),
    "DataMismatchError": lambda folder: bs.diagnostics.compare({"a": fit_evidence(X, Y), "b": fit_evidence(X, 2 * Y)}),
    "DamagedFileError": damaged_file,
}


def declared():
    return {name for name, one in vars(errors).items() if inspect.isclass(one)}


@pytest.mark.parametrize("name", sorted(CALLS))
def test_it_is_raised(name, tmp_path):
    one = getattr(errors, name)
    with pytest.warns(one) if issubclass(one, Warning) else pytest.raises(one):
        CALLS[name](tmp_path)


def test_none_is_left_out_and_all_are_of_the_usual_kinds():
    assert declared() == set(CALLS)
    for name in declared():
        assert issubclass(getattr(errors, name), UserWarning if name.endswith("Warning") else ValueError)
