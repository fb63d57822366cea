"""The tables that charts draw of a record."""

from pathlib import Path

from lab.charts.curves import timeline_of
from tests.unit.measure import built
from tests.unit.report.runtime_records import ZERO, spike

EVENTS = (
    {
        "t": ZERO + 20.0,
        "until": ZERO + 24.0,
        "due": ZERO + 20.0,
        "phase": "spike",
        "event": "grow",
        "partitions": 48,
        "result": {},
    },
    {"t": ZERO + 30.0, "until": ZERO + 30.1, "due": ZERO + 30.0, "phase": "spike", "event": "pause_scaling", "result": {}},
)


def test_every_event_of_the_trial_is_in_its_timeline(tmp_path: Path) -> None:
    """Each is named with its fields, from its begin to its end, and for at least one second."""
    record = built.sealed(spike(tmp_path, "binary").folder, events=EVENTS)
    table = timeline_of(record).events.round(3)
    start = ZERO - record.zero
    assert table.to_dict("records") == [
        {"start": start + 20, "end": start + 24, "label": "grow 48"},
        {"start": start + 30, "end": start + 31, "label": "pause scaling"},
    ]


def test_a_decreed_step_is_named_once(tmp_path: Path) -> None:
    """As a mark of scaling: a bar for each would cover the whole chart, and its name the rules."""
    decree = {"t": ZERO + 20.0, "until": ZERO + 24.0, "due": None, "phase": None, "event": "decree", "before": 6, "after": 8}
    record = built.sealed(spike(tmp_path, "binary").folder, events=(decree | {"result": {"kind": "up"}},))
    assert timeline_of(record).events.empty
