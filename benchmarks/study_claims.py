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
    """One method before another by a loss, on training sets of some sizes; "close": at most so many per cent worse."""

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
    Claim("thesis: gp-map is nearly as good on medium sets", "gp-map", "gp-mc", (256,), close=5.0),
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
    """Per cent (log loss: nats) that the better method saves on a task, and whether that is significant (1, 0, -1)."""
    losses = study.only([claim.better, claim.worse], [task])._fair(claim.loss, [task])
    if task not in losses or len(losses[task]) < 2:
        return None
    mine, theirs = losses[task][claim.better], losses[task][claim.worse]
    saved = theirs - mine if claim.loss == "log" else 100.0 * np.log(theirs / mine)
    try:
        found = study.compare(claim.better, claim.worse, claim.loss, task)
    except ValueError:  # a single training set in common
        return saved, 0
    return saved, -int(np.sign(found.mean)) if found.p_value < SIGNIFICANT else 0


def _row(claim: Claim, saved: Any, signs: Sequence[int]) -> dict[str, Any]:
    p = float(ttest_1samp(saved, 0.0).pvalue)
    mean, error = float(saved.mean()), float(saved.std(ddof=1) / np.sqrt(len(saved)))
    if claim.close is not None:
        said = "reproduced" if mean + 2.0 * error > -claim.close else "not reproduced"
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
        "saved": f"{mean:.2f} +- {error:.2f} nats" if claim.loss == "log" else f"{mean:.1f} +- {error:.1f} %",
        "p": p,
        "tasks for": list(signs).count(1),
        "against": list(signs).count(-1),
        "of": len(signs),
        "found": said,
    }
