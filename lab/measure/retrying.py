"""Retrying: how long partitions stood still while their head was retried, and what the others did meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from statistics import median
from typing import NamedTuple

from lab.errors import NoData
from lab.judge.measure import Measure, measure, number
from lab.measure.dip import Processed
from lab.record.store import Record

OVER = ("recovered", "dead_lettered")
LEAST_STALLS = 30  # a ratio over fewer says little: a stall is as long as a batch or two
BEFORE_S = 1.0  # just before, it was the failing message's own partition that was being served: a moment would mislead


class Stall(NamedTuple):
    """``pod`` stood still on ``partition`` from its head's first failure to its end, in epoch s."""

    pod: str
    partition: int
    start: float
    end: float


class Retrying(Measure):
    """A stall is the time from a message's first failure to its end, in which its partition stands still.

    ``others`` compares each stall with the second before it, on the other partitions of the same pod. At 1 a retry costs the
    others nothing; a saturated pod has more time for them. ``compared`` are the stalls of pods that held the same
    two partitions or more all the while.
    """

    failed = number("attempts", "attempts that failed")
    recovered = number("messages", "messages that recovered")
    given_up = number("messages", "messages given up")
    stalls = number("stalls", "stalls of a partition")
    median_s = number("s", "median stall of a partition")
    longest_s = number("s", "longest stall of a partition")
    others = number("x", "rate of a pod's other partitions while one retries, over the second before")
    compared = number("stalls", "stalls beside which other partitions are compared")


def partition_rate(processing_s: float, fail_rate: float, poison_rate: float, delays_s: Sequence[float]) -> float:
    """The most messages/s one partition can give while its failing messages are waited for, whatever the replicas.

    A message takes its processing, and with the share of each kind its delays: a transient failure the first 1 to all of
    ``delays_s``, each as likely, a poison message all of them. Attempts after the first are left out: they are few.
    """
    upto = list(accumulate(delays_s))
    return 1 / (processing_s + fail_rate * sum(upto) / len(upto) + poison_rate * upto[-1])


def stalls(record: Record) -> list[Stall]:
    """Every stall that came to its end where it began, in order of its end."""
    open_at: dict[tuple[str, int], float] = {}
    found = []
    reports = record.reports("failed", *OVER, "revoked", "lost", "started")
    for one in sorted(reports, key=lambda report: report.t):
        if one.event == "started":  # a container anew: what it retried before is someone's first attempt again
            open_at = {place: at for place, at in open_at.items() if place[0] != one.pod}
        elif one.event in ("revoked", "lost"):
            for partition in one.partitions:
                open_at.pop((one.pod, partition), None)
        else:
            place = (one.pod, int(one.detail["partition"]))
            if one.event == "failed" and one.detail["attempts"] == 1:
                open_at[place] = one.t
            elif one.event in OVER and place in open_at:
                found.append(Stall(*place, open_at.pop(place), one.t))
    return found


@measure
def retrying(record: Record) -> Retrying:
    """Measure the stalls; no data when there were none, or too few beside which others could be seen."""
    found = stalls(record)
    if not found:
        raise NoData("no message was retried to its end")
    counts = record.group_events["event"].value_counts()
    lengths = [stall.end - stall.start for stall in found]
    beside = [stall for stall in found if _steady(record, stall)]
    if len(beside) < LEAST_STALLS:
        raise NoData(f"{len(beside)} stalls of pods that held other partitions all the while: fewer than {LEAST_STALLS}")
    return Retrying(
        failed=int(counts.get("failed", 0)),
        recovered=int(counts.get("recovered", 0)),
        given_up=int(counts.get("dead_lettered", 0)),
        stalls=len(found),
        median_s=median(lengths),
        longest_s=max(lengths),
        others=_others(record, beside),
        compared=len(beside),
    )


def _steady(record: Record, stall: Stall) -> bool:
    """Whether the pod held two partitions or more, unchanged from a second before the stall to its end."""
    events = record.group_events
    told = events[(events["pod"] == stall.pod) & events["owned"].notna()]
    begin = stall.start - BEFORE_S
    before = told[told["t"] < begin]
    during = told[told["t"].between(begin, stall.end)]
    return during.empty and not before.empty and before["owned"].iloc[-1] >= 2


def _others(record: Record, beside: list[Stall]) -> float:
    """Messages of the pods' other partitions during the stalls, over those that the rate before each makes in its length."""
    receipts = record.receipts
    during = before = 0.0
    for (pod, partition), group in _grouped(beside).items():
        rows = receipts[(receipts["pod"] == pod) & (receipts["partition"] != partition)]
        if rows.empty:
            continue
        done = Processed(rows)
        for stall in group:
            during += done.between(stall.start, stall.end)
            before += done.rate(stall.start - BEFORE_S, stall.start) * (stall.end - stall.start)
    if not before:
        raise NoData("the other partitions had nothing to process before the stalls")
    return during / before


def _grouped(beside: list[Stall]) -> dict[tuple[str, int], list[Stall]]:
    found: dict[tuple[str, int], list[Stall]] = {}
    for stall in beside:
        found.setdefault((stall.pod, stall.partition), []).append(stall)
    return found
