"""The comparison itself: every width on its own, then each from its neighbours' fits, then finer where it matters."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bayessel import work
from bayessel._check import as_count, as_flag, as_generator, as_positive
from bayessel._fingerprint import fingerprint
from bayessel._text import number
from bayessel._types import Seed, SupportsSubmit, Task, WidthModelName
from bayessel.errors import SamplingWarning
from bayessel.widths import arguments
from bayessel.widths._classes import CLASS_MODELS, class_codes
from bayessel.widths._comparison import WidthComparison
from bayessel.widths._finished_widths import FinishedWidths
from bayessel.widths._posterior_sampling import posterior_sampling
from bayessel.widths._problem import Candidate, WidthModel, WidthOutcome, WidthProblem
from bayessel.widths._search import FIRST_SCAN, finer, unsettled
from bayessel.widths._sweep_store import sweep_store, unit_key
from bayessel.widths.grids import check_widths, coarse_to_fine, suggest_widths
from bayessel.work.executors import check_executor
from bayessel.work.interrupts import InterruptGuard
from bayessel.work.jobs import check_jobs
from bayessel.work.progress import Progress
from bayessel.work.result_store import ResultStore


def compare_widths(
    X: ArrayLike,
    y: ArrayLike,
    widths: Iterable[float] | str | None = None,
    model: WidthModelName = "evidence",
    criteria: Sequence[str] | None = None,
    kind: str | Sequence[str] = "gaussian",
    centers: ArrayLike | None = None,
    bias: bool = True,
    progressbar: bool = True,
    names: Sequence[str] | None = None,
    target: str | None = None,
    *,
    search: bool | str | Sequence[str] | None = None,
    budget: int = 60,
    tol: float = 0.02,
    holdout: float | tuple[ArrayLike, ArrayLike] | None = None,
    n_jobs: int | None = None,
    executor: SupportsSubmit | None = None,
    store: str | os.PathLike[str] | None = None,
    random_state: Seed = 0,
    width_prior: tuple[ArrayLike, ArrayLike] | None = None,
    per_input: bool = False,
    draws: int = 1000,
    tune: int = 1000,
    chains: int = 4,
    task: Task = "regression",
) -> WidthComparison:
    r"""Judge every width by every criterion and keep what a person needs to decide.

    Parameters
    ----------
    X, y
        Inputs (N, D), or (N,) for a single input, and target (N,). Column names of a pandas frame are kept.
    widths
        Widths r of :math:`e^{-d^2/r^2}`, in the units of the inputs: positive numbers in any order. With ``search``
        two numbers are the bounds of the search. None: those of `suggest_widths`, from the distances in the data.
        ``"posterior"``: the same, and beside the comparison the width is sampled as a random variable of the PyMC model
        of the same name, ``bs.models.linear`` for ``"evidence"`` or ``bs.models.rvm`` for ``"rvm"``, weights integrated
        out (``.posterior`` of the result). Priors are the model's own: log-normal of the width (``width_prior``),
        Gamma of the precisions, normal and all but flat of the constant of ``"evidence"``.
    model
        ``"evidence"``: linear in the functions, one weight precision alpha, one noise precision beta. ``"rvm"``: the
        relevance vector machine, a precision for every weight, most of which prune their function. ``"gp"``: a Gaussian
        process with the covariance v0 exp(-d²/r²), a function around every point; its hyperparameters at their mode.
        ``"search"``: the few functions, with one weight precision, that searches guided by the evidence find.
    criteria
        Default for ``"rvm"``: ``"mdl-w"``, ``"mdl-alpha"``, ``"evidence"``, ``"loo"``; it also has
        ``"model-evidence"``, ``"elpd-loo"`` (leave-one-out log density), ``"gcv"``, ``"bic"``, ``"prequential"`` (some
        thirty fits more per width).
        ``"search"`` has the same; default: ``"mdl-w"``, ``"evidence"``, ``"model-evidence"``, ``"loo"``.
        ``"evidence"`` has ``"evidence"``, ``"model-evidence"``, ``"gcv"``, ``"loo"``, ``"uev"``, ``"fpe"``, ``"bic"``;
        default: all of them. ``"gp"`` has ``"evidence"``, ``"model-evidence"`` (by Laplace's approximation), ``"loo"``
        (these three by default), ``"elpd-loo"``, ``"gcv"``. Higher is better for the evidences and log densities, lower
        for everything else.
    kind
        Radial function: ``"gaussian"``, ``"multiquadric"``, ``"inverse_multiquadric"`` or ``"cauchy"``, or several: the
        table then has an index (kind, width). ``"gp"`` has the gaussian only.
    centers
        Centres of the functions (M, D); a number M takes M rows spread over the inputs; default: every row of X.
    bias
        Offer a constant. ``"evidence"`` gives it a flat prior; for ``"rvm"`` it is one more function, with a precision
        of its own.
    progressbar
        Show progress on a terminal or in a notebook; never in pipes.
    names, target
        Names of the inputs and of the target, for pictures and reports.
    search
        True, or criteria by name: after the first widths (13 between two bounds) go on halving the gaps on both sides
        of the best optima that lie apart, until each is known to ``tol``. All widths visited are in the table.
    budget, tol
        A search stops at this many widths per kind, and calls an optimum found when the widths beside it differ from it
        by this fraction. Criteria it had to leave before that are in ``.unsettled``, and the verdict names them.
    holdout
        A share of the rows, drawn at random and kept from the fits, or a pair (X_new, y_new): adds the criterion
        ``"holdout"``, the mean squared error on them.
    n_jobs
        Processes: None takes more than one where the work is long, -1 every core. With an executor, how many fits are
        given to it at a time. The numbers are the same.
    executor
        Who fits: a ``dask.distributed.Client``, an executor of ``concurrent.futures`` or of submitit, or anything else
        with ``submit`` that returns futures. None: this process, and processes beside it. The numbers are the same.
        Chains run on this machine in any case.
    store
        A folder that keeps every fit as it is done, and the chains of a posterior. The same call goes on where a killed
        one stopped, with the same numbers; other widths may be added. Other data or other settings are refused.
    random_state
        Seed or generator, for the rows held out, the orders of the prequential code length, and the chains.
    width_prior
        Of ``widths="posterior"``: median of the width, in units of the inputs, and standard deviation of its logarithm.
        Default: the root mean square of the standard deviations of the inputs, and 1.5 (95 % between a twentieth and
        twenty of the median).
    per_input
        Of ``widths="posterior"``: the posterior is that of one width for each input; the comparison stays that of one
        width for all.
    draws, tune, chains
        Of ``widths="posterior"``, as of `bayessel.sample`. A gradient costs as much as a fit at one width: with
        hundreds of functions take fewer ``centers``.

    task
        ``"classification"``: y are labels of any sort, two of them, and ``"evidence"`` and ``"rvm"`` are logistic
        (``"class-evidence"``, ``"class-rvm"`` in the result). Criteria are ``"evidence"`` (by Laplace's method),
        ``"elpd-loo"``, and ``"loo"``, here the mean squared error of the probabilities (Brier's score).

    Returns
    -------
    WidthComparison
        With ``.table``, ``.best(criterion)``, ``.verdict()``, ``.plot()``, ``.to_html(path)``, ``.to_netcdf(path)``,
        and ``.posterior`` where it was asked for (``.draws``, ``.mean``, ``.quantile(q)``, ``.table``, ``.verdict``,
        ``.trace``). After Ctrl-C: what was finished until then, with ``.interrupted`` set. The widths are visited from
        coarse to fine, so an interrupted run still spans the grid.

    Warns
    -----
    SamplingWarning
        A process that fitted a width ended by itself, twice (killed, crashed, or out of memory): that width is left
        out. All others are there. Or the draws of the width should not be used: ``.posterior.reasons`` says why.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(-3, 3, 60)
    >>> y = np.cos(x**2) + 0.1 * np.random.default_rng(0).standard_normal(60)
    >>> comparison = compare_widths(x, y, widths=[0.1, 0.3, 1.0, 3.0], progressbar=False)
    >>> comparison.best("evidence")
    0.3
    """
    model_name = arguments.check_task(task, model)
    width_model = arguments.check_model(model_name)
    chosen = arguments.check_criteria(model_name, criteria, held=holdout is not None)
    kinds = arguments.check_kinds(kind)
    if model_name == "gp":
        arguments.check_process(kinds, centers)
    searched = arguments.check_search(search, chosen)
    per_input = as_flag(per_input, "per_input")
    sampled = arguments.check_posterior(widths, model_name, kinds, width_prior, per_input)
    grid = () if widths is None or sampled else check_widths(widths)
    budget, tol = as_count(budget, "budget"), as_positive(tol, "tol")
    jobs, executor = check_jobs(n_jobs), check_executor(executor)
    rng = as_generator(random_state)
    if model_name in CLASS_MODELS:
        target = target or str(getattr(y, "name", None) or "label")
        y, of_one = class_codes(y)
        target = f"{target} is {of_one}"
    inputs, t, names, target = arguments.check_data(X, y, names, target)
    grid = grid or check_widths(suggest_widths(inputs))
    inputs, t, held = arguments.check_holdout(holdout, inputs, t, rng)
    centres = arguments.check_centers(centers, inputs)
    problem = WidthProblem(inputs, t, centres, as_flag(bias, "bias"), chosen, held, seed=int(rng.integers(2**31)))
    if searched:
        if len(grid) < 2:
            raise ValueError("a search needs two widths to search between, such as widths=(0.05, 5)")
        if len(grid) == 2:
            grid = tuple(float(r) for r in np.geomspace(*grid, min(FIRST_SCAN, budget)))
    progressbar = as_flag(progressbar, "progressbar")
    sampling = None
    if sampled:
        run = draws, tune, chains
        sampling = posterior_sampling(problem, width_model, kinds[0], names, width_prior, per_input, *run)
    sweep = _Sweep(problem, width_model, kinds, jobs, executor)
    with ExitStack() as stack:
        if store is not None:
            sweep.store = sweep_store(store, problem, model_name)
            stack.callback(sweep.store.close)
        sweep.progress = stack.enter_context(Progress(progressbar, "comparing widths"))
        sweep.run(grid, searched, budget, tol)
    table = sweep.ledger.table()
    posterior = None
    if sampling is not None and not sweep.interrupted:
        posterior = sampling.run(jobs if executor is None else None, store, progressbar)
    return WidthComparison(
        table=table,
        criteria=chosen,
        X=inputs,
        y=t,
        fits=sweep.ledger.fits(table),
        names=names,
        target=target,
        model=model_name,
        kinds=kinds,
        centers=centres,
        bias=problem.bias,
        held=held,
        planned=len(grid) * len(kinds),
        searched=searched,
        unsettled=() if sweep.interrupted else unsettled(sweep.ledger, searched, tol),
        interrupted=sweep.interrupted or (posterior is not None and posterior.interrupted),
        fingerprint=fingerprint(inputs, t),
        posterior=posterior,
    )


class _Sweep:
    """A run: which places are next, and what has been finished of them."""

    store: ResultStore[WidthOutcome | None] | None = None
    progress: Progress

    def __init__(
        self,
        problem: WidthProblem,
        model: WidthModel,
        kinds: Sequence[str],
        jobs: int | None,
        executor: SupportsSubmit | None,
    ) -> None:
        self.problem, self.model, self.kinds = problem, model, tuple(kinds)
        self.jobs, self.executor = jobs, executor
        self.ledger = FinishedWidths(problem, kinds)
        self.interrupted = False
        self._lost: dict[Candidate, str] = {}

    def run(self, grid: Sequence[float], searched: Sequence[str], budget: int, tol: float) -> None:
        """Visit the grid, coarse to fine, and go on from there; Ctrl-C ends it with what is done."""
        with InterruptGuard(lambda: self.ledger.rows) as guard:
            fresh = [Candidate(kind, r) for r in coarse_to_fine(grid) for kind in self.kinds]
            self._visit(fresh, "comparing widths")
            while searched:
                fresh = [place for place in finer(self.ledger, searched, budget, tol) if place not in self._lost]
                if not fresh:
                    break
                self._visit(fresh, "searching between widths")
        self.interrupted = guard.interrupted
        if self._lost:
            said = "; ".join(f"r = {number(place.width)}: {why}" for place, why in self._lost.items())
            if not self.ledger.rows:
                raise RuntimeError(f"no width could be fitted ({said})")
            warnings.warn(f"widths are left out ({said})", SamplingWarning, stacklevel=3)

    def _visit(self, fresh: Sequence[Candidate], what: str) -> None:
        """Fit every place on its own, then those that look too poor from their neighbours' fits, until none gains.

        A round reads what the round before it left and nothing else: the order of work cannot change the numbers.
        """
        self._fit([(place, (), -np.inf) for place in fresh], what)
        ledger, changed = self.ledger, set(fresh) if self.model.warm else set()
        first = True
        while changed:
            calls = []
            for place in ledger.places():
                near = [one for one in ledger.neighbours(place) if one in changed or (first and place in changed)]
                if near and ledger.dented(place):
                    calls.append((place, tuple(ledger.starts[one] for one in near), ledger.evidences[place]))
            changed, first = set(self._fit(calls, "starting from neighbours")) if calls else set(), False

    def _fit(self, calls: Sequence[tuple[Candidate, tuple[Any, ...], float]], what: str) -> list[Candidate]:
        """Run calls, enter what comes back; return the places that got something new, in the order of the calls."""
        units = [
            work.WorkUnit(
                unit_key(*call),
                self.model.evaluate,
                (self.problem, *call),
                f"{what}: r = {number(call[0].width)}",
            )
            for call in calls
        ]
        places = {unit.key: place for unit, (place, *_) in zip(units, calls, strict=True)}
        entered = set()

        def enter(unit: work.WorkUnit[WidthOutcome | None], outcome: WidthOutcome | None) -> None:
            if outcome is not None:
                self.ledger.enter(places[unit.key], outcome)
                entered.add(places[unit.key])

        report = work.run(units, self.executor, self.jobs, None, self.progress, enter, store=self.store)
        # a place that was fitted before stays as it is
        self._lost |= {places[key]: why for key, why in report.lost.items() if places[key] not in self.ledger.rows}
        if report.interrupted:
            raise KeyboardInterrupt
        return [place for place, *_ in calls if place in entered]
