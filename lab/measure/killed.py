"""Killed: what a consumer that was killed left behind, and how long its partitions stood still."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from lab.errors import NoData, known
from lab.judge.measure import Measure, detail, measure, number
from lab.judge.origin import UNSCALED
from lab.record.reconciliation import Range
from lab.record.store import Record


class Killed(Measure):
    """The kill at ``t`` (epoch s) of ``pod``, which owned ``partitions``; ``doubled`` is of the whole trial.

    The kill explains one copy of each message that the pod had processed before it and that another receipt covers too: the pod
    had not committed it, so it was processed again. ``unexplained`` are all other copies. ``oldest_s`` is from the first
    processing of an explained one to the kill. ``standstill_s`` is missing when a partition never had a receipt again.
    """

    t = detail(float, "the time of the kill")
    pod = detail(str, "the killed pod")
    partitions = detail(tuple[int, ...], "the partitions that it owned")
    doubled = number("messages", "messages processed more than once")
    unexplained = number("messages", "copies of messages that the kill does not explain")
    oldest_s = number("s", "age of the oldest message reprocessed because of the kill", UNSCALED)
    standstill_s = number("s", "longest standstill of a partition of the killed pod", UNSCALED)


@measure
def killed(record: Record) -> Killed:
    """Measure the one kill of the trial; no data when there was none, or what is doubled is not all named."""
    faults = record.trial.faults
    if len(faults) != 1:
        raise NoData(f"{len(faults)} faults: one kill is measured")
    t, pod = faults[0].t, known(faults[0].pod, "pod that was killed")
    owned = record.owners(t).get(pod, frozenset())
    ledger, receipts = record.reconciliation, record.receipts
    if sum(one.count for one in ledger.doubled) != ledger.doubled_messages:
        raise NoData("more ranges are doubled than are named")
    before = (receipts["pod"] == pod) & (receipts["end"] <= t)
    unexplained, oldest = ledger.doubled_messages, 0.0
    for one in ledger.doubled:
        mine = _covering(receipts[before], one)
        explained = (_copies(mine, one) > 0) & (_copies(_covering(receipts[~before], one), one) > 0)
        unexplained -= int(explained.sum())
        if explained.any():
            oldest = max(oldest, t - float(mine["end"].min()))
    next_ends = [receipts[(receipts["partition"] == number) & (receipts["start"] > t)]["end"].min() for number in sorted(owned)]
    waited = None if any(end != end for end in next_ends) else max((float(end) - t for end in next_ends), default=None)
    return Killed(
        t=t,
        pod=pod,
        partitions=tuple(sorted(owned)),
        doubled=ledger.doubled_messages,
        unexplained=unexplained,
        oldest_s=oldest,
        standstill_s=waited,
    )


def _covering(receipts: pd.DataFrame, place: Range) -> pd.DataFrame:
    """Those of ``receipts`` that cover an offset of ``place``."""
    here = (receipts["partition"] == place.partition) & (receipts["first"] <= place.last) & (receipts["last"] >= place.first)
    return receipts[here]


def _copies(receipts: pd.DataFrame, place: Range) -> npt.NDArray[np.int64]:
    """How many of ``receipts`` cover each offset of ``place``."""
    edges = np.zeros(place.last - place.first + 2, dtype=np.int64)
    np.add.at(edges, receipts["first"].clip(lower=place.first).to_numpy() - place.first, 1)
    np.add.at(edges, receipts["last"].clip(upper=place.last).to_numpy() - place.first + 1, -1)
    return np.cumsum(edges)[:-1]
