"""`evidence`: the probability of the data under a PyMC model, by several routes, and what they are worth together."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import process_time
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import pymc as pm

from bayessel._check import FloatArray, as_flag, as_positive, chosen_seed, one_of
from bayessel._types import Seed
from bayessel.chains.verdict import judged
from bayessel.errors import SamplingWarning
from bayessel.marginal_likelihood.annealing_route import annealing_routes
from bayessel.marginal_likelihood.bridge_route import bridge_routes
from bayessel.marginal_likelihood.draws_doubt import JudgedDraws, judge_draws
from bayessel.marginal_likelihood.fitted_evidence import FittedWithEvidence, evidence_of_fitted
from bayessel.marginal_likelihood.laplace_importance import laplace_importance
from bayessel.marginal_likelihood.model_evidence import ModelEvidence
from bayessel.marginal_likelihood.modes import DensityMode, FoundModes, find_modes, laplace
from bayessel.marginal_likelihood.nested_route import nested_route
from bayessel.marginal_likelihood.quadrature import MOST_COORDINATES, quadrature
from bayessel.marginal_likelihood.route import Route
from bayessel.marginal_likelihood.target_density import TargetDensity, refuse_discrete
from bayessel.marginal_likelihood.trace_check import check_trace
from bayessel.marginal_likelihood.verdict import judge_routes
from bayessel.samplers.run.arguments import as_model
from bayessel.samplers.run.fingerprint import fingerprints, observed_values, target_fingerprint
from bayessel.samplers.run.sampling import sample
from bayessel.samplers.step_choice import in_suited_coordinates
from bayessel.work.threads import one_blas_thread

if TYPE_CHECKING:
    import xarray as xr

#: names of the routes that can be asked for
ROUTES = ("quadrature", "laplace", "bridge", "annealing", "nested")
#: those that are taken when nothing else is said
USUAL = ("quadrature", "laplace", "bridge", "annealing")
#: particles of an annealing run with effort 1, and more for each coordinate
PARTICLES, MORE_PARTICLES = 500, 20
#: particles at least
FEWEST = 100
#: points of the prior from which modes are looked for, for each particle
CROWD = 3
#: draws and tuning of a chain with effort 1
DRAWS = 1_500
TUNE, CHAINS = 1_000, 4
#: times as many where these disagree
LONGER = 4
#: ascents from the prior, and from draws
_FROM_PRIOR, _FROM_DRAWS = 24, 6
#: points of the prior by which a grid sees what it does not reach
_ELSEWHERE = 2_000


def evidence(
    model: pm.Model | FittedWithEvidence | None = None,
    trace: xr.DataTree | None = None,
    *,
    routes: Sequence[str] = USUAL,
    effort: float = 1.0,
    random_seed: Seed = None,
    quiet: bool = False,
) -> ModelEvidence:
    """Log probability of the data under a model, p(data | model), by routes that audit each other.

    Parameters
    ----------
    model : pymc.Model or fitted estimator, optional
        By default the model of the context. All its free variables are continuous. Of an estimator with draws
        (`GPRegressor`, `MLPRegressor` and `MLPClassifier` with ``inference="mc"``) it is what its method ``evidence``
        returns: of its model, by routes and draws of its own, in nats and units of its target.
    trace : DataTree, optional
        Draws of its posterior, by `bayessel.sample`, `pymc.sample` or another sampler. Without one the model is
        sampled, where a route needs draws.
    routes : sequence of str
        "quadrature": a grid over what is left when Normal blocks are integrated out in closed form, up to three
        coordinates; where it succeeds, no other route is taken. "laplace": Laplace's approximation at the modes,
        corrected by importance sampling. "bridge": bridge sampling from draws of the posterior, twice. "annealing":
        from the prior up and from the draws down; the truth lies between. "nested": nested sampling by the package
        nautilus (``pip install "bayessel[nested]"``), for posteriors to which no tempering leads; minutes rather than
        seconds.
    effort : float
        How many times the usual draws and particles; of densities that take long there are fewer.
    random_seed : int or Generator, optional
        None takes a random one; it is in the result.
    quiet : bool
        No progress bar while sampling; estimators have a parameter for that.

    Returns
    -------
    ModelEvidence
        The value with its error, whether it is reliable and why; `print` it for one line per route.

    Raises
    ------
    TypeError
        Variables of the model are discrete: sum them out first.
    DataMismatchError
        The trace is of other data. A ValueError says where it is of another model.

    Warns
    -----
    SamplingWarning
        The number is not reliable.

    Notes
    -----
    The number is the integral of likelihood × prior over all unknowns, with every constant. Its differences between
    models of the same data are log Bayes factors (`bayes_factor`). It depends on priors as much as on data: a prior ten
    times as wide lowers it by up to log 10 for each parameter. Flat priors and potentials leave it without a meaning
    beside other models; `ModelEvidence.comparable` says so.

    Examples
    --------
    >>> import numpy as np, pymc as pm, bayessel as bs
    >>> with pm.Model() as model:
    ...     p = pm.Beta("p", 2, 2)
    ...     heads = pm.Binomial("heads", 10, p, observed=7)
    >>> found = bs.evidence(model, random_seed=1)
    >>> round(found.value, 4), found.reliable  # log of C(10, 7) B(9, 5) / B(2, 2)
    (-2.1903, True)
    """
    own = trace is None and tuple(routes) == USUAL
    if model is not None and (of_fitted := evidence_of_fitted(model, effort, random_seed, of_its_own=own)) is not None:
        return of_fitted
    declared: Any = as_model(cast(Any, model))
    wanted = as_routes(routes)
    effort, quiet = as_positive(effort, "effort"), as_flag(quiet, "quiet")
    check_variables(declared)
    if trace is not None:
        check_trace(declared, trace)
    seed = as_one_seed(random_seed)
    with surroundings(declared):
        target = TargetDensity(in_suited_coordinates(declared))
        result = audited(
            declared, target, trace, lambda more: _sampled(declared, more, seed, quiet), wanted, effort, seed
        )
    warn_of(result)
    return result


def audited(
    model: pm.Model,
    target: TargetDensity,
    trace: xr.DataTree | None,
    sampled: Callable[[float], xr.DataTree],
    wanted: Sequence[str],
    effort: float,
    seed: int,
) -> ModelEvidence:
    """The evidence by the wanted routes; `sampled` makes draws, by their effort, where there is no trace."""
    target_rng, *rngs = np.random.default_rng([seed, 18]).spawn(1 + len(ROUTES))
    by_name = dict(zip(ROUTES, rngs, strict=True))
    found: list[Route] = []
    drawn = None
    clock = process_time()
    early = find_modes(target.whole, _starts(target, None, target_rng), _scale(target, None))
    if target.is_gaussian and early.modes:
        found.append(_closed_form(early).timed(process_time() - clock))
    elif "quadrature" in wanted and target.size <= MOST_COORDINATES:
        found.append(_timed(lambda: _on_grid(target, early, target_rng)))
    if not _is_settled(found):
        draws = None if trace is None else _draws(target, trace)
        particles = max(FEWEST, int(effort * target.share * (PARTICLES + MORE_PARTICLES * target.size)))
        search = _search(target, early, particles, draws, by_name["laplace"])
        known = None if draws is None or trace is None else judge_draws(draws, search.modes, _said_of(trace))
        if trace is None and {"bridge", "annealing"} & set(wanted):
            for more in (1, LONGER):
                drawn = sampled(more * effort)
                known = judge_draws(_draws(target, drawn), search.modes, _said_of(drawn))
                if not known.doubt:
                    break
        if known is not None and "quadrature" in wanted and target.size <= MOST_COORDINATES:
            found = [_timed(lambda: _on_grid_of_draws(target, known.flat, early, target_rng))]
        if not _is_settled(found):
            found += _random_routes(target, known, search, wanted, particles, by_name)
    verdict = judge_routes(found)
    of_model, of_data = fingerprints(model)
    return ModelEvidence(
        *verdict[:4],
        routes=tuple(found),
        used=verdict.used,
        comparable=target.unnormalised,
        n_rows=sum(one.size for one in observed_values(model)),
        n_coordinates=target.size,
        integrated=target.integrated,
        model_fingerprint=of_model,
        data_fingerprint=of_data,
        target_fingerprint=target_fingerprint(model),
        random_seed=seed,
        trace=drawn,
    )


def as_routes(routes: Sequence[str]) -> list[str]:
    """Names of routes, of which there is one at least."""
    wanted = [one_of(name, "routes", ROUTES) for name in ([routes] if isinstance(routes, str) else routes)]
    if not wanted:
        raise ValueError(f"routes must name at least one of {', '.join(ROUTES)}, got none")
    return wanted


def as_one_seed(random_seed: Seed) -> int:
    """A seed as one number, which the result can hold."""
    seed = chosen_seed(random_seed, "random_seed")
    return seed if isinstance(seed, int) else int(np.random.SeedSequence(seed).generate_state(1)[0])


@contextmanager
def surroundings(model: pm.Model) -> Iterator[None]:
    """What everything here is computed in: one thread, the model's context, no warnings of numbers that overflow."""
    with warnings.catch_warnings(), one_blas_thread(), model:
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def warn_of(result: ModelEvidence) -> None:
    """Warn the caller's caller where the number is not reliable."""
    if not result.reliable:
        warnings.warn(
            f"the evidence is not reliable: {result.verdict}; print it to see every route",
            SamplingWarning,
            stacklevel=3,
        )


