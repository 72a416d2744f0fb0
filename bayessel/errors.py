"""Warnings and exceptions of bayessel. Bad input is a plain ``ValueError`` or ``TypeError``; these are the rest."""


class NumericalWarning(UserWarning):
    """A number is returned, but its status says why it deserves a second look."""


class VersionWarning(UserWarning):
    """A pickled estimator was fitted by another version of bayessel."""


class DataMismatchError(ValueError):
    """Two results were fitted to different data and may not be compared."""
