"""Cap: where a group that is asked for more than it may have stands, and how fast it is there."""

from __future__ import annotations

from lab.errors import NoData
from lab.judge.measure import Measure, measure, number
from lab.measure.dip import Processed
from lab.record.store import Record


class Cap(Measure):
    """The longest time, while lag was above P x lagThreshold, in which the group wanted as many replicas and all were Ready."""

    standing_at = number("pods", "replicas that the group stood at while lag was above P lagThresholds")
    standing_s = number("s", "time that the group stood still while lag was above P lagThresholds")
    lag = number("messages", "lag when the group came to its stand")
    rate = number("messages/s", "mean throughput of the group in its stand")


@measure
def cap(record: Record) -> Cap:
    """Measure the longest stand; no data when lag never was above P x lagThreshold."""
    threshold = record.lag_threshold * record.inputs.partitions
    lag = record.lag
    above = lag[lag["lag"] > threshold]
    if above.empty:
        raise NoData(f"lag never was above P x lagThreshold, {threshold}")
    start, end = float(above["t"].iloc[0]), float(above["t"].iloc[-1])
    curve = record.replicas
    stands: list[tuple[float, float, int]] = []
    times = [*curve["t"].tolist()[1:], end]
    for t, until, wanted, ready in zip(curve["t"], times, curve["desired"], curve["ready"], strict=True):
        begin, finish = max(float(t), start), min(float(until), end)
        if ready != wanted or finish <= begin:
            continue
        if stands and stands[-1][2] == wanted and stands[-1][1] >= begin:
            stands[-1] = (stands[-1][0], finish, int(wanted))
        else:
            stands.append((begin, finish, int(wanted)))
    if not stands:
        raise NoData("the group never stood still while lag was above the cap")
    begin, finish, wanted = max(stands, key=lambda stand: stand[1] - stand[0])
    before = lag[lag["t"] <= begin]["lag"]
    return Cap(
        standing_at=wanted,
        standing_s=finish - begin,
        lag=int(before.iloc[-1] if not before.empty else lag["lag"].iloc[0]),
        rate=Processed(record.receipts).rate(begin, finish),
    )