def check_variables(model: pm.Model) -> None:
    """Refuse models that have no evidence, or whose evidence is no integral."""
    if not model.free_RVs:
        raise ValueError("the model has no free variable: its evidence is its likelihood, model.compile_logp()({})")
    refuse_discrete(model)
    if not model.observed_RVs and not model.potentials:
        raise ValueError("the model has no observed variable: there are no data whose probability could be asked for")


def _timed(route: Callable[[], Route]) -> Route:
    clock = process_time()
    return route().timed(process_time() - clock)


def n_draws(effort: float) -> int:
    """Draws of a chain."""
    return max(200, int(DRAWS * effort))


def draws_of(model: pm.Model, seed: int) -> xr.DataTree:
    """The draws that an evidence takes where it needs some."""
    return _sampled(model, 1.0, seed, True)


def _sampled(model: pm.Model, effort: float, seed: int, quiet: bool) -> xr.DataTree:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplingWarning)  # chains that disagree are judged by the routes
        return sample(
            model,
            n_draws(effort),
            tune=TUNE,
            chains=CHAINS,
            random_seed=seed,
            log_likelihood=True,
            progressbar=not quiet,
            quiet=quiet,
        )


def _draws(target: TargetDensity, trace: xr.DataTree) -> FloatArray:
    draws = target.coordinates(trace["posterior"])
    if not draws.shape[1]:
        raise ValueError("the trace has no draws; sample longer")
    if not np.isfinite(draws).all():
        raise ValueError(
            "some draws of the trace lie on the edge of what the model allows, where it has no coordinates: they are "
            "draws of another model, or were rounded"
        )
    logs = target.logs(draws[:, :: max(1, draws.shape[1] // 50)].reshape(-1, target.size))
    if not np.isfinite(logs).all():
        raise ValueError(
            "the model gives some draws of the trace no probability: they are draws of another model, or of other data"
        )
    return draws


def _said_of(trace: xr.DataTree) -> str:
    """The verdict of the run that made a trace; where it has none, what its draws would be told."""
    return str(dict(trace.attrs).get("verdict", "")) or judged(trace["posterior"], {}).verdict


def _starts(target: TargetDensity, draws: FloatArray | None, rng: np.random.Generator) -> FloatArray:
    """Where ascents begin: the initial point, around it, the prior, and some draws."""
    starts = [target.start[None], target.start + rng.uniform(-1.0, 1.0, size=(2, target.size))]
    if not target.no_prior:
        starts.append(target.prior_draws(rng, _FROM_PRIOR))
    if draws is not None:
        flat = draws.reshape(-1, target.size)
        starts.append(flat[rng.choice(len(flat), size=min(_FROM_DRAWS, len(flat)), replace=False)])
    return np.concatenate(starts)


def _scale(target: TargetDensity, draws: FloatArray | None) -> FloatArray:
    if draws is None:
        return np.ones(target.size)
    spread = draws.reshape(-1, target.size).std(axis=0)
    return np.where(spread > 0.0, spread, 1.0)


def _closed_form(found: FoundModes) -> Route:
    value = laplace(found.modes[0])
    return Route(
        "closed form",
        value,
        max(1e-9, 1e-10 * abs(value)),
        True,
        "likelihood and prior are Normal and linear in all variables",
        found.calls,
        is_exact=True,
    )


def _on_grid(target: TargetDensity, found: FoundModes, rng: np.random.Generator) -> Route:
    if not found.modes:
        return Route.missing("quadrature", "no maximum was found", found.calls)
    elsewhere = np.concatenate([_elsewhere(target, rng), *(mode.place[None] for mode in found.modes)])
    return quadrature(
        target, found.modes[0].place, found.modes[0].factor, elsewhere, highest=found.modes[0].log_density
    )


def _on_grid_of_draws(target: TargetDensity, flat: FloatArray, found: FoundModes, rng: np.random.Generator) -> Route:
    spread = np.atleast_2d(np.cov(flat.T)) + 1e-12 * np.diag(flat.var(axis=0) + 1e-300)
    try:
        factor = np.linalg.cholesky(spread)
    except np.linalg.LinAlgError:
        return Route.missing("quadrature", "the draws do not move in some direction")
    highest = max([float(target.logs(flat).max()), *(mode.log_density for mode in found.modes)])
    return quadrature(target, flat.mean(axis=0), factor, np.concatenate([_elsewhere(target, rng), flat]), highest)


def _elsewhere(target: TargetDensity, rng: np.random.Generator) -> FloatArray:
    """Points far and wide: of the prior, or where there is none around the initial point."""
    if target.no_prior:
        return target.start + rng.standard_cauchy((_ELSEWHERE, target.size))
    return target.prior_draws(rng, _ELSEWHERE)


def _is_settled(routes: Sequence[Route]) -> bool:
    """Whether an exact route has come to a number."""
    return any(one.is_exact and one.reliable for one in routes)


class _ModeSearch(NamedTuple):
    """The route by way of modes, and the modes that draws and particles should have been at."""

    route: Route
    modes: list[DensityMode]


def _search(
    target: TargetDensity, early: FoundModes, particles: int, draws: FloatArray | None, rng: np.random.Generator
) -> _ModeSearch:
    clock = process_time()
    crowd = None if target.no_prior else target.prior_draws(rng, CROWD * particles)
    found = find_modes(target.whole, _starts(target, draws, rng), _scale(target, draws), crowd)
    route, modes = laplace_importance(target, found if found.modes else early, rng)
    return _ModeSearch(route.timed(process_time() - clock), modes)


def _random_routes(
    target: TargetDensity,
    known: JudgedDraws | None,
    search: _ModeSearch,
    wanted: Sequence[str],
    particles: int,
    rngs: dict[str, np.random.Generator],
) -> list[Route]:
    """Every route that is random."""
    found: list[Route] = []
    if "laplace" in wanted:
        found.append(search.route)
    if "bridge" in wanted and known is not None:
        clock = process_time()
        both = bridge_routes(target, known, rngs["bridge"])
        found += [one.timed((process_time() - clock) / len(both)) for one in both]
    if "annealing" in wanted:
        clock = process_time()
        ways = annealing_routes(target, known, search.modes, particles, rngs["annealing"])
        found += [one.timed((process_time() - clock) / len(ways)) for one in ways]
    if "nested" in wanted:
        found.append(_timed(lambda: nested_route(target, rngs["nested"])))
    return found
