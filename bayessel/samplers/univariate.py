"""PyMC steps that update one number at a time: adaptive rejection where the conditional is log-concave, else slices.

Both see the model through one compiled function per variable: the terms of its log density that contain the variable,
in the space of its value (a precision by its logarithm), and for adaptive rejection the derivative. Elements of a
vector are taken one after the other, each given all others, so they need not be independent of each other. They suit
the few hyperparameters at the top of a hierarchy; a long vector costs a few evaluations of those terms per element.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc import modelcontext
from pymc.step_methods import BlockedStep
from pytensor.gradient import grad
from pytensor.graph.traversal import ancestors

from bayessel._check import FloatArray, as_positive
from bayessel._pymc import StepMethodState, dataclass_state, get_random_generator, get_value_vars_from_user_vars
from bayessel.samplers.adaptive_rejection import AdaptiveRejection
from bayessel.samplers.slice import slice_sample

#: Draws before the running moments are trusted.
_FEW = 10
#: Width of a slice step in standard deviations of the draws.
_WIDTH_IN_SD = 3.0


@dataclass_state
class UnivariateState(StepMethodState):
    """Everything the next draw depends on: the random numbers and, per element, where it lives and how wide."""

    tune: bool
    n_tune: int
    seen: int  # draws behind the running moments
    centres: np.ndarray | None
    spreads: np.ndarray | None
    mean: np.ndarray | None
    squares: np.ndarray | None
    sliced: np.ndarray | None  # elements left to slice sampling


class _OneByOne(BlockedStep):
    """What the two steps share: the conditionals, and the moments learnt while tuning."""

    _state_class = UnivariateState
    _derivative = False

    def __init__(
        self,
        vars: Any = None,
        *,
        width: float | None = None,
        model: pm.Model | None = None,
        rng: Any = None,
        initial_point: Any = None,
        compile_kwargs: dict[str, Any] | None = None,
        blocked: bool = True,
    ) -> None:
        model = modelcontext(model)
        chosen = model.value_vars if vars is None else vars if isinstance(vars, list | tuple) else [vars]
        named = [model[v] if isinstance(v, str) else v for v in chosen]
        self.vars = get_value_vars_from_user_vars(named, model)
        discrete = [v.name for v in self.vars if v not in model.continuous_value_vars]
        if discrete:
            raise TypeError(
                f"{type(self).__name__} needs continuous variables, got {', '.join(discrete)}; "
                "leave those to one of PyMC's steps"
            )
        self.width = 1.0 if width is None else as_positive(width, "width")
        self._conditionals = [Conditional(model, v, self._derivative, compile_kwargs or {}) for v in self.vars]
        self.rng = get_random_generator(rng)
        self._reset(0)

    def _reset(self, tune: int) -> None:
        self.tune, self.n_tune, self.seen = tune > 0, int(tune), 0
        self.centres: np.ndarray | None = None
        self.spreads: np.ndarray | None = None
        self.mean: np.ndarray | None = None
        self.squares: np.ndarray | None = None
        self.sliced: np.ndarray | None = None

    def setup_chain(self, rng: Any, tune: int, draws: int) -> None:
        """Start a chain: nothing learnt in another one is kept."""
        super().setup_chain(rng, tune, draws)
        self._reset(tune)

    def data_changed(self) -> None:
        """Nothing to drop: the compiled functions read the data at each call."""

    def step(self, point: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Update every element of the variables once, in order."""
        new = dict(point)
        if self.centres is None:
            self._settle_at(np.concatenate([np.ravel(new[c.name]) for c in self._conditionals]))
        evaluations = fallbacks = first = 0
        for conditional in self._conditionals:
            x = np.array(new[conditional.name], dtype=np.float64)
            flat = x.reshape(-1)
            log_density = conditional.at(new, x)
            for k in range(flat.size):

                def h(value: float, k: int = k, flat: FloatArray = flat, log_density: Any = log_density) -> Any:
                    flat[k] = value
                    return log_density(k)

                here = float(flat[k])
                flat[k], taken, fell_back = self._move(h, here, first + k)
                evaluations += taken
                fallbacks += fell_back
            new[conditional.name] = x
            first += flat.size
        if self.tune:
            self._learn(np.concatenate([np.ravel(new[c.name]) for c in self._conditionals]))
        return new, [self._stats(evaluations, fallbacks)]

    def _move(self, h: Callable[[float], Any], x: float, k: int) -> tuple[float, int, int]:
        """Update element k, now at x: its new value, evaluations, and whether it had to fall back."""
        raise NotImplementedError

    def _stats(self, evaluations: int, fallbacks: int) -> dict[str, Any]:
        raise NotImplementedError

    # --- tuning -------------------------------------------------------------------------------------------------------

    def _settle_at(self, values: FloatArray) -> None:
        """Take the first point of the chain as a start, until more is known."""
        self.centres, self.spreads = values.astype(np.float64), np.full(values.size, self.width)
        self.mean, self.squares = np.zeros(values.size), np.zeros(values.size)
        self.sliced = np.zeros(values.size, dtype=bool)

    def _learn(self, values: FloatArray) -> None:
        """Running mean and variance; from half-way on without what came before, which may be the way there."""
        if self.seen == self.n_tune // 2 and self.seen >= _FEW:
            self.seen, self.n_tune = 0, 0
            self.mean, self.squares = np.zeros(values.size), np.zeros(values.size)
        assert self.mean is not None and self.squares is not None
        self.seen += 1
        away = values - self.mean
        self.mean = self.mean + away / self.seen
        self.squares = self.squares + away * (values - self.mean)
        if self.seen >= _FEW:
            sd = np.sqrt(self.squares / (self.seen - 1))
            usable = np.isfinite(sd) & (sd > 0.0)
            self.centres = np.where(usable, self.mean, np.asarray(self.centres))
            self.spreads = np.where(usable, sd, np.asarray(self.spreads))


