"""Lateness: how old events are when they are processed, and for how long the group was late by more than an objective.

Late is an event that waits: each event counts from its own time to its own receipt, whatever its partition.
"""

from __future__ import annotations

import numpy as np

from lab.errors import NoData
from lab.judge.measure import Measure, measure, number, quantity
from lab.judge.origin import UNSCALED
from lab.measure.lag import LAST
from lab.record.ages import Coverage
from lab.record.store import Record


@quantity("s", "time late by more than the objective")
def behind(record: Record, objective_s: float) -> float:
    """The seconds, from the profile's start to the trial's end, in which an event waits that is older than ``objective_s``.

    Each event waits for its own receipt, so one partition that stands still is late while all others keep up. The simulator
    knows no single event: what it calls late is of all partitions together (:func:`lab.foresee.curve.late`) and is less. There
    is no data without a ledger.
    """
    return record.waiting.late(objective_s, record.profile_start, record.end)


@quantity("s", "median age of the oldest event that waits, late in the spike")
def time_behind(record: Record) -> float:
    """The median over the spike's last third of the age of the oldest event that waits; 0 while none does.

    It is no lag over rate: where one partition is served slower than the others, its oldest event counts. There is no data
    without a spike, and without a ledger.
    """
    start, end = record.span("spike")
    return record.waiting.median(end - (end - start) * LAST, end)


@quantity("of all events", "share of events that were done in time")
def share_in_time(record: Record, objective_s: float) -> float:
    """The share of all events whose receipt, or dead letter, came within ``objective_s`` of their own time (0 to 1).

    An event that has none is not in time. There is no data without a ledger.
    """
    events = in_time = 0
    for at, done in record.lives_of_events():
        events += len(at)
        in_time += int(np.count_nonzero(done - at <= objective_s))
    if not events:
        raise NoData("nothing was produced")
    return in_time / events


@quantity("s", "greatest age that an event reached")
def oldest(record: Record) -> float:
    """The greatest age that an event reached, at its receipt or, without one, at the record's end; no data without a ledger."""
    events = record.waiting
    return float((np.minimum(events.done, record.end) - events.at).max())


@quantity("s", "age of the oldest event at worst, as far as the policy's ceiling adds to it", UNSCALED)
def ceiling_delay(record: Record) -> float:
    """By the inputs alone: no record has too little for it. See :attr:`lab.inputs.inputs.Inputs.ceiling_delay_s`."""
    return record.inputs.ceiling_delay_s


@quantity("s", "age of the first event at its receipt")
def first(record: Record) -> float:
    """The age of the very first event when its receipt came; no data when it has none."""
    firsts = [
        (int(ns[place]), int(partition[place]), int(offset[place]))
        for partition, offset, ns in record.event_parts("partition", "offset", "ts")
        for place in [ns.argmin()]
    ]
    if not firsts:
        raise NoData("nothing was produced")
    ns, partition, offset = min(firsts, key=lambda one: one[0])
    done = float(Coverage.of(record.receipts).at(np.array([partition]), np.array([offset]))[0])
    if np.isinf(done):
        raise NoData("the first event was never processed")
    return done - ns / 1e9


class TimeLag(Measure):
    """From a message's own time to its first durable receipt, for the messages due in the last third of the spike.

    A message without a receipt counts with its age at the trial's end, which is a lower bound.
    """

    messages = number("messages", "messages due in the last third of the spike")
    median_s = number("s", "median age when processed")
    p95_s = number("s", "95th percentile of age when processed")
    worst_s = number("s", "largest age when processed")
    share = number("of messages", "share of the messages with a receipt")


@measure
def timelag(record: Record) -> TimeLag:
    """Measure the spike's last third; no data when there was no spike, or nothing due in it."""
    start, end = record.span("spike")
    begin, over = end - (end - start) * LAST, record.end
    late, covered = [np.empty(0)], 0  # 8 bytes for each of these messages: a percentile needs them all
    for at, done in record.lives_of_events():
        chosen = (at >= begin) & (at < end)
        late.append(np.minimum(done[chosen], over) - at[chosen])
        covered += int(np.isfinite(done[chosen]).sum())
    ages = np.concatenate(late)
    if not len(ages):
        raise NoData("no message was due in the spike's last third")
    worst = float(ages.max())
    median, p95 = (float(value) for value in np.percentile(ages, [50, 95], overwrite_input=True))
    return TimeLag(messages=len(ages), median_s=median, p95_s=p95, worst_s=worst, share=covered / len(ages))
