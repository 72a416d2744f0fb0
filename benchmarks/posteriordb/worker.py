# pyright: reportMissingImports=false
"""One sampler on one posterior in a fresh process, by whatever interpreter has it installed.

``python -m benchmarks.posteriordb.worker 'arK-arK' nutpie --seed 1`` samples and prints what it cost, how many
effective draws there are, and how far moments are from those of the reference, as JSON. The models are those of the
folder POSTERIORDB, and those of `geometries`.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import logging
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.posteriordb import geometries

CHAINS, TUNE, DRAWS = 4, 1000, 1000


def catalogue() -> Any:
    """The module with the models of posteriordb."""
    path = Path(os.environ["POSTERIORDB"]) / "models.py"
    spec = importlib.util.spec_from_file_location("posteriordb_models", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def known(name: str) -> tuple[Any, list[dict[str, Any]], Callable[..., Any]]:
    """A model, what is known of its posterior, one row for each number, and how to find a number in an array."""
    if name in geometries.CATALOGUE:
        shape = geometries.CATALOGUE[name]
        exact = {"mcse_mean": 0.0, "mcse_sd": 0.0}
        rows = [{"parameter": one, "mean": mean, "sd": sd} | exact for one, (mean, sd) in shape.moments.items()]
        return shape.make(), rows, lambda array, one: array[..., int(one[2:-1]) - 1] if "[" in one else array
    module = catalogue()
    case, reference = module.CATALOGUE[name], []
    if case.reference:
        lines = (Path(os.environ["POSTERIORDB"]) / "reference.csv").read_text().splitlines()
        # names of parameters have commas: the numbers are counted from the right
        header = lines[0].split(",")[2:]
        for line in lines[1:]:
            of, _, rest = line.replace('"', "").partition(",")
            parts = rest.split(",")
            numbers = parts[-len(header) :]
            if of == case.reference:
                parameter = ",".join(parts[: -len(header)])
                reference.append({"parameter": parameter, **dict(zip(header, numbers, strict=True))})
    return module.build(name), reference, module.element


# --- samplers: model, seed -> trace, seconds of compiling and of sampling by the clock, of processor of sampling ------

type Sampled = tuple[Any, float, float, float]


def _timed(compiled: float, sample: Callable[[], Any]) -> Sampled:
    clock, cpu = time.perf_counter(), time.process_time()
    trace = sample()
    return trace, compiled, time.perf_counter() - clock, time.process_time() - cpu


def ours(model: Any, seed: int) -> Sampled:
    """`bs.sample` by default, one core."""
    import bayessel as bs

    cpu = time.process_time()
    trace = bs.sample(
        model, DRAWS, tune=TUNE, chains=CHAINS, cores=1, random_seed=seed, log_likelihood=False, progressbar=False
    )
    spent, compiling, sampling = time.process_time() - cpu, trace.attrs["compile_time"], trace.attrs["sampling_time"]
    # compiling is not told apart in seconds of processor: by its share of the clock
    return trace, compiling, sampling, spent * sampling / (compiling + sampling)


def nutpie(model: Any, seed: int, adaptation: str = "diag") -> Sampled:
    """Nutpie by default, or with a mass of low rank."""
    import nutpie as package

    before = time.perf_counter()
    compiled = package.compile_pymc_model(model)
    options: dict[str, Any] = {"chains": CHAINS, "cores": 1, "progress_bar": False, "adaptation": adaptation}
    return _timed(
        time.perf_counter() - before,
        lambda: package.sample(compiled, draws=DRAWS, tune=TUNE, seed=seed, save_warmup=False, **options),
    )


def nutpie_low_rank(model: Any, seed: int) -> Sampled:
    """Nutpie with a mass of low rank on top of the diagonal."""
    return nutpie(model, seed, "low_rank")


def pymc(model: Any, seed: int) -> Sampled:
    """NUTS in Python, PyMC's own."""
    import pymc as pm

    before = time.perf_counter()
    with model:
        step = pm.NUTS()
        options: dict[str, Any] = {"progressbar": False, "quiet": True, "compute_convergence_checks": False}
        pm.sample(2, tune=2, chains=2, cores=1, step=step, random_seed=seed, **options)
        return _timed(
            time.perf_counter() - before,
            lambda: pm.sample(DRAWS, tune=TUNE, chains=CHAINS, cores=1, step=step, random_seed=seed, **options),
        )


