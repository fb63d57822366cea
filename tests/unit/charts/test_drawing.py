"""What charts share: the tables they draw of a record, rows copied and validated by nobody, and scripts put together once."""

from pathlib import Path
from types import SimpleNamespace

import altair as alt
import vl_convert

from lab.charts import drawing
from lab.charts.curves import by_trial, duets, timeline_of
from tests.unit.measure import built, similar

ROWS = [{"x": number, "y": number % 7} for number in range(20)]


def layered(data):
    """Two layers on the same data, in a chart of two panels."""
    line = alt.Chart(data).mark_line().encode(x="x:Q", y="y:Q")
    return alt.vconcat(line + line.mark_point(), line)


def test_rows_are_the_data_that_altair_makes_of_them():
    """The spec is that of plain inline data. However often charts are put together, nothing goes through the rows."""
    assert layered(drawing.inline(ROWS)).to_dict() == layered(alt.InlineData(values=ROWS)).to_dict()
    assert alt.Chart(drawing.inline(ROWS)).mark_line().copy(deep=True).data.values is ROWS


def test_scripts_are_put_together_once(tmp_path, monkeypatch):
    """The next session finds them in the user's cache."""
    asked = []
    monkeypatch.setenv("ELASTIC_LAB_CACHE", str(tmp_path))
    monkeypatch.setattr(vl_convert, "javascript_bundle", lambda script, vl_version: asked.append(script) or "let x = 'ü'")
    assert [drawing.scripts(), drawing.scripts()] == ["let x = 'ü'"] * 2
    assert len(asked) == 1


def events_of(folder: Path, *rows: dict[str, object]) -> list[dict[str, object]]:
    """The events in the timeline of a record in which these happened, at their ``at`` and for so long, s since the spike."""
    record = similar.write(folder, 10)
    told = [{"t": record.zero + row.pop("at"), "due": None, "phase": "spike", "result": {}} | row for row in rows]
    happened = tuple(row | {"until": row["t"] + row.pop("lasts")} for row in told)
    return timeline_of(built.sealed(record.folder, events=happened)).events.round(3).to_dict("records")


def test_every_event_of_the_trial_is_in_its_timeline(tmp_path: Path) -> None:
    """Each is named with its fields, from its begin to its end, and for at least one second."""
    grown = {"at": 20.0, "lasts": 4.0, "event": "grow", "partitions": 48}
    assert events_of(tmp_path, grown, {"at": 30.0, "lasts": 0.1, "event": "pause_scaling"}) == [
        {"start": 20, "end": 24, "label": "grow 48"},
        {"start": 30, "end": 31, "label": "pause scaling"},
    ]


def test_a_decreed_step_is_named_once(tmp_path: Path) -> None:
    """As a mark of scaling: a bar for each would cover the whole chart, and its name the rules."""
    assert events_of(tmp_path, {"at": 20.0, "lasts": 4.0, "event": "decree", "before": 6, "after": 8}) == []


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
