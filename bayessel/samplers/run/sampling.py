"""`sample`: a run from arguments to result. It stops on time, goes on after a crash, and never depends on the cores."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm
import xarray as xr

from bayessel._check import as_count, as_flag, as_seconds, check_seed, chosen_seed
from bayessel._types import Seed
from bayessel.errors import SamplingWarning
from bayessel.samplers.run.arguments import as_cores, as_folder, as_model, as_steps
from bayessel.samplers.run.closing import closing_lines, judge, unidentified, warning
from bayessel.samplers.run.draw_functions import compiler
from bayessel.samplers.run.drawn_blocks import DrawnBlocks
from bayessel.samplers.run.fingerprint import fingerprints, target_fingerprint
from bayessel.samplers.run.identity import check_same, identity
from bayessel.samplers.run.kernel import Block, Kernel, Position
from bayessel.samplers.run.result import Finisher, tree
from bayessel.samplers.run.schedule import SamplingEnd, run
from bayessel.samplers.run.start import InitialValues, checked_initvals, initial_points
from bayessel.samplers.run.store import ChainStore, Found
from bayessel.samplers.run.workers import ChainProcesses, ChainWorkers, InlineChains
from bayessel.work.progress import Progress, tell
from bayessel.work.threads import one_blas_thread

if TYPE_CHECKING:
    from bayessel.samplers.step_choice import Step


def sample(
    model: pm.Model | None = None,
    draws: int = 1000,
    *,
    tune: int = 1000,
    chains: int = 4,
    cores: int | None = None,
    random_seed: Seed = None,
    step: Step | Sequence[Step] | None = None,
    time_budget: float | str | None = None,
    store: str | os.PathLike[str] | None = None,
    resume: bool = True,
    initvals: InitialValues = None,
    log_likelihood: bool = True,
    target_accept: float | None = None,
    progressbar: bool = True,
    quiet: bool = False,
) -> xr.DataTree:
    """Sample a PyMC model with the steps that suit it.

    The draws are those of PyMC's step methods; what `pm.sample` cannot do is to stop on time, to go on where it
    stopped, and to survive a crash. For one seed the draws are the same for any number of cores, and the same whether
    a run was interrupted or not.

    Parameters
    ----------
    model : pymc.Model, optional
        By default the model of the context.
    draws, tune, chains : int
        Draws to keep per chain, draws to adapt in before, number of chains.
    cores : int, optional
        Processes that work at the same time; by default as many as the machine has, at most one per chain. Each uses
        one BLAS thread.
    random_seed : int, list of int or Generator, optional
        None takes a random one; it is in the attributes of the result. With a store, None means the stored one.
    step : step method or list of them, optional
        PyMC's, ours, or a mixture. Variables that they leave are assigned by `bayessel.steps`, which also finds
        the conjugate ones.
    time_budget : number of seconds or text, optional
        ``30``, ``"30s"``, ``"2m"``, ``"1.5h"``: sampling, tuning included, ends then at the latest, with chains of
        equal length; a draw that is being made is finished. Compiling does not count and is reported apart.
    store : path, optional
        A folder that keeps draws, statistics and the state of every step, a few times per second. If it holds a run
        of the same model, data, seed, steps and lengths, that run is continued: after a crash, an interruption, a
        time budget, or to have more draws than before. If it holds another run, it is refused.
    resume : bool
        False refuses a store that holds a run instead of going on with it. Nothing is ever overwritten.
    initvals : mapping, or list of one per chain, optional
        Starting values by name. The other variables start at PyMC's initial point, jittered.
    log_likelihood : bool
        Compute the pointwise log likelihood, which `az.loo` needs. Of the Gaussian processes and collapsed models of
        `bayessel.models` it is that of each row given all others.
    target_accept : float in (0, 1), optional
        Passed to the Hamiltonian steps that `bayessel.steps` chooses: the acceptance rate to tune their step size to.
        Nearer to 1 means smaller steps and fewer divergences.
    progressbar, quiet : bool
        A bar on a terminal, and at the end two lines on how the chains have mixed; `quiet` leaves them out as well.

    Returns
    -------
    xarray.DataTree
        Groups ``posterior`` (constrained and deterministic variables), ``unconstrained_posterior``, ``sample_stats``,
        ``log_likelihood``, ``observed_data``, ``constant_data``. Attributes of the root:

        status
            "complete", "time budget", "interrupted" or "tuning unfinished"; of a run that is not complete
            `stopped_by` is "time budget" or "interrupt", and `advice` says what to do about it.
        draws, draws_asked, tuning_steps, tune_asked, chains, cores, random_seed
            What was done, and with what.
        sampling_time, compile_time, finishing_time
            Seconds of this call; the last for deterministic variables and the log likelihood.
        resumed_draws
            Draws (tuning included) of all chains that came from the store.
        verdict
            "usable", "do not use" or "too few draws to judge" (one chain, fewer than 100 draws per chain, or
            fewer than 400 in all), as `bayessel.diagnostics.convergence` has it; `verdict_reasons` says why and what to
            do, `largest_r_hat`, `smallest_ess_bulk`, `smallest_ess_tail` and `divergences` are its numbers. Of more
            than 100 numbers per draw the slowest 100 are looked at closely, as the means of batches show them.
        n_gradient_evaluations
            Over all chains and tuning too, where the steps count them in ``n_steps``.
        step_seconds
            JSON, seconds spent in each step method, all chains together.
        model_fingerprint, data_fingerprint, target_fingerprint, versions (JSON)
            What the draws belong to.

    Warns
    -----
    SamplingWarning
        The draws should not be used: the verdict is "do not use". Or the run ended before tuning did, or with it: the
        result has no draws, since none would be from the posterior. With a store the tuning is kept, and the next call
        goes on with it.
    StoreWarning
        The store was cut short by a crash, or written by other releases.

    Notes
    -----
    The first run of a model on a machine, which compiles it, may differ in rounding from later ones, which load what
    was compiled.

    Ctrl-C ends the run after the draw that is being made and gives back the draws made so far.

    Statistics that steps of one class share get an axis over these steps, as in PyMC. Where different classes use one
    name, the last step keeps it, and the others have their own name before it.

    Examples
    --------
    >>> import numpy as np, bayessel as bs
    >>> model = bs.models.linear(np.eye(4), [0.1, 0.9, 2.1, 2.9])
    >>> trace = bs.sample(model, draws=10, tune=10, chains=2, random_seed=1)
    >>> trace.posterior["w"].shape
    (2, 10, 4)
    >>> trace.attrs["status"]
    'complete'
    """
    began = perf_counter()
    model = as_model(model)
    draws, tune, chains = as_count(draws, "draws"), as_count(tune, "tune", 0), as_count(chains, "chains")
    cores = as_cores(cores, chains)
    seed = check_seed(random_seed, "random_seed")
    budget = as_seconds(time_budget)
    folder = as_folder(store)
    resume, log_likelihood = as_flag(resume, "resume"), as_flag(log_likelihood, "log_likelihood")
    progressbar, quiet = as_flag(progressbar, "progressbar"), as_flag(quiet, "quiet")
    given = model
    if step is None:
        from bayessel.samplers.step_choice import in_suited_coordinates

        with compiler, one_blas_thread():
            model = in_suited_coordinates(model)

    with ExitStack() as stack:
        # one thread from here on, also in this process: the order of a threaded sum is in the last bits of a draw
        stack.enter_context(one_blas_thread())
        stack.enter_context(model)
        kept = None
        if folder is not None:
            kept = ChainStore(folder)
            stack.callback(kept.close)
        with compiler:
            kernel = Kernel(as_steps(step, model, target_accept), tune, draws)
            header, past, positions = _beginning(given, model, kernel, kept, seed, chains, draws, initvals, resume)
            density = "lp" not in kernel.statistics
            finisher = Finisher(model, positions[0].point, chains * draws, log_likelihood, density)
            unfinished = any(position.done < tune + draws for position in positions)
            if unfinished:
                kernel.rehearse(positions[0])
                kernel.restore()
        book = DrawnBlocks(past, positions)
        outcome, compiled = SamplingEnd(positions), perf_counter()
        if unfinished:
            workers = _workers(kernel, cores, positions[0], kept)
            stack.callback(workers.close)
            compiled = perf_counter()
            said = _Told(tune, tune + draws, [position.done for position in positions])
            with Progress(
                progressbar and not quiet, "sampling", chains * said.total, done=sum(said.done), budget=budget
            ) as progress:

                def record(block: Block) -> None:
                    if kept is not None:
                        kept.append(block)
                    book.enter(block)
                    progress.update(*said.after(block))

                outcome = run(workers, positions, tune + draws, budget, record)
        made = min(min(one.done for one in outcome.positions), tune + draws)
        status = _status(outcome, made, tune, draws)
        arrays, stats = book.arrays(tune, made)
        attributes = {
            "status": status,
            "stopped_by": "" if status == "complete" else "interrupt" if outcome.interrupted else "time budget",
            "draws": max(0, made - tune),
            "draws_asked": draws,
            "tuning_steps": min(made, tune),
            "tune_asked": tune,
            "chains": chains,
            "cores": cores,
            "sampling_time": outcome.seconds,
            "compile_time": compiled - began,
            "resumed_draws": sum(position.done for position in positions),
            "log_likelihood_note": finisher.likelihood_note,
            **_counted(book, kernel),
            **_origin(header, given),
        }
        if status != "complete":
            cause = "it was interrupted" if outcome.interrupted else f"the time budget of {budget:g} s was over"
            again = "run it again with the same store" if folder else "give it a store, and run it again with it"
            attributes["advice"] = advice(attributes, cause, again)
        # netCDF has no empty text
        attributes = {name: value for name, value in attributes.items() if value != ""}
        finishing = perf_counter()
        result = tree(finisher, arrays, stats, kernel.shared_statistics(), attributes)
        result.attrs["finishing_time"] = perf_counter() - finishing
        found = judge(result, unidentified(kernel))
    if made <= tune:
        warnings.warn(result.attrs["advice"], SamplingWarning, stacklevel=2)
        return result
    tell(progressbar and not quiet, closing_lines(found, result.attrs["divergences"]))
    if doubt := warning(found):
        warnings.warn(doubt, SamplingWarning, stacklevel=2)
    return result


class _Told:
    """What the progress bar says of all chains: draws made, divergences seen."""

    def __init__(self, tune: int, total: int, done: list[int]) -> None:
        self.tune, self.total, self.done, self._diverging = tune, total, done, 0

    def after(self, block: Block) -> tuple[int, str]:
        """Draws of all chains after a block, and where they stand."""
        self.done[block.chain] = block.after.done
        late = max(0, self.tune - block.start)
        if "diverging" in block.stats:
            self._diverging += int(block.stats["diverging"][late:].sum())
        least = min(self.done)
        what = "tuning" if least < self.tune else "sampling"
        text = f"{what} {len(self.done)} chains, {least} of {self.total} draws"
        return sum(self.done), text + (f", {self._diverging} divergences" if self._diverging else "")


def _beginning(
    given: pm.Model,
    model: pm.Model,
    kernel: Kernel,
    store: ChainStore | None,
    seed: Any,
    chains: int,
    draws: int,
    initvals: Any,
    resume: bool,
) -> tuple[dict[str, Any], list[list[Block]], list[Position]]:
    """Return what the run is, what a store holds of it, and where each chain stands.

    `given` is the user's model, `model` the same in the coordinates that are sampled.
    """
    stored = store.header() if store is not None and store.begun else None
    if stored is not None:
        if not resume:
            raise ValueError(
                f"the store {store.folder if store else ''} holds a run already, and resume=False; pass resume=True to "
                "go on with it, or give another folder"
            )
        seed = stored["seed"] if seed is None else seed
        kernel.draws = int(stored["draws"])  # steps are told the same as at the beginning
    if seed is None:
        seed = chosen_seed(None)
    checked_initvals(model, initvals, chains)
    pattern = {name: np.asarray(value) for name, value in model.initial_point(0).items()}
    header = identity(given, kernel, pattern, seed=seed, chains=chains, draws=draws, initvals=initvals)

    def started() -> list[Position]:
        def rng(purpose: int, chain: int) -> np.random.Generator:
            return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(purpose, chain)))

        points = initial_points(model, initvals, [rng(0, chain) for chain in range(chains)])
        try:
            return [kernel.begin(chain, point, rng(1, chain)) for chain, point in enumerate(points)]
        finally:
            kernel.restore()

    if stored is None or store is None:
        positions = started()
        if store is not None:
            store.create(header, positions)
        return header, [[] for _ in positions], positions
    check_same(stored, json.loads(json.dumps(header)), store.folder)
    found = store.read(stored, pattern)
    if any(one is None for one in found):  # the crash came before the first record
        fresh = started()
        for chain, one in enumerate(found):
            if one is None:
                store.append(Block(chain, 0, 0, {}, {}, fresh[chain], [], 0.0))
                found[chain] = Found([], fresh[chain])
    whole = [one for one in found if one is not None]
    return header, [one.blocks for one in whole], [one.position for one in whole]


def _workers(kernel: Kernel, cores: int, start: Position, store: ChainStore | None) -> ChainWorkers:
    if cores == 1:
        return InlineChains(kernel)
    return ChainProcesses(kernel, cores, start, not_theirs=store.descriptors if store is not None else ())


def _status(outcome: SamplingEnd, made: int, tune: int, draws: int) -> str:
    """Return how the run ended."""
    if made == tune + draws:
        return "complete"
    if made < tune:
        return "tuning unfinished"
    return "interrupted" if outcome.interrupted else "time budget"


def advice(attributes: Mapping[Any, Any], cause: str, go_on: str) -> str:
    """Return what to do about a run that was stopped, from the attributes of its result.

    `cause` is a clause that says what stopped it, `go_on` an imperative that says how to have the other draws.
    """
    made, tune = int(attributes["tuning_steps"]), int(attributes["tune_asked"])
    if made < tune:
        return (
            f"{cause} after {made} of {tune} draws of tuning: there are no draws of the posterior yet; "
            f"allow about {tune / max(made, 1):.0f} times as long for the tuning alone, pass a smaller tune, or {go_on}"
        )
    draws, asked = attributes["draws"], attributes["draws_asked"]
    return f"{cause} after {draws} of {asked} draws per chain; to have the others {go_on}"


def _counted(book: DrawnBlocks, kernel: Kernel) -> dict[str, Any]:
    """Return what the draws cost."""
    return {
        "n_gradient_evaluations": book.gradients,
        "n_gradient_evaluations_now": book.gradients - book.gradients_before,
        "step_seconds": json.dumps(book.seconds(kernel)),
        "statistics_dropped": ", ".join(book.dropped),
    }


def _origin(header: Mapping[str, Any], model: pm.Model) -> dict[str, Any]:
    """Return what the draws belong to and come from."""
    seed, (of_model, of_data) = header["seed"], fingerprints(model)
    return {
        "random_seed": seed if isinstance(seed, int) and seed < 2**63 else str(seed),
        "model_fingerprint": of_model,
        "data_fingerprint": of_data,
        "target_fingerprint": target_fingerprint(model),
        "versions": json.dumps(header["versions"]),
        "inference_library": "bayessel",
        "inference_library_version": header["versions"].get("bayessel", "unknown"),
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
