"""The length of the data coded row by row, each by its prediction from those before it.

One fit has no value of it, for it takes fits to the first few rows, to more of them, and so on:
`bayessel.diagnostics.prequential` makes them and computes the length; of a
PyMC model it is `bayessel.diagnostics.prequential_of`.
"""

from __future__ import annotations

from bayessel.criteria._criterion import Criterion

PREQUENTIAL = Criterion(
    name="prequential",
    label="Prequential code length",
    phrase="the prequential code length",
    higher_is_better=False,
    unit="nats",
    family="sequence",
    column_rank=10,
    question="Sum of -log p(next row | rows before it) in random order, the fit renewed each time the number of rows "
    "has doubled; mean and standard error over orders. Nothing is scored by what it was fitted to.",
    distrust="Distrust it where the fits to the first few rows are bad.",
)
