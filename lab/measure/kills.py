"""Kills: what a consumer that was killed left behind, how long its partitions stood still, and the copies a fault explains."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from lab.errors import NoData, known
from lab.inputs.faults import KILL
from lab.judge.measure import Measure, detail, measure, number
from lab.judge.origin import UNSCALED
from lab.measure.commits import Commits, commits
from lab.record.reconciliation import Range
from lab.record.store import Record


class ConsumerKill(Measure):
    """The kill at ``t`` (epoch s) of ``pod``, which owned ``partitions``; ``doubled`` is of the whole trial.

    The kill explains one copy of each message that the pod had processed before it and that another receipt covers later: the
    pod had not committed it, so it was processed again. A message below an offset that the group was seen to have committed in
    between is none of these; where no commit was seen, any may be one. ``unexplained`` are all other copies. ``oldest_s`` is
    from the first processing of an explained one to the kill. ``standstill_s`` is missing when a partition never had a receipt
    again.
    """

    t = detail(float, "the time of the kill")
    pod = detail(str, "the killed pod")
    partitions = detail(tuple[int, ...], "the partitions that it owned")
    doubled = number("messages", "messages processed more than once")
    unexplained = number("messages", "copies of messages that the kill does not explain")
    oldest_s = number("s", "age of the oldest message reprocessed because of the kill", UNSCALED)
    standstill_s = number("s", "longest standstill of a partition of the killed pod", UNSCALED)


@measure
def consumer_kill(record: Record) -> ConsumerKill:
    """Measure the one kill of the trial; no data when there was none, or what is doubled is not all named."""
    faults = record.trial.faults
    if [one.fault for one in faults] != [KILL]:
        raise NoData(f"{len(faults)} faults: one kill is measured")
    (kill,) = faults
    t, pod = kill.t, known(kill.pod, "pod that was killed")
    owned = record.owners(t).get(pod, frozenset())
    ledger, receipts = record.reconciliation, record.receipts
    seen: Mapping[int, Commits] = {}
    with suppress(NoData):
        seen = commits(record)
    found = explained(record, [Loss(pod, t, -math.inf, t)], seen)
    next_ends = [receipts[(receipts["partition"] == number) & (receipts["start"] > t)]["end"].min() for number in sorted(owned)]
    waited = None if any(end != end for end in next_ends) else max((float(end) - t for end in next_ends), default=None)
    return ConsumerKill(
        t=t,
        pod=pod,
        partitions=tuple(sorted(owned)),
        doubled=ledger.doubled_messages,
        unexplained=ledger.doubled_messages - found.copies,
        oldest_s=found.oldest_s,
        standstill_s=waited,
    )


class Loss(NamedTuple):
    """A fault of ``pod`` at ``t`` (epoch s): what it had processed from ``after`` until ``until`` may not be committed."""

    pod: str
    t: float
    after: float
    until: float


class Explained(NamedTuple):
    """Copies of messages that losses explain, and the age of the oldest at its loss, s."""

    copies: int
    oldest_s: float


def explained(record: Record, losses: Sequence[Loss], seen: Mapping[int, Commits]) -> Explained:
    """The copies that ``losses`` explain: each explains one of a message that its pod had processed, and another did later.

    Where the commits that were ``seen``, by partition, had passed the message before the loss, it explains none.
    Raises :class:`NoData` where not all doubled ranges are named.
    """
    ledger, receipts = record.reconciliation, record.receipts
    if sum(one.count for one in ledger.doubled) != ledger.doubled_messages:
        raise NoData("more ranges are doubled than are named")
    copies, oldest_s = 0, 0.0
    for one in ledger.doubled:
        here = _covering(receipts, one)
        further = np.maximum(_copies(here, one) - 1, 0)
        by_losses = np.zeros_like(further)
        for loss in losses:
            own = (here["pod"] == loss.pod) & (here["end"] > loss.after) & (here["end"] <= loss.until)
            flying = _in_flight(here[own], one, loss, seen.get(one.partition))
            found = np.logical_and(_copies(flying, one), _copies(here[~own & (here["end"] > loss.t)], one))
            by_losses += found
            if found.any():
                oldest_s = max(oldest_s, loss.t - float(flying["end"].min()))
        copies += int(np.minimum(by_losses, further).sum())
    return Explained(copies, oldest_s)


def buried_again(record: Record, losses: Sequence[Loss]) -> int:
    """The further dead letters that ``losses`` explain: each explains one about a message that its pod had given up.

    The pod owned the message's partition then, and after the loss another letter came, not from the pod by itself. Raises
    :class:`NoData` where there are further letters and they were not kept.
    """
    if not record.reconciliation.buried_again:
        return 0
    found = 0
    for (partition, _), failed in record.dead_letters.groupby(["partition", "offset"])["failed"]:
        owners = {t: {pod for pod, owned in record.owners(t).items() if partition in owned} for t in failed}
        by_losses = 0
        for loss in losses:
            own = {t for t, pods in owners.items() if loss.after < t <= loss.until and loss.pod in pods}
            later = {t for t, pods in owners.items() if t > loss.until or (t > loss.t and pods - {loss.pod})}
            by_losses += any(one != other for one in own for other in later)
        found += min(by_losses, len(failed) - 1)
    return found


def _in_flight(receipts: pd.DataFrame, place: Range, loss: Loss, seen: Commits | None) -> pd.DataFrame:
    """``receipts`` without the messages of ``place`` that the group was seen to have committed between each and the loss."""
    if seen is None or receipts.empty:
        return receipts
    places = zip(receipts["first"].tolist(), receipts["end"].tolist(), strict=True)
    first = [max(first, seen.within(end, loss.t)) for first, end in places]
    left = receipts.assign(first=first)
    return left[left["first"] <= left["last"].clip(upper=place.last)]


def _covering(receipts: pd.DataFrame, place: Range) -> pd.DataFrame:
    """Those of ``receipts`` that cover an offset of ``place``."""
    here = (receipts["partition"] == place.partition) & (receipts["first"] <= place.last) & (receipts["last"] >= place.first)
    return receipts[here]


def _copies(receipts: pd.DataFrame, place: Range) -> npt.NDArray[np.intp]:
    """How many of ``receipts`` cover each offset of ``place``."""
    first, last = (np.sort(receipts[name].to_numpy()) for name in ("first", "last"))
    offsets = np.arange(place.first, place.last + 1)
    copies: npt.NDArray[np.intp] = np.searchsorted(first, offsets, side="right") - np.searchsorted(last, offsets)
    return copies
