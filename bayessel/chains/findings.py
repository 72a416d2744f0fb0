"""What may be wrong with draws, in words: one function per kind of trouble, finished numbers in, findings out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import gammainccinv, ndtri
from scipy.stats import rankdata

from bayessel._check import FloatArray

#: Limits of Vehtari et al. (2021).
MAX_RHAT = 1.01
MIN_ESS_PER_CHAIN = 100
#: Betancourt (2016).
MIN_BFMI = 0.3
#: Below this many draws per chain, and below four times as many of all chains, the diagnostics themselves are noise.
FEW_DRAWS = 100
#: Divergent transitions up to this share are a note. With 400 effective draws, the least that pass for four chains, the
#: probability of a tail of 5% is known to 1.1%; a region that a fifth of that misses is not seen in any number.
ISOLATED_DIVERGENCES = 0.002
#: Unless they lie together: probability that independent ones would, for any of the variables.
_TOGETHER = 0.01
#: Fewer places say nothing of that.
_FEW_PLACES = 4
#: A chain whose centre is further from the others than this many of their standard deviations is elsewhere.
_APART = 1.0


@dataclass(frozen=True)
class Finding:
    """One thing that was noticed: what is wrong, and what to do.

    Attributes
    ----------
    kind : str
        For programs: "divergences", "rhat", "ess", …
    text, advice : str
        For people.
    problem : bool
        Whether it stands against using the draws; otherwise it is worth knowing.
    """

    kind: str
    text: str
    advice: str = ""
    problem: bool = True


def broken(names: Sequence[str], x: FloatArray, notes: Mapping[str, str]) -> list[Finding]:
    """Draws that are no numbers, chains that do not move, variables that never change."""
    found = []
    if bad := [n for n in names if notes.get(n) == "not finite"]:
        share = 1.0 - np.isfinite(x[:, :, [notes.get(n) == "not finite" for n in names]]).mean()
        found.append(
            Finding(
                "finite",
                f"{few(bad)} {_have(bad)} draws that are infinite or not a number ({share:.1%} of them).",
                "Look for overflow, a division by zero or a logarithm of zero in the model; scale its variables.",
            )
        )
    if stuck := [n for n in names if notes.get(n, "").startswith("stuck")]:
        found.append(
            Finding(
                "stuck",
                f"Chains did not move for long stretches: {few([f'{n} ({notes[n]})' for n in stuck], 3)}.",
                "Smaller steps or a longer tuning phase help if it rejects nearly everything; else start elsewhere.",
            )
        )
    if constant := [n for n in names if notes.get(n) == "constant"]:
        found.append(
            Finding(
                "constant",
                f"{few(constant)} never changed{'' if len(constant) < len(names) else ', nor did anything else'}.",
                "Fine for what the model fixes; if it should vary, no step moved it."
                if len(constant) < len(names)
                else "The sampler stands still: check its step size and where it started.",
                problem=len(constant) == len(names),
            )
        )
    return found


def size(chains: int, draws: int) -> list[Finding]:
    """Too few chains or draws for a verdict."""
    found = []
    if chains == 1:
        found.append(
            Finding(
                "chains",
                "There is one chain, and a chain that misses a mode looks fine by itself.",
                "Run at least four.",
            )
        )
    if draws < FEW_DRAWS or (chains > 1 and chains * draws < 4 * FEW_DRAWS):
        found.append(
            Finding(
                "draws",
                f"With {draws} draws per chain the diagnostics themselves are uncertain.",
                "Draw several hundred at least.",
            )
        )
    return found


def mixing(names: Sequence[str], columns: Mapping[str, FloatArray], x: FloatArray, among: int) -> list[Finding]:
    """Chains that disagree, and chains that are too short, by columns of numbers of the slowest `among` so many."""
    chains, draws = x.shape[:2]
    found: list[Finding] = []
    need = MIN_ESS_PER_CHAIN * chains
    rhat, ess = columns["r_hat"], np.fmin(columns["ess_bulk"], columns["ess_tail"])
    above = np.flatnonzero(rhat > MAX_RHAT)
    above = above[np.argsort(-rhat[above], kind="stable")]
    chance = rhat[above] <= _rhat_by_chance(ess[above], chains, among)
    far, near = above[~chance], above[chance]
    if len(near):
        found.append(
            Finding(
                "rhat-chance",
                f"R-hat is above {MAX_RHAT} for {few([f'{names[k]} ({rhat[k]:.3f})' for k in near])}, as chance alone "
                "would have it with this many effective draws and variables.",
                "More draws would settle it.",
                problem=False,
            )
        )
    apart = _chain_apart(x[:, :, far]) if len(far) and chains > 1 else None
    if len(far):
        shown = few([f"{names[k]} ({rhat[k]:.2f})" for k in far])
        if apart is not None:
            found.append(
                Finding(
                    "rhat",
                    f"Chains disagree: chain {apart} is elsewhere. R-hat above {MAX_RHAT}: {shown}.",
                    "It may sit in another mode, or still be on its way: compare log densities, tune longer, start "
                    "chains from other points; if modes are real, ask whether the model means them.",
                )
            )
        else:
            found.append(
                Finding(
                    "rhat",
                    f"Chains have not mixed: R-hat above {MAX_RHAT} for {shown}.",
                    "Draw longer; if it stays so, reparameterise what is slow or move it by another step.",
                )
            )
    for kind, meaning in (("ess_bulk", "centres"), ("ess_tail", "intervals")):
        sizes = columns[kind]
        low = sorted(map(int, np.flatnonzero(sizes < need)), key=lambda k: float(sizes[k]))
        if low:
            factor = need / max(float(sizes[low[0]]), 1.0)
            more = f"About {_round(1.2 * factor * draws)} draws per chain would do at this pace."
            if apart is not None or factor > 50:
                more = "More draws alone will hardly help."
            found.append(
                Finding(
                    kind,
                    f"Too few effective draws for {meaning} ({kind.removeprefix('ess_')} ESS below {need}): "
                    f"{few([f'{names[k]} ({sizes[k]:.0f})' for k in low])}.",
                    more,
                )
            )
    return found


def _rhat_by_chance(ess: FloatArray, chains: int, among: int) -> FloatArray:
    """The largest R-hat of chains that did mix, with this ESS and among so many variables.

    The means of the m = 2 · chains half-chains then scatter with variance m/ESS times that of the draws, so R-hat² − 1
    is about m/ESS · χ²/(m − 1). An ESS too small for its limit excuses nothing. R-hat is the larger of one for centres
    and one for spreads, so the ESS is the smaller of both.
    """
    m = 2 * chains
    quantile = 2.0 * gammainccinv(0.5 * (m - 1), 0.01 / max(among, 1)) / (m - 1)
    with np.errstate(divide="ignore"):
        return np.where(ess >= MIN_ESS_PER_CHAIN * chains, np.sqrt(1.0 + m / ess * quantile), 1.0)


def _chain_apart(x: FloatArray) -> int | None:
    """Return the chain whose centre is furthest from the others, in their standard deviations, if that is far."""
    worst, which = _APART, None
    for c in range(x.shape[0]):
        rest = np.delete(x, c, axis=0)
        centre = np.median(rest, axis=(0, 1))
        spread = np.maximum(np.median(rest.std(axis=1), axis=0), np.finfo(float).tiny)
        distance = float((np.abs(np.median(x[c], axis=0) - centre) / spread).max())
        if distance > worst:
            worst, which = distance, c
    return which


def sampler(seen: Mapping[str, FloatArray], names: Sequence[str], x: FloatArray) -> list[Finding]:
    """What the sampler itself reports: divergences, energy, trees that were cut."""
    total = x.shape[0] * x.shape[1]
    found = _divergences(seen["diverging"], names, x) if "diverging" in seen else []
    if (energy := seen.get("energy")) is not None and energy.ndim == 2 and energy.shape[1] > 3:
        with np.errstate(all="ignore"):
            bfmi = np.square(np.diff(energy, axis=1)).mean(axis=1) / np.var(energy, axis=1)
        if (low := np.flatnonzero(bfmi < MIN_BFMI)).size:
            found.append(
                Finding(
                    "bfmi",
                    f"Momentum is too weak for the range of energies (BFMI {np.nanmin(bfmi):.2f} in chain "
                    f"{_listing(low.tolist())}, limit {MIN_BFMI}): heavy tails are explored slowly.",
                    "Reparameterise what has heavy tails, or put a tighter prior on it.",
                )
            )
    for name in ("reached_max_treedepth", "maxdepth_reached"):
        if (cut := seen.get(name)) is not None and (count := int(np.sum(cut))):
            found.append(
                Finding(
                    "treedepth",
                    f"{count} of {total} trajectories reached the largest tree depth ({count / total:.1%}): they were "
                    "cut before they turned.",
                    "Scale or reparameterise the model, or raise max_treedepth.",
                    problem=count > 0.05 * total,
                )
            )
    return found


def _divergences(diverging: FloatArray, names: Sequence[str], x: FloatArray) -> list[Finding]:
    """Many, or some that lie together, say that a region is missing; a few here and there do not."""
    count, total = int(np.sum(diverging)), x.shape[0] * x.shape[1]
    if not count:
        return []
    what = f"{count} of {total} transitions diverged ({_share(count / total)})"
    advice = "Raise target_accept for smaller steps; if that is not enough, reparameterise, hierarchies above all."
    if count > ISOLATED_DIVERGENCES * total:
        what += ": the sampler fell off a region that is too curved for its steps, so that region is missing"
    elif (place := _where_together(diverging, names, x)) is not None:
        what += f", and they lie together, at {place}: a region there is too curved for the steps, and missing"
    else:
        return [
            Finding(
                "divergences",
                f"{what}, here and there: so few do not show in any number.",
                "A higher target_accept has fewer.",
                problem=False,
            )
        ]
    return [Finding("divergences", f"{what}.", advice)]


def _where_together(diverging: FloatArray, names: Sequence[str], x: FloatArray) -> str | None:
    """Where divergent draws lie, if nearer together in some variable than independent draws would: by mean ranks."""
    if diverging.shape[:2] != x.shape[:2] or not names:
        return None
    here = diverging.astype(bool).reshape(*x.shape[:2], -1).any(axis=2)
    here[:, 1:] &= ~here[:, :-1].copy()  # those that follow each other are one place
    places = int(here.sum())
    if places < _FEW_PLACES:
        return None
    ranks = rankdata(x.reshape(-1, x.shape[2]), axis=0)[here.ravel()] / (here.size + 1.0)
    z = (ranks.mean(axis=0) - 0.5) * np.sqrt(12.0 * places)
    worst = int(np.argmax(np.abs(z)))
    if abs(z[worst]) < -ndtri(0.5 * _TOGETHER / len(names)):
        return None
    return f"{'low' if z[worst] < 0.0 else 'high'} values of {names[worst]}"


def _share(share: float) -> str:
    return f"{share:.1%}" if share >= 0.0005 else f"{share:.2g}"


def few(names: Sequence[str], most: int = 5) -> str:
    """The first names, and how many more there are."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def _listing(numbers: Sequence[int]) -> str:
    return ", ".join(str(n) for n in numbers)


def _have(names: Sequence[str]) -> str:
    return "has" if len(names) == 1 else "have"


def _round(count: float) -> int:
    """Two digits are all that is known."""
    unit = 10 ** max(int(np.floor(np.log10(max(count, 1.0)))) - 1, 0)
    return int(np.ceil(count / unit) * unit)
