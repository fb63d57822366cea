"""Validity: what a trial shows of the machine and of itself, by which it is evidence or is not (:mod:`lab.judge.gates`)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

from lab.errors import NoData
from lab.inputs import fidelity
from lab.judge import gates
from lab.judge.claim import Verdict
from lab.judge.measure import Measure, measure, number
from lab.judge.origin import UNSCALED
from lab.measure.delivery import tallied
from lab.measure.lag import longest_gap
from lab.record.store import Record

LATE_S = 0.1  # at real time
PART = 0.1  # of the trial's shortest time


class Validity(Measure):
    """One quantity for each gate; those of the machine are from when the baseline had settled to the end of the trial.

    A quantity is missing where the record has not what it is made of: a record of before ``load.parquet`` was written has no
    load, and a kernel without pressure stall information has no pressure.
    """

    lateness = number("x", "producer's lateness p99 over what the trial allows")
    steal = number("of CPU time", "CPU time that the hypervisor took")
    cpu_pressure = number("of the time", "time in which a task waited for CPU")
    io_pressure = number("of the time", "time in which a task waited for a disk")
    memory_pressure = number("of the time", "time in which a task waited for memory")
    foreign_load = number(
        "x", "CPU time of everything else over the trial's own, or over what that left of the machine's if it is more"
    )
    scrape_gap = number("x", "longest gap between samples of lag over the median gap")
    lag_sum = number("messages", "largest difference between the lag and the sum of the partitions' at a scrape")
    order = number("receipts", "receipts that began before that of the offsets before theirs had ended")
    clock = number("x", "how far the wall clock was moved over how late the trial allows its producer to be")
    rounding = number("of it", "largest change of a time or a lag of the policy by rounding")
    schedule = number("faults", "planned faults without a row, and rows without a planned fault")
    settle = number("of its deadline", "time until the baseline had settled")


@measure
def validity(record: Record) -> Validity:
    """Every quantity by itself: one that is missing leaves the others.

    A trial allows its producer a lateness of 100 ms at real time, else a tenth of the shortest of its profile's phases, the
    times of its policy and the HPA's sync.
    """
    computed: dict[str, Callable[[Record], float]] = {
        "lateness": _lateness,
        "steal": lambda one: _share(one, "steal_s", one.trial.machine.cores),
        "cpu_pressure": lambda one: _share(one, "cpu_waiting_s"),
        "io_pressure": lambda one: _share(one, "io_waiting_s"),
        "memory_pressure": lambda one: _share(one, "memory_waiting_s"),
        "foreign_load": _foreign_load,
        "scrape_gap": lambda one: longest_gap(one, one.driven, one.end),
        "lag_sum": _lag_sum,
        "order": _order,
        "clock": _clock,
        "rounding": _rounding,
        "schedule": _schedule,
        "settle": _settle,
    }
    found: dict[str, float | None] = dict.fromkeys(computed)
    for name, compute in computed.items():
        with suppress(NoData):
            found[name] = compute(record)
    return Validity(**found)


def judge_validity(record: Record) -> tuple[Verdict, ...]:
    """The verdict on every gate of ``record``."""
    found = validity(record)
    return gates.judge_gates(lambda name: getattr(found, name))


class Punctuality(Measure):
    """How long after its due time an event was handed over at most, over all events; of the worst producer.

    The producer is an open loop: it catches up with a late send and skips none. It is a gate of validity, and no claim about
    the group: where the 99th percentile comes near the times that a trial measures, the trial did not offer its profile.
    """

    median_ms = number("ms", "median lateness of the producer", UNSCALED)
    p99_ms = number("ms", "99th percentile of the producer's lateness", UNSCALED)
    worst_ms = number("ms", "largest lateness of the producer", UNSCALED)


@measure
def punctuality(record: Record) -> Punctuality:
    """Read the producer's tally; no data without one, or where what drove the traffic keeps no schedule to be late by."""
    median, p99, worst = map(max, tallied(record, "late_p50_ms", "late_p99_ms", "late_max_ms"))
    return Punctuality(median_ms=median, p99_ms=p99, worst_ms=worst)


def _lateness(record: Record) -> float:
    tallies = record.reports("produced")
    if not tallies or "late_p99_ms" not in tallies[-1].detail:
        raise NoData("the producer left no tally of its lateness")
    return float(tallies[-1].detail["late_p99_ms"]) / 1000 / _allowed_s(record)


