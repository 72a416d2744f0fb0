"""One contestant on one posterior in a fresh process, by whatever interpreter has it installed.

``python -m benchmarks.sampler_worker 'rvm 200' 'nutpie, centred' out.npz --seed 1`` samples, writes the draws, and
prints seconds, gradients and divergences as JSON. Peers may need an interpreter of their own: environment variable
PEERS_PYTHON names one (``pip install -e '.[bench]'`` puts them into this one).
"""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import sys
import warnings
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from typing import Any

import numpy as np

from benchmarks.rvm_worker import NOT_INSTALLED, limit
from benchmarks.sampler_cases import regression, target
from benchmarks.sampler_run import Run, Setting


@dataclass(frozen=True)
class Entrant:
    """Who samples, and in which form of the posterior.

    Attributes
    ----------
    package
        Must be importable.
    function
        'module:function' of this folder; it takes the posterior, a `Setting` and `options`.
    form
        For linear models: one of `sampler_cases.FORMS`; None for a contestant that declares the model itself.
    here
        Runs in this interpreter, not in that of the peers.
    """

    package: str
    function: str
    form: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    here: bool = False


SAMPLERS = {
    "PyMC NUTS": Entrant("pymc", "sampler_pymc:pymc_nuts", here=True),
    "nutpie": Entrant("nutpie", "sampler_pymc:nutpie"),
    "NumPyro NUTS": Entrant("numpyro", "sampler_jax:numpyro_nuts"),
    "BlackJAX NUTS": Entrant("blackjax", "sampler_jax:blackjax_nuts"),
}
#: how the forms of a linear model are called on the page
FORMS = {
    "centred": "centred",
    "non-centred": "non-centred",
    "collapsed": "collapsed",
    "spectral": "collapsed in singular vectors",
}
LOW_RANK = "nutpie, mass of low rank"


def _ours(function: str, **options: Any) -> Entrant:
    return Entrant("bayessel", f"sampler_ours:{function}", options=options, here=True)


GIBBS = {
    "bs.sample": _ours("gibbs", model="ours"),
    "bs.sample, model written in PyMC": _ours("gibbs", model="plain"),
    "pm.sample(step=bs.steps(model))": _ours("gibbs_in_pymc"),
}
NUTS = {
    f"{name}, {label}": Entrant(one.package, one.function, form, here=one.here)
    for name, one in SAMPLERS.items()
    for form, label in FORMS.items()
}
PERSISTENT = {
    "PersistentHMC": _ours("persistent", updates_per_draw="auto"),
    "PersistentHMC, metropolis": _ours("persistent", updates_per_draw="auto", accept="metropolis"),
    "PersistentHMC, windows of 2 (L = 4)": _ours("persistent", updates_per_draw="auto", window=2, n_leapfrog=4),
    "PersistentHMC in pm.sample": _ours("persistent_in_pymc", updates_per_draw="auto"),
}


def horowitz(step_size: float, updates: int) -> Entrant:
    """Return the setting of the 1996 thesis: L = 1, a = 0.95, unit mass, no tuning, Metropolis acceptance."""
    fixed = {"n_leapfrog": 1, "persistence": 0.95, "mass": "unit", "accept": "metropolis", "tune": False}
    return _ours("persistent", step_size=step_size, updates_per_draw=updates, **fixed)


FIXED = {
    "Horowitz, ε = 0.05": horowitz(0.05, 50),  # 0.5 n^(-1/2) of the thesis, n = 100
    "Horowitz, ε = 0.01": horowitz(0.01, 50),  # the smallest standard deviation
}
PLAIN = {name: Entrant(one.package, one.function, here=one.here) for name, one in SAMPLERS.items()} | {
    LOW_RANK: Entrant("nutpie", "sampler_pymc:nutpie", options={"adaptation": "low_rank"})
}
JUMPS = "PersistentHMC, dense mass and jumps"
#: on `bayessel.models.gp`: each lever by itself
PROCESS = {
    JUMPS: _ours("process", updates_per_draw="auto", mass="dense", jumps=True),
    "PersistentHMC, dense mass": _ours("process", updates_per_draw="auto", mass="dense"),
    "PersistentHMC, Laplace's Hessian for mass": _ours("process", updates_per_draw="auto", mass="laplace"),
    "PersistentHMC, diagonal mass": _ours("process", updates_per_draw="auto"),
    "PersistentHMC, diagonal mass, metropolis": _ours("process", updates_per_draw="auto", accept="metropolis"),
    "PersistentHMC, diagonal mass, L = 8, a = 0, metropolis": _ours(
        "process", n_leapfrog=8, persistence=0.0, accept="metropolis"
    ),
    "NUTS of PyMC on bs.models.gp": _ours("nuts_on_process"),
}
#: the peers with the gradient they find themselves
AUTOMATIC = {
    "PyMC NUTS, automatic gradient": Entrant("pymc", "sampler_pymc:pymc_nuts", options={"automatic": True}, here=True),
    "nutpie (Numba), automatic gradient": Entrant("nutpie", "sampler_pymc:nutpie", options={"automatic": True}),
    "nutpie (Numba), mass of low rank, automatic gradient": Entrant(
        "nutpie", "sampler_pymc:nutpie", options={"automatic": True, "adaptation": "low_rank"}
    ),
    "nutpie (JAX), automatic gradient": Entrant(
        "nutpie", "sampler_pymc:nutpie", options={"automatic": True, "backend": "jax"}
    ),
}
OWN = "NetworkSampler"
#: on a network; whoever has no form declares `bayessel.models.mlp` itself
NETWORK = {
    OWN: _ours("network"),
    "NetworkSampler, L = 100, no windows, persistence 0": _ours("network", n_leapfrog=100, window=1, persistence=0.0),
    "NUTS of PyMC on bs.models.mlp": Entrant("pymc", "sampler_ours:network", options={"nuts": True}, here=True),
}
ENTRANTS = GIBBS | NUTS | PERSISTENT | FIXED | PLAIN | PROCESS | AUTOMATIC | NETWORK


def sample(case: str, entrant: Entrant, setting: Setting) -> Run:
    """Let a contestant run."""
    module, function = entrant.function.split(":")
    call = getattr(importlib.import_module(f"benchmarks.{module}"), function)
    linear_model = case.split()[0] in ("rvm", "linear")
    own = linear_model and entrant.form is None
    posterior = regression(case) if own else target(case, entrant.form or "")
    found: Run = call(posterior, setting, **entrant.options)
    return found


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sampler_worker", description=__doc__)
    parser.add_argument("case", help="such as 'rvm 200'")
    parser.add_argument("name", choices=ENTRANTS)
    parser.add_argument("out", help="file for the draws")
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--tune", type=int, default=500)
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most", type=float, default=0.0, help="seconds of processor after which to stop")
    args = parser.parse_args(argv)
    limit(args.most)
    entrant = ENTRANTS[args.name]
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    try:
        importlib.import_module(entrant.package)
    except ImportError as problem:
        print(json.dumps({"missing": f"{entrant.package}: {problem}"}))
        return NOT_INSTALLED
    run = sample(args.case, entrant, Setting(args.chains, args.tune, args.draws, args.seed))
    np.savez(args.out, **run.draws)
    said = asdict(run)
    del said["draws"]
    print(json.dumps(said | {"version": version(entrant.package)}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
