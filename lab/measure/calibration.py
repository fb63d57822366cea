"""Calibration: what the simulator has to know of consumers and control plane, measured in a record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lab.errors import NoData
from lab.foresee.group import Consumers
from lab.foresee.usage import Footprint
from lab.measure.rebalance import rebalance_rounds
from lab.record.store import Record

MANY = 7  # members that join in one round: on two cores they are in each other's way
_STARTS, _EACH = np.meshgrid(np.arange(0.0, 8.0, 0.05), np.arange(0.0, 0.6, 0.01), indexing="ij")


@dataclass(frozen=True)
class Calibration:
    """``consumers`` as measured; syncs are apart by the period, ``sync_more_s``, and ``sync_more_each_s`` a starting pod, s."""

    consumers: Consumers
    sync_more_s: float
    sync_more_each_s: float

    def of(self, record: Record) -> Consumers:
        """These consumers with the rate, balancer and footprint that ``record``'s inputs ask for."""
        work = record.inputs.workload
        return replace(self.consumers, rate=record.inputs.pod_rate, balancer=work.balancer, footprint=Footprint.of(work))


def calibration(records: Sequence[Record]) -> Calibration:
    """Measure ``records`` of one workload: each figure is the median over those that show it.

    Raises :class:`NoData` naming what none of them shows: a baseline, a step up, a step down, a rebalance, syncs.
    """
    start, each = _median(records, starts)
    rest, starting = _median(records, sync_excess)
    notice, following = _median(records, round_lengths)
    consumers = Consumers(
        rate=records[0].inputs.pod_rate,
        balancer=records[0].inputs.workload.balancer,
        start_s=start,
        start_each_s=each,
        stop_s=_median(records, stop)[0],
        notice_s=notice,
        round_s=following,
        join_each_s=_median(records, join_each)[0],
        in_flight_s=_median(records, in_flight)[0],
    )
    return Calibration(consumers, rest, starting)


def calibration_from_others(record: Record, telling: Sequence[Record], *, alike: bool) -> Calibration | None:
    """What ``telling`` says without the record and its repetitions; None for too little.

    Neither the record's own outcome nor that of another run of the same trial may go into its prediction. With ``alike`` only
    those of the same workload, partitions and scale count.
    """
    trial = _trial(record)
    others = [other for other in telling if _trial(other) != trial and (not alike or _setting(other) == _setting(record))]
    try:
        return calibration(others)
    except NoData:
        return None


def _trial(record: Record) -> dict[str, object]:
    """The trial's inputs without their repetition."""
    return record.inputs.to_dict() | {"repetition": 1}


def _setting(record: Record) -> tuple[object, object, object]:
    inputs = record.inputs
    return inputs.workload, inputs.scale, inputs.partitions


def _median(records: Sequence[Record], measure: Callable[[Record], float | tuple[float, ...]]) -> list[float]:
    """The median of each of the measure's figures, over the records that have them."""
    found, missing = [], NoData("no record to calibrate from")
    for record in records:
        try:
            found.append(measure(record))
        except NoData as nothing:
            missing = nothing
    if not found:
        raise missing
    medians: list[float] = np.median(np.array(found).reshape(len(found), -1), axis=0).tolist()
    return medians


def starts(record: Record) -> tuple[float, float]:
    """``start_s`` and ``start_each_s`` that put the pods' joining where it was seen, with the least sum of deviations."""
    asked, joined = (np.array(times) for times in _joins(record))
    if not len(joined):
        raise NoData("no pod of a step up joined the group")
    ready = np.full(_STARTS.shape, -np.inf)
    deviation = np.zeros(_STARTS.shape)
    for decided in np.unique(asked):
        came = joined[asked == decided]
        ready = np.maximum(decided + _STARTS, ready) + len(came) * _EACH
        deviation += np.abs(ready[..., None] - came).sum(axis=-1)
    best = np.unravel_index(int(np.argmin(deviation)), deviation.shape)
    return float(_STARTS[best]), float(_EACH[best])


def _joins(record: Record) -> tuple[list[float], list[float]]:
    """(when each new pod was decided on, when it joined), in order."""
    events = record.group_events
    came = events[events["event"] == "subscribed"].groupby("pod")["t"].min()
    created = {name: pod.added for name, pod in record.pods.items() if pod.added is not None}
    ups = [change.t for change in record.scalings if change.after > change.before]
    asked, joined = [], []
    for decided, until in zip(ups, [*ups[1:], float("inf")][: len(ups)], strict=True):
        found = sorted(
            float(came[name]) for name, t in created.items() if decided - 0.2 <= t < until - 0.2 and name in came.index
        )
        asked += [decided] * len(found)
        joined += found
    return asked, joined


def stop(record: Record) -> float:
    """Median s from a decision to scale down to its pods having left the group."""
    events = record.group_events
    left = events[events["event"] == "left"]["t"].to_numpy()
    downs = [change for change in record.scalings if change.after < change.before]
    found: list[float] = []
    for change, until in zip(downs, [*(one.t for one in downs[1:]), float("inf")][: len(downs)], strict=True):
        found += [float(t) - change.t for t in left if change.t <= t < until][: change.before - change.after]
    if not found:
        raise NoData("no pod left the group after a step down")
    return float(np.median(found))


def round_lengths(record: Record) -> tuple[float, float]:
    """Median s of a rebalance's first round, and of one that follows another, of those that few members join."""
    few = [one for one in rebalance_rounds(record) if one.joins < MANY]
    found = [[one.seconds for one in few if one.chained is chained] for chained in (False, True)]
    if not all(found):
        raise NoData("not both a first and a second round of a rebalance")
    return float(np.median(found[0])), float(np.median(found[1]))


def join_each(record: Record) -> float:
    """Median s for each member of the rounds that many join: those take the longer the more do."""
    found = [one.seconds / one.joins for one in rebalance_rounds(record) if one.joins >= MANY]
    if not found:
        raise NoData(f"no round that {MANY} members joined")
    return float(np.median(found))


def in_flight(record: Record) -> float:
    """Median lag at baseline over the rate of arrival, s (Little's law)."""
    first = record.phases.iloc[0]
    lag = record.lag
    chosen = lag[(lag["t"] > first["start"]) & (lag["t"] < first["end"])]["lag"]
    arrivals = record.profile.steps[0].rate
    if chosen.empty or arrivals <= 0:
        raise NoData("no sample of lag at a baseline with traffic")
    return float(chosen.median()) / arrivals


def sync_excess(record: Record) -> tuple[float, float]:
    """Mean s between two syncs of the HPA beyond the period while no pod starts, and what is more for each that does."""
    times = np.array([sync.at for sync in record.hpa_syncs])
    if len(times) < 3:
        raise NoData("fewer than three syncs of the HPA")
    apart = np.diff(times) - record.scale.hpa_sync_s
    starting = np.zeros(len(apart))
    for decided, at in zip(*_joins(record), strict=True):
        starting += (times[:-1] >= decided - 0.2) & (times[:-1] < at)
    rest = float(apart[starting == 0].mean())
    return rest, max(0.0, float((apart - rest)[starting > 0].sum() / starting.sum())) if starting.any() else 0.0
