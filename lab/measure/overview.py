"""Overview: the registry of measures that every trial is shown by.

MEASURES are in its measures.json, FIGURES in its row of the table that sets trials side by side. COMPARED are those that each
scale is held to real time by.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lab.errors import NoData
from lab.judge.measure import Measure
from lab.judge.pairs import least_difference, paired
from lab.judge.quantity import Quantity
from lab.measure.cost import cost
from lab.measure.delivery import delivery
from lab.measure.dip import worst_dip
from lab.measure.drain import best_drain, drain, drain_time
from lab.measure.lag import hold, peak_lag
from lab.measure.lateness import oldest, time_behind, timelag
from lab.measure.reaction.step import cold_start, reaction
from lab.measure.rebalance import rebalances, round_count
from lab.measure.scaling import flips, plateau, scale_events
from lab.measure.scaling_cost import scaling_cost
from lab.measure.signal import signal
from lab.measure.throughput import Throughput, lagging_spans, mean_rate, peak_rate
from lab.measure.validity import punctuality
from lab.record.store import Record, write_json

# By the name in measures.json.
MEASURES: dict[str, Callable[[Record], Measure]] = {
    "reaction": reaction,
    "drain": drain,
    "stability": scale_events,
    "cost": cost,
    "delivery": delivery,
    "punctuality": punctuality,
}


# In the order of similarity.yaml.
COMPARED: tuple[Callable[[Record], Measure | Quantity], ...] = (
    reaction,
    peak_lag,
    hold,
    time_behind,
    timelag,
    oldest,
    drain_time,
    best_drain,
    drain,
    scale_events,
    plateau,
    cost,
    signal,
    cold_start,
    rebalances,
    round_count,
    scaling_cost,
    worst_dip,
)


def all_measures(record: Record) -> dict[str, Any]:
    """Each measure as plain data, or ``{"no data": reason}``."""
    return {name: measure(record).to_dict() for name, measure in MEASURES.items()}


def write_measures(record: Record) -> Record:
    """Write the measures of ``record`` into its measures.json; returns the record, without the tables that this took."""
    write_json(record.folder / "measures.json", all_measures(record))
    record.release()
    return record


# By the name in the table, in the order of display. Every unit is in the name.
FIGURES: dict[str, Callable[[Record], float | Quantity | None]] = {
    "peak lag (messages)": lambda record: float(record.lag["lag"].max()),
    "lag back at one lagThreshold after (s)": drain_time,
    "most replicas (pods)": lambda record: int(record.replicas["desired"].max()),
    "scale-ups": lambda record: sum(change.after > change.before for change in record.scalings),
    "scale-downs": lambda record: sum(change.after < change.before for change in record.scalings),
    "flips": flips,
    "peak consume rate (messages/s)": peak_rate,
    "mean consume rate while lag > 0 (messages/s)": lambda record: mean_rate(
        Throughput(record.receipts), lagging_spans(record)
    ),
    "rebalances": lambda record: rebalances(record).rebalances,
    "median rebalance (s)": lambda record: rebalances(record).median_s,
    "longest rebalance (s)": lambda record: rebalances(record).longest_s,
    "pod-minutes": lambda record: cost(record).pod_minutes,
    "idle share of pod time": lambda record: cost(record).idle_ratio,
    "produced": lambda record: delivery(record).stored,
    "processed": lambda record: delivery(record).processed,
    "lost or unseen": lambda record: delivery(record).lost + delivery(record).unseen,
    "processed more than once": lambda record: delivery(record).doubled,
}


def figures(record: Record) -> dict[str, Quantity]:
    """Each of FIGURES by its name; one that the record has no data for says why."""
    found: dict[str, Quantity] = {}
    for name, figure in FIGURES.items():
        try:
            value = figure(record)
        except NoData as missing:
            found[name] = Quantity(name, "", None, str(missing))
        else:
            found[name] = value.named(name, "") if isinstance(value, Quantity) else Quantity(name, "", value)
    return found


def numbers(record: Record) -> dict[str, Quantity]:
    """FIGURES, and every number of each of MEASURES by its name and unit; one that both have is there once."""
    found = figures(record)
    for compute in MEASURES.values():
        measured = compute(record)
        for one in measured.quantities():
            name = f"{one.name} ({one.unit})" if one.unit else one.name
            if one.name not in found:
                found.setdefault(name, one.named(name, ""))
    return found


def overview(record: Record) -> dict[str, float | None]:
    """Each of FIGURES by its name. A figure is None where the record has no data for it."""
    return {name: one.value for name, one in figures(record).items()}


def least_differences(
    one: Sequence[Record], other: Sequence[Record], measures: Callable[[Record], Mapping[str, Quantity]] = numbers
) -> dict[str, Quantity]:
    """The least difference of each of ``measures`` that A/A duets can tell, by its name, from their sides, pair by pair.

    A measure that a record has no data for has none, and says in which pair. Raises ``ValueError`` for sides that are no pairs.
    """
    sides = [[measures(record) for record in side] for side in (one, other)]
    names = list(dict.fromkeys(name for side in sides for found in side for name in found))
    return {name: least_difference(paired(*([found[name] for found in side] for side in sides))) for name in names}
