"""The evidence of a sampled network's model: annealing that begins about where the chains are."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayessel._check import FloatArray, chosen_seed
from bayessel._numerics import few_threads
from bayessel.errors import SamplingWarning
from bayessel.estimators import _chains
from bayessel.estimators._arguments import HERE
from bayessel.fit import Evidence, Status
from bayessel.mlp.prior import PRECISION_NAMES
from bayessel.work.progress import LONG, progress_of

#: draws of the chains below which annealing looks for a beginning by itself
FEWEST_DRAWS = 50
#: nats by which another beginning must lead to more than the chains' for them to be called stuck; pilots are rough
MISSED = 10.0


class Annealed:
    """Part of `NetworkEstimator`, which has the attributes; not for direct use."""

    _rows: Any
    _samples: bool
    _kind: str
    _seed: int
    _plan: Any
    fit_: Any
    hidden_: int
    trace_: Any
    discarded_: int
    fingerprint_: str
    progressbar: bool

    def evidence(
        self,
        n_particles: int = 100,
        n_runs: int = 4,
        n_pilots: int = 4,
        updates: int = 2,
        n_leapfrog: int = 20,
        time_budget: float | str | None = None,
        random_state: Any = None,
    ) -> Any:
        r"""Estimate log p(y) with weights and all precisions integrated out, and keep it for comparisons.

        .. math:: p(y) = \int p(y|w, s)\, p(w|s)\, p(s)\, dw\, ds

        By annealing from the prior, with a reference about the draws of the chains (`AnnealedEvidence`). It becomes the
        evidence of `fit_`; `model_evidence_` and `model_evidence_se_` show it, and
        ``bs.diagnostics.compare(…, by="model-evidence")`` ranks by it.

        Parameters
        ----------
        n_particles, n_runs : int
            Particles of a run, and independent runs after the pilot runs; the error falls as 1/√(both).
        n_pilots : int
            Beginnings that are tried: the draws of the chains, and most probable networks of other searches. Where one
            of these leads to much more than the chains do, a warning says so, and `continue_fit` or more hidden units
            may help.
        updates, n_leapfrog : int
            Updates of each particle at each temperature, and leapfrog steps of each.
        time_budget : seconds or text such as "2m", optional
            No further run is begun after it; the pilots and one run are always made.
        random_state : int, Generator, RandomState or None
            Seed; None: made from that of the fit.

        Returns
        -------
        bayessel.samplers.annealed_evidence.AnnealedEvidence
            In nats and in units of y. Stopped with Ctrl-C it is of the runs there are.

        Notes
        -----
        The prior is that of `bayessel.models.mlp` in standardised units, which were read off the data: so do all models
        here that standardise. Distrust an error above half a nat (`status` UNSURE_EVIDENCE): the runs then found
        different things, and the true value is rather above than below.

        References
        ----------
        Neal (2001), Statistics and Computing 11, 125; Del Moral, Doucet and Jasra (2006), JRSS B 68, 411.
        """
        from bayessel.samplers.network_annealing import anneal_network

        check_is_fitted(self)
        if not self._samples:
            raise ValueError(
                "evidence() integrates over the priors of sampled networks; this fit has others, or none: use "
                "inference='mc' (with 'evidence' see log_evidence_)"
            )
        (X, t), draws = self._rows, self._log_hyperparameters()
        seed = np.random.SeedSequence([self._seed, 1]) if random_state is None else chosen_seed(random_state)
        with few_threads(0), progress_of(self.progressbar, 100, LONG, "annealing") as tell:
            found = anneal_network(
                X,
                t,
                hidden=self.hidden_,
                kind=self._kind,
                draws=draws,
                n_particles=n_particles,
                n_runs=n_runs,
                n_pilots=n_pilots,
                updates=updates,
                n_leapfrog=n_leapfrog,
                time_budget=None if time_budget is None else _chains.as_seconds(time_budget),
                random_state=np.random.default_rng(seed),
                progress=None if tell is None else lambda done, runs: tell(100 * done // runs, 100),
            )
        # in standardised units, as all that the engine says
        self.fit_ = replace(self.fit_, engine=replace(self.fit_.engine, evidence=found.evidence))
        found = found.in_units(self.fit_.log_units, self.fingerprint_)
        if Status.UNSURE_EVIDENCE in found.notes:
            warnings.warn(f"UNSURE_EVIDENCE: {Status.UNSURE_EVIDENCE.value}", SamplingWarning, skip_file_prefixes=HERE)
        if draws is not None and found.pilots[0] < found.pilots.max() - MISSED:
            warnings.warn(
                f"annealing has found networks that the chains have not: from the chains' draws it comes to "
                f"{found.pilots[0]:.1f} nats, from another start to {found.pilots.max():.1f}; the chains are stuck at "
                "a poor explanation of the data: fit again with another random_state, or with more hidden units",
                SamplingWarning,
                skip_file_prefixes=HERE,
            )
        return found

    @property
    def model_evidence_(self) -> float:
        """What `evidence` found, in nats and units of the data; NaN before."""
        return self._sampled_evidence().value

    @property
    def model_evidence_se_(self) -> float:
        """Its standard error in nats."""
        error = self._sampled_evidence().error
        return np.nan if error is None else error

    def _sampled_evidence(self) -> Evidence:
        check_is_fitted(self)
        found: Evidence | None = self.fit_.evidence
        return found if self._samples and found is not None else Evidence(np.nan, "sampled")

    def _log_hyperparameters(self) -> FloatArray | None:
        """Logarithms of the hyperparameters drawn, (draws, ·) as in `Precisions`; None where there are few."""
        posterior = self.trace_["posterior"]
        if not posterior.sizes["draw"]:
            return None
        parts = []
        for name in PRECISION_NAMES:
            if name in posterior:
                values = np.asarray(posterior[name].values)[:, self.discarded_ - self._plan.tune :]
                logs = np.log(np.maximum(values, np.finfo(np.float64).tiny))
                parts.append(logs.reshape(values.shape[0] * values.shape[1], -1))
        draws = len(parts[0])
        if PRECISION_NAMES[0] not in posterior:  # classes have no noise: places without a meaning
            parts.insert(0, np.zeros((draws, posterior["bias"].shape[-1])))
        return np.concatenate(parts, axis=1) if draws >= FEWEST_DRAWS else None