def _allowed_s(record: Record) -> float:
    """How late an event of the trial may be."""
    if record.scale.time == 1:
        return LATE_S
    times = [end - start for start, end, _ in record.profile.phases()]
    times += [one.applied_s for one in fidelity.times(record.policy, fidelity.REAL)]
    times += [record.scale.hpa_sync_s] if record.policy.hpa else []
    return PART * min(filter(None, times))


def _clock(record: Record) -> float:
    if record.trial.clock_moved_s is None:
        raise NoData("the record does not say whether the wall clock was moved")
    return abs(record.trial.clock_moved_s) / _allowed_s(record)


def _share(record: Record, column: str, cores: int = 1) -> float:
    seconds, lasted_s = grown(record, column, "t")
    return seconds / (lasted_s * cores)


def _foreign_load(record: Record) -> float:
    """The other processes' CPU time over the trial's own; in records of before all tasks' time, less the trial's own.

    What the others take of idle cores, the trial does not lack. So where it leaves more than half of the machine, their time
    counts over what it left: at the gate's bound they take a tenth of that (docs/decisions/12).

    The kernel counts the time of all tasks at its ticks, which miss tasks that run for less. In a trial at real time that count
    was 4 % below what the trial's own processes took by themselves, so it hid a foreign load of as much.
    """
    of_others = "others_s" in record.load
    own_s, other_s, lasted_s = grown(record, "own_s", "others_s" if of_others else "busy_s", "t")
    if own_s <= 0:
        raise NoData("the trial's own processes took no CPU time")
    others_s = other_s if of_others else max(0.0, other_s - own_s)
    return others_s / max(own_s, lasted_s * record.trial.machine.cores - own_s)


def grown(record: Record, *columns: str) -> list[float]:
    """By how much these columns of the load grew while the trial was driven.

    No data for fewer than two readings, and where a column has none.
    """
    seen = record.load[record.load["t"].between(record.driven, record.end)]
    if len(seen) < 2:
        raise NoData(f"{len(seen)} readings of the load while the trial was driven")
    growth = [float(seen[column].iloc[-1] - seen[column].iloc[0]) for column in columns]
    if any(map(math.isnan, growth)):
        raise NoData(f"the load has no {', '.join(columns)}")
    return growth


def _lag_sum(record: Record) -> float:
    whole, parts = (
        lag[lag["t"].between(record.driven, record.end)].groupby("t")["lag"].sum() for lag in (record.lag, record.partition_lag)
    )
    off = (whole - parts).dropna()
    if off.empty:
        raise NoData("no scrape has both the lag and that of its partitions")
    return float(off.abs().max())


def _order(record: Record) -> int:
    """Partitions in which a message was processed twice are left out: a later receipt may be of earlier offsets there."""
    receipts = record.receipts.sort_values(["partition", "first", "start"])
    if receipts.empty:
        raise NoData("there is no receipt")
    partition = receipts["partition"]
    through = receipts.groupby("partition")["last"].cummax().groupby(partition).shift()
    twice = partition[receipts["first"] <= through].unique()
    early = receipts["start"] < receipts.groupby("partition")["end"].shift()
    return int(early.mask(partition.isin(twice), False).sum())


def _rounding(record: Record) -> float:
    compressed = record.trial.policy_times
    if not compressed and record.scale.time != 1 and fidelity.times(record.policy, fidelity.REAL):
        raise NoData("the record does not say what the policy's times were before the scale's compression")
    changes = [abs(one.applied_s * record.scale.time - one.written_s) / one.written_s for one in compressed if one.written_s]
    lags = [one for one in record.trial.policy_lags if one.rounded]
    changes += [abs(one.applied / record.scale.lag - one.written) / one.written for one in lags]
    return round(max(changes, default=0.0), 9)  # a float's last digit is no change


def _schedule(record: Record) -> int:
    """Of a fault that found nothing to strike there is a row, too."""
    planned = Counter(record.inputs.faults)
    told = Counter(one.injection for one in record.trial.faults if one.injection is not None)
    return (planned - told).total() + (told - planned).total()


def _settle(record: Record) -> float:
    if record.trial.deadlines is None:
        raise NoData("the record does not say by when the baseline was to settle")
    return (record.driven - record.time("settling")) / record.trial.deadlines.settle_s
