"""Sampling the posterior of the kernel width: the model is declared before any fit, its chains run after all."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from bayessel._check import FloatArray, as_count
from bayessel.basis import RBFDictionary
from bayessel.chains.verdict import NOT_YET
from bayessel.errors import SamplingWarning
from bayessel.widths._posterior import WidthPosterior
from bayessel.widths._problem import WidthModel, WidthProblem
from bayessel.work.interrupts import InterruptGuard
from bayessel.work.seeds import seed_sequence

if TYPE_CHECKING:
    import pymc as pm

#: what `sample` warns of, which is said here in the words of widths
_SAID = "Do not use these draws|it was interrupted"


@dataclass(frozen=True, eq=False)
class PosteriorSampling:
    """A model whose width is unknown, ready to be sampled.

    Attributes
    ----------
    model : pymc.Model
        With the random variable ``width``.
    inputs : tuple of str
        Names of the inputs that have a width each; empty for one width.
    median, log_sd : array () or (D,)
        The prior of the width.
    kind : str
        The radial function.
    seed : int
        From the seed of the comparison.
    draws, tune, chains : int
        Lengths of the run.
    """

    model: pm.Model
    inputs: tuple[str, ...]
    median: FloatArray
    log_sd: FloatArray
    kind: str
    seed: int
    draws: int
    tune: int
    chains: int

    def run(self, cores: int | None, store: str | os.PathLike[str] | None, progressbar: bool) -> WidthPosterior:
        """Sample; Ctrl-C ends the run with the draws that there are."""
        from bayessel.samplers.run.sampling import sample

        trace: Any = None
        with warnings.catch_warnings(), InterruptGuard() as guard:
            warnings.filterwarnings("ignore", _SAID, SamplingWarning)
            trace = sample(
                self.model,
                self.draws,
                tune=self.tune,
                chains=self.chains,
                cores=cores,
                random_seed=self.seed,
                store=None if store is None else self.folder(store),
                log_likelihood=False,
                progressbar=progressbar,
                quiet=not progressbar,
            )
        none = np.empty((self.chains, 0, *self.median.shape))
        drawn = none if trace is None else np.asarray(trace["posterior"]["width"].values, dtype=np.float64)
        stopped = guard.interrupted or trace.attrs.get("stopped_by") == "interrupt"
        found = WidthPosterior(drawn, trace, self.inputs, self.median, self.log_sd, stopped)
        if found.n_draws and found.verdict == NOT_YET:
            warnings.warn(
                f"the posterior of the width should not be used yet: {found.reasons[0].rstrip('.')}; "
                "bs.diagnostics.convergence(comparison.posterior.trace) says more",
                SamplingWarning,
                stacklevel=3,
            )
        return found

    def folder(self, store: str | os.PathLike[str]) -> Path:
        """Where the chains are kept, beside the fits: one run for each kind and form."""
        return Path(os.fspath(store)).expanduser() / f"posterior-{self.kind}{'-per-input' if self.inputs else ''}"


def posterior_sampling(
    problem: WidthProblem,
    width_model: WidthModel,
    kind: str,
    names: tuple[str, ...],
    width_prior: tuple[ArrayLike, ArrayLike] | None,
    per_input: bool,
    draws: int,
    tune: int,
    chains: int,
) -> PosteriorSampling:
    """Declare the model of the same kind, with its width unknown; what cannot be is refused here, before any fit."""
    from bayessel.models.width_prior import prior_of_width

    if width_model.declare is None:
        raise ValueError("this model has no width to sample")
    draws, tune, chains = as_count(draws, "draws"), as_count(tune, "tune", 0), as_count(chains, "chains")
    # the numbers are not used, but where an input does not vary
    widths = np.ones(problem.X.shape[1]) if per_input else 1.0
    median, log_sd = prior_of_width(RBFDictionary(problem.centres, widths), problem.X, width_prior)
    model = width_model.declare(problem, kind, widths, (median, log_sd))
    seed = int(seed_sequence(problem.seed, "posterior of the width").generate_state(1)[0])
    return PosteriorSampling(model, names if per_input else (), median, log_sd, kind, seed, draws, tune, chains)
