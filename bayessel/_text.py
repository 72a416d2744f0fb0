"""Numbers and lists as a person writes them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def number(value: float, strip: bool = True) -> str:
    """Four significant digits; ``strip`` drops trailing zeros after the point."""
    if not np.isfinite(value):
        return str(value)
    if value != 0 and not 1e-4 <= abs(value) < 1e6:
        return f"{value:.3e}"
    digits = 3 - int(np.floor(np.log10(abs(value)))) if value else 0
    text = f"{value:.{max(digits, 0)}f}"
    return text.rstrip("0").rstrip(".") if strip and "." in text else text


def listing(words: Sequence[str]) -> str:
    """Join words as in a sentence: a, b and c."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def capitalised(text: str) -> str:
    """The text with a capital at its beginning."""
    return text[:1].upper() + text[1:]
