"""Overview: a trial in one row of the table that sets trials side by side."""

from __future__ import annotations

from collections.abc import Callable

from lab.errors import NoData
from lab.judge.quantity import Quantity
from lab.measure.churn import churn
from lab.measure.cost import cost
from lab.measure.dip import Processed
from lab.measure.drain import caught_up
from lab.measure.flips import count_flips
from lab.measure.idle import lagging, mean_rate
from lab.measure.integrity import integrity
from lab.record.store import Record


def _peak_rate(record: Record) -> float:
    rates = record.rates
    chosen = rates[(rates["bin_s"] == 1) & (rates["series"] == "consumed") & (rates["pod"] == "")]
    if chosen.empty:
        raise NoData("nothing was consumed")
    return float(chosen["messages"].max())


# In the order of display; every unit is in the name.
ROW: dict[str, Callable[[Record], float | Quantity | None]] = {
    "peak lag (messages)": lambda record: float(record.lag["lag"].max()),
    "lag back at one lagThreshold after (s)": caught_up,
    "most replicas (pods)": lambda record: int(record.replicas["desired"].max()),
    "scale-ups": lambda record: sum(change.after > change.before for change in record.scalings),
    "scale-downs": lambda record: sum(change.after < change.before for change in record.scalings),
    "flips": lambda record: count_flips(record.scalings),
    "peak consume rate (messages/s)": _peak_rate,
    "mean consume rate while lag > 0 (messages/s)": lambda record: mean_rate(Processed(record.receipts), lagging(record)),
    "rebalances": lambda record: churn(record).rebalances,
    "median rebalance (s)": lambda record: churn(record).median_s,
    "longest rebalance (s)": lambda record: churn(record).longest_s,
    "pod-minutes": lambda record: cost(record).pod_minutes,
    "idle share of pod time": lambda record: cost(record).idle_ratio,
    "produced": lambda record: integrity(record).produced,
    "processed": lambda record: integrity(record).processed,
    "lost or unseen": lambda record: integrity(record).lost + integrity(record).unseen,
    "processed more than once": lambda record: integrity(record).doubled,
}


def overview(record: Record) -> dict[str, float | None]:
    """Each figure by its name, in the order of display; None where the record has no data for it."""
    row: dict[str, float | None] = {}
    for name, figure in ROW.items():
        try:
            found = figure(record)
            row[name] = found.value if isinstance(found, Quantity) else found
        except NoData:
            row[name] = None
    return row
