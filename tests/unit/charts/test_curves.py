"""The tables that charts draw of a record, and which records are the sides of a duet."""

from pathlib import Path
from types import SimpleNamespace

from lab.charts.curves import by_trial, duets, timeline_of
from tests.unit.charts.records import ZERO, spike
from tests.unit.measure import built

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
    record = built.sealed(spike(tmp_path).folder, events=EVENTS)
    table = timeline_of(record).events.round(3)
    start = ZERO - record.zero
    assert table.to_dict("records") == [
        {"start": start + 20, "end": start + 24, "label": "grow 48"},
        {"start": start + 30, "end": start + 31, "label": "pause scaling"},
    ]


def test_a_decreed_step_is_named_once(tmp_path: Path) -> None:
    """As a mark of scaling: a bar for each would cover the whole chart, and its name the rules."""
    decree = {"t": ZERO + 20.0, "until": ZERO + 24.0, "due": None, "phase": None, "event": "decree", "before": 6, "after": 8}
    record = built.sealed(spike(tmp_path).folder, events=(decree | {"result": {"kind": "up"}},))
    assert timeline_of(record).events.empty


def side(name: str, other: str | None) -> SimpleNamespace:
    """A record of one side of a duet, or of a trial by itself."""
    return SimpleNamespace(name=name, trial=SimpleNamespace(duet=None if other is None else SimpleNamespace(other=other)))


def test_the_sides_of_a_duet_are_found_by_their_records() -> None:
    """Each run with its own other side; trials by themselves are no duet, and runs of other duets are none either."""
    runs = by_trial(
        {
            "CPU #1": side("a1", "b1"),
            "CPU #2": side("a2", "b2"),
            "lag #1": side("b1", "a1"),
            "lag #2": side("b2", "a2"),
            "alone #1": side("c1", None),
            "alone #2": side("c2", None),
        }
    )
    assert {name: len(several) for name, several in runs.items()} == {"CPU": 2, "lag": 2, "alone": 2}
    assert duets(runs) == [("CPU", "lag")]
    assert duets({"one": [side("a1", "b1")], "other": [side("b2", "a2")]}) == []
