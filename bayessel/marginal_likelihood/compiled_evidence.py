"""The evidence of one model given one data set after another, with everything compiled once.

Compiling takes as long as all routes together; for simulations and studies it need not be done for each data set.
"""

from __future__ import annotations

from collections.abc import Sequence

import pymc as pm
import xarray as xr
from pytensor.compile.sharedvalue import SharedVariable

from bayessel._check import as_positive
from bayessel._types import Seed
from bayessel.marginal_likelihood.audit import (
    CHAINS,
    TUNE,
    as_one_seed,
    as_routes,
    audited,
    check_variables,
    n_draws,
    surroundings,
    warn_of,
)
from bayessel.marginal_likelihood.model_evidence import ModelEvidence
from bayessel.marginal_likelihood.target_density import TargetDensity
from bayessel.samplers.run.arguments import as_steps
from bayessel.samplers.run.draw_functions import compiler
from bayessel.samplers.run.fit_of_data import DataFits, compiled_fits
from bayessel.samplers.run.kernel import Kernel
from bayessel.samplers.step_choice import in_suited_coordinates


class CompiledEvidence:
    """`evidence` of a model for what its ``pm.Data`` hold at each call.

    Parameters
    ----------
    model : pymc.Model
        Data that change are ``pm.Data``.
    routes, effort
        As in `evidence`.

    Notes
    -----
    Effects with a sampled scale are not partly centred, which suits one data set and not others: there the draws are
    not those of `evidence`, but others of the same posterior.
    """

    def __init__(
        self,
        model: pm.Model,
        *,
        routes: Sequence[str] = ("quadrature", "laplace", "bridge", "annealing"),
        effort: float = 1.0,
    ) -> None:
        self._wanted, self._effort = as_routes(routes), as_positive(effort, "effort")
        check_variables(model)
        self.model = model
        with surroundings(model), compiler:
            self._suited = in_suited_coordinates(model, run=False)
            self._target = TargetDensity(self._suited)
        theirs = {str(one.name): one for one in self._suited.data_vars if isinstance(one, SharedVariable)}
        ours = {str(one.name): one for one in model.data_vars if isinstance(one, SharedVariable)}
        self._places = theirs
        self._copied = [(ours[name], place) for name, place in theirs.items() if ours[name] is not place]
        self._fits: DataFits | None = None

    def __call__(self, random_seed: Seed = None) -> ModelEvidence:
        """The evidence of the data as they are now."""
        seed = as_one_seed(random_seed)
        for own, place in self._copied:
            place.set_value(own.get_value())
        with surroundings(self.model):
            if not self._target.data_changed():
                self._target = TargetDensity(self._suited)
            result = audited(
                self.model, self._target, None, lambda more: self._sampled(more, seed), self._wanted, self._effort, seed
            )
        warn_of(result)
        return result

    def _sampled(self, effort: float, seed: int) -> xr.DataTree:
        """Draws of the posterior, with the verdict of the run."""
        draws = n_draws(effort)
        with self._suited:
            if self._fits is None:
                with compiler:
                    kernel = Kernel(as_steps(None, self._suited, None), TUNE, draws)
                    names = [str(rv.name) for rv in self._suited.free_RVs]
                    self._fits = compiled_fits(self._suited, kernel, self._places, [({}, seed)], CHAINS, None, names)
            self._fits.kernel.draws = draws
            fit = self._fits({}, seed)
        if fit.row["status"] != "complete":
            raise RuntimeError(f"the posterior cannot be sampled: {fit.row['reason']}")
        columns = {
            name: (("chain", "draw", *(f"{name}_dim_{k}" for k in range(one.ndim - 2))), one)
            for name, one in fit.posterior.items()
        }
        tree = xr.DataTree.from_dict({"/posterior": xr.Dataset(columns)})
        tree.attrs["verdict"] = fit.row["verdict"]
        return tree
