"""Retries: the time for which they stop a partition, and their waits beside the delays that they are given."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, groupby
from statistics import median
from typing import NamedTuple

import pandas as pd

from lab.errors import NoData
from lab.inputs.failures import Backoff
from lab.judge.measure import Measure, measure, number
from lab.measure.throughput import Throughput
from lab.record.store import Record

OVER = ("recovered", "dead_lettered")
LEAST_STALLS = 30  # a ratio over fewer says little: a stall is as long as a batch or two
BEFORE_S = 1.0  # less would mislead: just before a stall the pod served the failing message's own partition


class Stall(NamedTuple):
    """``pod`` processed nothing of ``partition`` from its head's first failure to the head's last attempt, in epoch s."""

    pod: str
    partition: int
    start: float
    end: float


class Retries(Measure):
    """Stalls of partitions by retries. A stall lasts from a message's first failure until it recovers or is given up.

    ``others`` compares each stall with the second before it, on the other partitions of the same pod. At 1 a retry costs the
    others nothing. Above 1 a saturated pod has more time for them. ``compared`` counts the stalls of pods that held the same
    two partitions or more from that second to the stall's end.
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
    """The highest messages/s of one partition whose consumer waits for failing messages, for any number of replicas.

    Each message takes ``processing_s``. The share ``fail_rate`` fails transiently and takes the first 1 to all of ``delays_s``
    too, each number with the same probability. The share ``poison_rate`` takes all of them. The processing time of later
    attempts is left out, since they are few.
    """
    upto = list(accumulate(delays_s))
    return 1 / (processing_s + fail_rate * sum(upto) / len(upto) + poison_rate * upto[-1])


def stalls(record: Record) -> list[Stall]:
    """Every stall that ended in the pod where it began, in order of its end."""
    open_at: dict[tuple[str, int], float] = {}
    found = []
    reports = record.reports("failed", *OVER, "revoked", "lost", "started")
    for one in sorted(reports, key=lambda report: report.t):
        if one.event == "started":  # in a new container the retried message begins with its first attempt again
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
def retries(record: Record) -> Retries:
    """Measure the stalls. There is no data without any, and for fewer than 30 that can be compared."""
    found = stalls(record)
    if not found:
        raise NoData("no message was retried to its end")
    counts = record.group_events["event"].value_counts()
    lengths = [stall.end - stall.start for stall in found]
    events = record.group_events[["pod", "t", "owned"]].dropna().sort_values("t", kind="stable")
    owned = {str(pod): own for pod, own in events.groupby("pod")}
    beside = [stall for stall in found if stall.pod in owned and _steady(owned[stall.pod], stall)]
    if len(beside) < LEAST_STALLS:
        raise NoData(f"{len(beside)} stalls of pods that held other partitions all the while: fewer than {LEAST_STALLS}")
    return Retries(
        failed=int(counts.get("failed", 0)),
        recovered=int(counts.get("recovered", 0)),
        given_up=int(counts.get("dead_lettered", 0)),
        stalls=len(found),
        median_s=median(lengths),
        longest_s=max(lengths),
        others=_others(record, beside),
        compared=len(beside),
    )


def _steady(own: pd.DataFrame, stall: Stall) -> bool:
    """Whether a pod, by what it ``own``ed, held the same two partitions or more from a second before the stall to its end."""
    begin, end = own["t"].searchsorted(stall.start - BEFORE_S, "left"), own["t"].searchsorted(stall.end, "right")
    return bool(0 < begin == end and own["owned"].iloc[begin - 1] >= 2)


def _others(record: Record, beside: list[Stall]) -> float:
    """Messages of the pods' other partitions during the stalls, over the number that the rate before each stall gives."""
    receipts = record.receipts
    during = before = 0.0
    for (pod, partition), group in groupby(sorted(beside), key=lambda stall: stall[:2]):
        rows = receipts[(receipts["pod"] == pod) & (receipts["partition"] != partition)]
        if rows.empty:
            continue
        done = Throughput(rows)
        for stall in group:
            during += done.between(stall.start, stall.end)
            before += done.rate(stall.start - BEFORE_S, stall.start) * (stall.end - stall.start)
    if not before:
        raise NoData("the other partitions had nothing to process before the stalls")
    return during / before


class RetryWaits(Measure):
    """The waits between the attempts at a message, as they came, each over its delay in the trial's inputs.

    A wait is from the report of an attempt that failed to that of the next attempt, which takes its processing too.
    """

    waits = number("waits", "waits between attempts")
    shortest = number("x", "shortest wait between attempts, over its delay")
    middle = number("x", "median wait between attempts, over its delay")


@measure
def retry_waits(record: Record) -> RetryWaits:
    """Measure every wait that began and ended in one pod; no data without any."""
    workload, scale = record.inputs.workload, record.scale
    delays = tuple(delay / 1000 for delay in Backoff.parse(workload.retry_ms).compressed(scale.time).delays_ms)
    waits: list[tuple[int, float]] = []
    open_at: dict[tuple[str, int, int], tuple[int, float]] = {}
    for one in sorted(record.reports("failed", "recovered", "revoked", "lost", "started"), key=lambda report: report.t):
        if one.event not in ("failed", "recovered"):  # the next owner, or the next container, begins anew
            gone = set(one.partitions)
            open_at = {at: v for at, v in open_at.items() if at[0] != one.pod or (one.event != "started" and at[1] not in gone)}
            continue
        place = (one.pod, int(one.detail["partition"]), int(one.detail["offset"]))
        if before := open_at.pop(place, None):
            waits.append((before[0], one.t - before[1]))
        if one.event == "failed":
            open_at[place] = int(one.detail["attempts"]), one.t
    ratios = [wait / delays[min(attempt, len(delays)) - 1] for attempt, wait in waits]
    if not ratios:
        raise NoData("no message was tried again")
    return RetryWaits(waits=len(ratios), shortest=min(ratios), middle=median(ratios))
