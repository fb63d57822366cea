"""What the text claims, as data, and what follows from its own numbers: pure.

Times are s after T+0, rates events/s, lag messages. Nothing here is measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

POD_RATE = 200.0  # 2 pods for 400 events/s; also 10 messages at a time of 50 ms each
PARTITIONS = 20
MONTH_MIN = 30 * 24 * 60
USERS = 5000


@dataclass(frozen=True)
class Row:
    """A row of the expected scaling timeline; ``replicas`` is what its arrow leads to."""

    at: float
    rate: float
    lag: float
    replicas: int


TIMELINE = (
    Row(0, 400, 100, 2),
    Row(30, 800, 12_000, 2),
    Row(45, 1000, 24_000, 5),
    Row(60, 1200, 35_000, 8),
    Row(90, 1400, 28_000, 12),
    Row(120, 1400, 8_000, 15),
    Row(180, 1400, 980, 15),
    Row(360, 800, 200, 15),
    Row(480, 400, 100, 8),
    Row(600, 400, 80, 4),
)


def implied(rows: Sequence[Row], pod_rate: float = POD_RATE) -> list[float]:
    """The lag at each row that the rows' own rates and replicas add up to.

    A row's rate holds up to it, from the row before: the reading under which the text's own T+30 is right. The replicas
    are those of the row before. The first row's lag is taken as it is.
    """
    lags = [rows[0].lag]
    for before, row in pairwise(rows):
        lags.append(max(0.0, lags[-1] + (row.at - before.at) * (row.rate - before.replicas * pod_rate)))
    return lags


def monthly(fixed: float, floor: int, evening: float, evening_min: float, batch: float) -> tuple[float, float]:
    """Pod-minutes of a 30-day month (before, after).

    Before: ``fixed`` pods all month. After: ``floor`` pods all month, an evening peak a day that takes ``evening``
    pod-minutes in ``evening_min`` minutes instead of the floor's, and a batch a night of ``batch`` pod-minutes.
    """
    return fixed * MONTH_MIN, floor * MONTH_MIN + 30 * (evening - floor * evening_min) + 30 * batch


def break_even(share: float, fixed: float, floor: int, evening: float, evening_min: float, batch: float) -> float:
    """How many times as long an evening has to be until the month costs ``share`` of before; the rest as in :func:`monthly`.

    An evening that is k times as long takes k times the pod-minutes: its level is what the traffic asks for.
    """
    left = share * fixed * MONTH_MIN - floor * MONTH_MIN - 30 * batch
    return left / (30 * (evening - floor * evening_min))
