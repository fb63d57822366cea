"""Change points: a series with a line for each session, and the changes on the session's page."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from lab.errors import InputError
from lab.report import changes
from lab.report.changes import Change, Changes
from lab.report.trend import main_numbers
from tests.unit.report.sessions import HEAD, HELD, INVALID, session

MADE = session([HELD, INVALID, replace(HELD, experiment="9 far", measured=float("inf"))])
(KEY, *_) = (main.key for main in main_numbers(MADE))


def line(day: int, value: float | None) -> dict[str, object]:
    """A session's line, with the number or without."""
    return {"date": f"2026-11-{day:02}", "commit": f"c{day}", "numbers": {} if value is None else {KEY: value}}


def test_a_session_leaves_one_line_with_its_valid_numbers(tmp_path: Path) -> None:
    """Its day and commit are beside them. The same results reported again replace it; a session without numbers leaves none."""
    made = replace(MADE, head=replace(HEAD, date="2026-11-27", commit="8f33436"), speed=310_000.0)
    for mark in ("first", "second", "second"):
        changes.keep(tmp_path, made, mark)
    changes.keep(tmp_path, session([INVALID]), "third")
    lines = [json.loads(text) for text in (tmp_path / changes.SERIES).read_text().splitlines()]
    said = {"date": "2026-11-27", "commit": "8f33436", "speed": 310_000.0, "numbers": {KEY: HELD.measured}}
    assert lines == [{**said, "results": "first"}, {**said, "results": "second"}]


def test_a_change_is_confirmed_by_three_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the day and the commit of the first session after it. A session that lacks the number is not one of its series."""
    values = [10.0, None, *[10.0] * 8, *[12.0] * 3, 99.0]
    stats = SimpleNamespace(mean_1=10.0, mean_2=12.0, pvalue=1e-6)

    def found(given: list[float]) -> list[tuple[int, SimpleNamespace]]:
        assert given == [value for value in values if value is not None]
        return [(9, stats), (11, stats)]  # the second has two sessions

    monkeypatch.setattr(changes, "points", found)
    sessions = [line(day, value) for day, value in enumerate(values, 1)]
    one = Change(KEY, "2026-11-11", "c11", "c10", 10.0, 12.0, 4, 1e-6)
    assert changes.judge(sessions) == Changes(sessions=14, judged=1, changes=[one])
    assert changes.judge(sessions[:10]) == Changes(sessions=10)  # nine have the number


def test_the_page_says_what_changed_and_since_when(tmp_path: Path) -> None:
    """In the words of the session; a number that it lacks has its key. Too few sessions are no data; no file, no section."""
    assert changes.section(tmp_path, MADE) == []
    one = Change(KEY, "2026-11-11", "c11", "c10", 10.0, 12.0, 4, 1e-6)
    file = tmp_path / changes.FILE
    file.write_text(json.dumps(asdict(Changes(sessions=14, judged=2, changes=[one, replace(one, number="gone", before=0.0)]))))
    (shown,) = changes.section(tmp_path, MADE)
    first, second = shown.table.rows
    assert first == ["2026-11-11", "c11", "c10", "2 reaction: reaction", "s", "10", "12", "+20 %", "4"]
    assert (second[3], second[7]) == ("gone", "n/a")
    for judged, said in ((2, "None changed."), (0, "So there is no data yet.")):
        file.write_text(json.dumps(asdict(Changes(sessions=14, judged=judged))))
        (shown,) = changes.section(tmp_path, MADE)
        assert shown.note.endswith(said)
    file.write_text('{"schema": 0}')
    with pytest.raises(InputError, match="judge the series again"):
        changes.section(tmp_path, MADE)
