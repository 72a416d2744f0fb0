"""What the papers conclude of their methods, asked of a study: which way, how sure, on how many tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import ttest_1samp

from bayessel.diagnostics.delve import Study
from benchmarks import search_paper

SIGNIFICANT = 0.05
SMALL, MEDIUM, LARGE = (64, 128), (256, 512), (1024,)
BAYESIAN = ("gp-map", "gp-mc", "mlp-mc")
OTHERS = ("mlp-ese", "mars-bag", "knn-cv-1", "lin-1")


class Claim(NamedTuple):
    """One method before another by a loss, on training sets of some sizes; `close`: at most so many times its loss."""

    source: str
    better: str
    worse: str
    sizes: Sequence[int]
    loss: str = "squared"
    close: float | None = None


CLAIMS = (
    *(
        Claim("thesis: gp-mc is best on small sets", "gp-mc", other, SMALL, loss)
        for loss in ("squared", "log")
        for other in ("gp-map", "mlp-mc", *OTHERS)
    ),
    Claim("thesis: gp-map is nearly as good on medium sets", "gp-map", "gp-mc", (256,), close=1.05),
    Claim("thesis: mlp-mc for 1024 cases and more", "mlp-mc", "gp-map", LARGE),
    *(
        Claim("thesis: Bayesian methods before the rest", one, other, (*SMALL, *MEDIUM, *LARGE))
        for one in BAYESIAN
        for other in OTHERS
    ),
    Claim("thesis: bagging helps MARS", "mars-bag", "mars", (*SMALL, *MEDIUM, *LARGE)),
    *(
        Claim("evidence-guided search: order by error", *pair, (*SMALL, *MEDIUM, *LARGE))
        for pair in zip(search_paper.ORDER[:-1], search_paper.ORDER[1:], strict=True)
    ),
    Claim("evidence-guided search: order by error", "abf", "svm", (*SMALL, *MEDIUM, *LARGE)),
    Claim("evidence-guided search: order by error", "svm", "pta(1,0)", (*SMALL, *MEDIUM, *LARGE)),
)


def judged(study: Study, claims: Iterable[Claim] = CLAIMS) -> list[dict[str, Any]]:
    """A row per claim whose methods have met on two tasks at least."""
    rows = []
    for claim in claims:
        if not {claim.better, claim.worse} <= set(study.methods):
            continue
        names = [name for name, facts in study.tasks.items() if facts.attributes.get("size") in claim.sizes]
        ratios, signs = [], []
        for name in names:
            apart = against(study, claim, name)
            if apart is not None:
                ratios.append(apart[0])
                signs.append(apart[1])
        if len(ratios) > 1:
            rows.append(_row(claim, np.array(ratios), signs))
    return rows


def against(study: Study, claim: Claim, task: str) -> tuple[float, int] | None:
    """Log ratio of losses (log loss: difference), worse over better, and whether it is significant (1, 0, -1)."""
    losses = study.only([claim.better, claim.worse], [task])._fair(claim.loss, [task])
    if task not in losses or len(losses[task]) < 2:
        return None
    mine, theirs = losses[task][claim.better], losses[task][claim.worse]
    saved = theirs - mine if claim.loss == "log" else float(np.log(theirs / mine))
    try:
        found = study.compare(claim.better, claim.worse, claim.loss, task)
    except ValueError:  # a single training set in common
        return saved, 0
    return saved, -int(np.sign(found.mean)) if found.p_value < SIGNIFICANT else 0


def _row(claim: Claim, saved: Any, signs: Sequence[int]) -> dict[str, Any]:
    p = float(ttest_1samp(saved, 0.0).pvalue)
    mean, error = float(saved.mean()), float(saved.std(ddof=1) / np.sqrt(len(saved)))
    if claim.close is not None:
        said = "reproduced" if mean + 2.0 * error > -np.log(claim.close) else "not reproduced"
    elif mean > 0.0:
        said = "reproduced" if p < SIGNIFICANT else "not told apart"
    else:
        said = "contradicted" if p < SIGNIFICANT else "not told apart"
    return {
        "claim": claim.source,
        "better": claim.better,
        "worse": claim.worse,
        "cases": "-".join(dict.fromkeys((str(min(claim.sizes)), str(max(claim.sizes))))),
        "loss": claim.loss,
        "apart": _told(mean, 2.0 * error, claim.loss),
        "p": p,
        "tasks for": list(signs).count(1),
        "against": list(signs).count(-1),
        "of": len(signs),
        "found": said,
    }


def _told(mean: float, wide: float, loss: str) -> str:
    """The loss of the worse over that of the better method with an interval, or the difference of log losses."""
    if loss == "log":
        return f"{mean:.2f} ({mean - wide:.2f} to {mean + wide:.2f}) nats"
    low, middle, high = np.exp([mean - wide, mean, mean + wide])
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"
