"""A criterion: one way of judging a fit, with its name, its direction and the question it answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bayessel._check import FloatArray
from bayessel.fit import Fit
from bayessel.policy import SMALL_LOSS, STRONG_NATS, leaves_noise


def nothing(fit: Fit) -> bool:
    """No fit alone has a value: rows held out, or many fits, are needed."""
    return False


def no_value(fit: Fit) -> float:
    """Raise: the value needs more than one fit."""
    raise ValueError(
        "this criterion needs rows held out, or many fits of parts of the data; one fit has no value of it"
    )


@dataclass(frozen=True)
class Criterion:
    """One way of judging a fit.

    Attributes
    ----------
    name : str
        For programs: of columns, arguments and options.
    label : str
        For tables and pictures.
    phrase : str
        For sentences: "the evidence".
    higher_is_better : bool
        The direction.
    unit : str
        Of the value.
    family : str
        Criteria of one family ask the same question with other prices.
    question : str
        What the value answers.
    distrust : str
        When not to believe it.
    applies : callable
        Whether a fit has a value.
    value : callable
        The value of a fit; every fit to the same rows may be ranked by it.
    terms : callable or None
        (N,) terms whose mean (or sum, `summed`) is the value, so that differences of fits have standard errors.
    summed : bool
        Whether the value is the sum of its terms.
    charges_functions : bool
        Whether functions have to pay for themselves, so that the criterion can tell that there is no signal.
    column_rank : int
        Place among the columns of a narrow terminal, the smallest first.
    noise_share : float
        Share of the rows that a fit must leave to the noise for the value to mean something.
    of_sums : callable or None
        The value from N, the squared residuals S and tr P, where these decide it.

    Examples
    --------
    >>> from bayessel.criteria import CRITERIA
    >>> from bayessel.linear import fit_evidence
    >>> fit = fit_evidence([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]], [0.1, 0.9, 2.1])
    >>> criterion = CRITERIA["evidence"]
    >>> criterion.higher_is_better, criterion.value(fit) == fit.log_evidence
    (True, True)
    """

    name: str
    label: str
    phrase: str
    higher_is_better: bool
    unit: str
    family: str
    question: str
    distrust: str
    applies: Callable[[Fit], bool] = nothing
    value: Callable[[Fit], float] = no_value
    terms: Callable[[Fit], FloatArray] | None = None
    summed: bool = False
    charges_functions: bool = False
    column_rank: int = 99
    noise_share: float = 0.0
    of_sums: Callable[[float, float | FloatArray, float | FloatArray], FloatArray] | None = None

    @property
    def of_one_fit(self) -> bool:
        """Whether one fit can have a value, without rows held out or other fits."""
        return self.value is not no_value

    @property
    def in_nats(self) -> bool:
        """Whether differences are logarithms of ratios, so that 3 of them are odds of 20 to 1."""
        return self.unit.startswith("nats")

    @property
    def negligible_loss(self) -> float:
        """The largest loss that does not matter: nats, or a share of the error."""
        return STRONG_NATS if self.in_nats else SMALL_LOSS

    @property
    def sign(self) -> float:
        """1 where higher is better, −1 where lower is."""
        return 1.0 if self.higher_is_better else -1.0

    @property
    def better(self) -> str:
        """The direction in words."""
        return f"{'higher' if self.higher_is_better else 'lower'} is better"

    def has_meaning(self, n_rows: float, gamma: float) -> bool:
        """Whether a fit leaves rows enough to the noise for the value to mean something."""
        return not self.noise_share or leaves_noise(n_rows, gamma, self.noise_share)

    @property
    def meaning(self) -> str:
        """The question, and when to distrust the answer."""
        return f"{self.question} {self.distrust}".strip()
