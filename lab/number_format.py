"""Numbers as people read them. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable


def number(value: float | None) -> str:
    """A measure for people: thousands grouped, three significant digits below a hundred; ``n/a`` where there is none."""
    if value is None or math.isnan(value):
        return "n/a"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if value == int(value) or abs(value) >= 1000:
        text = f"{value:,.0f}" if abs(value) < 1e15 else f"{value:.3g}"
    elif abs(value) >= 0.001:
        text = f"{value:.{max(1, 2 - math.floor(math.log10(abs(value))))}f}".rstrip("0").rstrip(".")
    else:
        text = f"{value:.3g}"
    return text


def beside(value: float | None, bound: float, text: Callable[[float], str] = number) -> str:
    """``value`` as ``text`` has it, with as many further digits as it takes to differ from a ``bound`` that it is not."""
    if value is None or value == bound or text(value) != text(bound):
        return number(None) if value is None else text(value)
    longer = (f"{value:,.{digits}g}" for digits in range(4, 18) if f"{value:.{digits}g}" != f"{bound:.{digits}g}")
    return next(longer, text(value))


def duration(seconds: float) -> str:
    """A time for people: ``2 h 05 min``, or ``4 min 30 s``."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min {rest:02d} s"


def many(count: int, what: str) -> str:
    """So many of ``what``: "1 row", "2 rows"."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"