class Conditional:
    """Log density of one value variable given all others, up to what does not contain it, and its derivative."""

    def __init__(self, model: pm.Model, value: Any, derivative: bool, compile_kwargs: dict[str, Any]) -> None:
        terms = [t for t in model.logp(sum=False) if value in set(ancestors([t]))]
        log_density = pt.add(*[t.sum() for t in terms]) if len(terms) > 1 else terms[0].sum()
        within = set(ancestors([log_density]))
        self.name = value.name
        self.others = [v.name for v in model.value_vars if v is not value and v in within]
        inputs = [value, *(v for v in model.value_vars if v is not value and v in within)]
        outputs = [log_density, *([grad(log_density, value)] if derivative else [])]
        self._function = pm.compile(inputs, outputs, **compile_kwargs)
        self._function.trust_input = True
        self._types = [(v.name, v.dtype) for v in inputs[1:]]

    def at(self, point: dict[str, Any], x: FloatArray) -> Callable[[int], tuple[float, float]]:
        """k -> (log density, derivative in element k) as a function of what is in x at the time; NaN counts as −inf."""
        others = [np.asarray(point[name], dtype=dtype) for name, dtype in self._types]
        function = self._function

        def evaluate(k: int) -> tuple[float, float]:
            with np.errstate(all="ignore"):
                value, *slope = function(x, *others)
            h = float(value)
            return (-np.inf if np.isnan(h) else h), (float(np.ravel(slope[0])[k]) if slope else 0.0)

        return evaluate


class SliceStep(_OneByOne):
    """Slice sampling (Neal 2003) of each element in turn, with widths learnt while tuning.

    Parameters
    ----------
    vars : variables or names
        Continuous variables of the model; default all.
    width : float
        First guess at the spread of an element, in the space of the value (a log for a precision); default 1.
    model, rng, initial_point, compile_kwargs, blocked
        As for every step of PyMC.
    """

    name = "slice"
    stats_dtypes_shapes: ClassVar[dict[str, Any]] = {"slice_evaluations": (np.int64, [])}

    def _move(self, h: Callable[[float], Any], x: float, k: int) -> tuple[float, int, int]:
        assert self.spreads is not None
        draw = slice_sample(lambda value: h(value)[0], x, self.rng, _WIDTH_IN_SD * self.spreads[k])
        return draw.x, draw.evaluations, 0

    def _stats(self, evaluations: int, fallbacks: int) -> dict[str, Any]:
        return {"slice_evaluations": np.int64(evaluations)}


class AdaptiveRejectionStep(_OneByOne):
    """Exact draws from log-concave conditionals, element by element; slices where log-concavity fails.

    Every draw is compared with the hull it came from, so a conditional that is not log-concave is noticed. While
    tuning, an element for which that happens is left to slice sampling for good; later the draw alone is replaced.

    Parameters
    ----------
    vars : variables or names
        Continuous variables of the model; default all.
    width : float
        First guess at the spread of an element, in the space of the value (a log for a precision); default 1.
    model, rng, initial_point, compile_kwargs, blocked
        As for every step of PyMC.

    Notes
    -----
    The distribution is left invariant whether or not the conditional p is log-concave. The first points of the hull
    come from the tuning phase and not from the current x, so the hull q, the proposal and every breach noticed on the
    way are independent of x. A proposal that is kept satisfies p ≤ q and has density p on the set where that holds;
    the current x is moved there only if it is in that set too, and stays where it is otherwise. A breach noticed on the
    way leads to a slice step. For a log-concave p the set is everything and the draw is independent of x.

    Statistics: ``ars_evaluations`` of the conditional, and ``ars_fallbacks``, the elements not drawn by rejection.
    """

    name = "adaptive_rejection"
    stats_dtypes_shapes: ClassVar[dict[str, Any]] = {
        "ars_evaluations": (np.int64, []),
        "ars_fallbacks": (np.int64, []),
    }
    _derivative = True

    def _move(self, h: Callable[[float], Any], x: float, k: int) -> tuple[float, int, int]:
        assert self.centres is not None and self.spreads is not None and self.sliced is not None
        evaluations = 0

        def counted(value: float) -> tuple[float, float]:
            nonlocal evaluations
            evaluations += 1
            return h(value)

        if not self.sliced[k]:
            centre, width = float(self.centres[k]), float(self.spreads[k])
            try:
                sampler = AdaptiveRejection(counted, (centre, centre - width, centre + width), step=width)
                new = sampler.draw(self.rng, squeeze=False)
            except ValueError:  # not log-concave, or no hull from here
                pass
            else:
                if not sampler.exceeds(x, counted(x)[0]):
                    return new, evaluations, 0
                if not self.tune:
                    return x, evaluations, 1
            if self.tune:
                self.sliced = np.where(np.arange(self.sliced.size) == k, True, self.sliced)
        draw = slice_sample(lambda value: counted(value)[0], x, self.rng, _WIDTH_IN_SD * self.spreads[k])
        return draw.x, evaluations, 1

    def _stats(self, evaluations: int, fallbacks: int) -> dict[str, Any]:
        return {"ars_evaluations": np.int64(evaluations), "ars_fallbacks": np.int64(fallbacks)}
