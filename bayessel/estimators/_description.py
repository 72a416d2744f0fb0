"""Methods of fitted estimators that tell of their fit: rows left out, and a few lines for people."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from bayessel.estimators.listed_records import Records
from bayessel.fit import LeaveOneOut, Status, described


def leave_one_out(self: Any) -> LeaveOneOut:
    """Each training row predicted from all others, hyperparameters and functions in use staying those of all rows."""
    check_is_fitted(self)
    records: Records = self._records
    return records.of_rows_given(self.fit_.leave_one_out())


def describe(self: Any) -> str:
    """What was fitted, how it ended, how well rows left out are covered and what to do, in a few lines for people."""
    check_is_fitted(self)
    notes: tuple[Status, ...] = (self.status_, *self.notes_)
    return described(self.fit_, type(self).__name__, notes)
