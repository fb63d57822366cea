"""Broker: what the trial's traffic and groups cost Kafka itself."""

from __future__ import annotations

from lab.errors import NoData
from lab.judge.measure import quantity
from lab.judge.origin import UNSCALED
from lab.record.store import Record

BROKER = "kafka"


@quantity("cores", "CPU of Kafka while the profile ran", UNSCALED)
def broker_cores(record: Record) -> float:
    """The mean number of cores that the brokers kept busy, from the first to the last reading within the profile.

    Readings are 10 s apart. In a duet they are of both groups together. There is no data for fewer than two readings, for a
    record of before CPU time was kept by process, and on an existing cluster.
    """
    seen = record.memory
    if "cpu_s" not in seen:
        raise NoData("the record has no CPU time by process")
    start = record.profile_start
    rows = seen[(seen["process"] == BROKER) & seen["t"].between(start, start + record.profile.duration)].sort_values("t")
    if len(rows) < 2:
        raise NoData(f"{len(rows)} readings of the broker's CPU time while the profile ran")
    first, last = rows.iloc[0], rows.iloc[-1]
    return float((last["cpu_s"] - first["cpu_s"]) / (last["t"] - first["t"]))