def _jax(which: str, model: Any, seed: int) -> Sampled:
    from pymc.sampling import jax

    options: dict[str, Any] = {"progressbar": False, "compute_convergence_checks": False, "random_seed": seed}
    made = getattr(jax, f"sample_{which}_nuts")
    with model:
        before = time.perf_counter()
        made(draws=4, tune=4, chains=CHAINS, chain_method="vectorized", **options)
        first = time.perf_counter() - before
        return _timed(first, lambda: made(draws=DRAWS, tune=TUNE, chains=CHAINS, chain_method="vectorized", **options))


def numpyro(model: Any, seed: int) -> Sampled:
    """NumPyro's NUTS through PyMC."""
    return _jax("numpyro", model, seed)


def blackjax(model: Any, seed: int) -> Sampled:
    """BlackJAX' NUTS through PyMC."""
    return _jax("blackjax", model, seed)


SAMPLERS: dict[str, Callable[[Any, int], Sampled]] = {
    "bs.sample": ours,
    "nutpie": nutpie,
    "nutpie, low rank": nutpie_low_rank,
    "PyMC NUTS": pymc,
    "NumPyro NUTS": numpyro,
    "BlackJAX NUTS": blackjax,
}
#: which are not peers
HERE = ("bs.sample",)
#: what a method is imported from
PACKAGES = dict(zip(SAMPLERS, ("bayessel", "nutpie", "nutpie", "pymc", "numpyro", "blackjax"), strict=True))


# --- what is told of a trace ---------------------------------------------------------------------------------------


def scores(trace: Any, free: list[str], reference: list[dict[str, Any]], element: Any) -> dict[str, Any]:
    """Effective draws of the free variables, R-hat, and the worst distance from the reference in standard errors."""
    import arviz as az

    posterior = trace["posterior"].to_dataset()[free]

    def lowest(found: Any) -> float:
        return float(min(np.nanmin(found[name]) if np.isfinite(found[name]).any() else 0.0 for name in found.data_vars))

    told: dict[str, Any] = {
        "bulk": lowest(az.ess(posterior, method="bulk")),
        "tail": lowest(az.ess(posterior, method="tail")),
        "rhat": max(float(np.nanmax(one)) for one in az.rhat(posterior).data_vars.values()),
    }
    whole, worst = trace["posterior"].to_dataset(), 0.0
    for row in reference:
        name = row["parameter"].partition("[")[0]
        if name not in whole:
            continue
        draws = np.asarray(element(whole[name].values, row["parameter"]), dtype=float)
        for ours_of, error_of, what in (
            (draws.mean(), float(az.mcse(draws, method="mean")), "mean"),
            (draws.std(ddof=1), float(az.mcse(draws, method="sd")), "sd"),
        ):
            error = np.hypot(error_of, float(row[f"mcse_{what}"]))
            z = abs(ours_of - float(row[what])) / max(error, 1e-300)
            worst = max(worst, z if np.isfinite(z) else np.inf)
    told["z"] = worst if reference else None
    stats = trace["sample_stats"].to_dataset()
    told["gradients"] = int(stats["n_steps"].sum()) if "n_steps" in stats else None
    told["diverging"] = int(stats["diverging"].sum()) if "diverging" in stats else 0
    return told


def main(argv: list[str] | None = None) -> int:
    """Sample and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.posteriordb.worker", description=__doc__)
    parser.add_argument("model")
    parser.add_argument("sampler", choices=SAMPLERS)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    if importlib.util.find_spec(PACKAGES[given.sampler]) is None:
        print(json.dumps({"error": f"{PACKAGES[given.sampler]} is not installed"}))
        return 0
    model, reference, element = known(given.model)
    trace, compiling, seconds, cpu = SAMPLERS[given.sampler](model, given.seed)
    told = scores(trace, [str(rv.name) for rv in model.free_RVs], reference, element)
    told |= {"compiling": compiling, "seconds": seconds, "cpu": cpu}
    if given.sampler in HERE:
        import bayessel as bs

        verdict = bs.diagnostics.convergence(trace)
        told["usable"] = bool(verdict.ok)
        told["steps"] = trace.attrs.get("step_seconds", "")
    print(json.dumps(told))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
