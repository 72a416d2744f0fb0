"""Warnings and exceptions of bayessel. Bad input is a plain ``ValueError`` or ``TypeError``; these are the rest."""


class NumericalWarning(UserWarning):
    """A number is returned, but its status says why it deserves a second look."""


class VersionWarning(UserWarning):
    """A pickled estimator was fitted by another version of bayessel."""


class SamplingWarning(UserWarning):
    """A run gives back less than was asked for, or draws not to be used; its attributes say what, and what to do."""


class StoreWarning(UserWarning):
    """A stored run was found cut short, as by a crash; what was whole is kept."""


class DataMismatchError(ValueError):
    """Two results were fitted to different data and may not be compared."""


class DamagedFileError(ValueError):
    """A file is not what was written: cut short, changed, or of another kind."""
