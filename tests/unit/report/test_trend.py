"""The main numbers over the sessions: what is compared is the same number of the same trials; and where a series changed."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from lab.errors import InputError
from lab.report import changes
from lab.report.changes import Change, Changes
from lab.report.trend import SPEED, is_session, main_numbers, speed_metric, trend
from tests.unit.report.sessions import BREACHED, HEAD, HELD, INVALID, INVARIANT, NO_DATA, session

KEY = main_numbers(session([HELD]))[0].key


def line(day: int, **metrics: float) -> str:
    """A line of Allure's history of a session on a day of November 2023."""
    return json.dumps({"timestamp": 1_700_000_000_000 + day * 86_400_000, "metrics": metrics, "testResults": {}})


def test_the_main_number_is_of_the_first_claim_that_has_one() -> None:
    """Neither an invariant nor a control is a result; a test whose claims have no number has none."""
    other = replace(INVARIANT, experiment="5 brokers")
    made = session([replace(INVARIANT, objective="lost", measured=0.0), HELD, BREACHED, NO_DATA, other])
    assert [main.key for main in main_numbers(made)] == [KEY]
    assert KEY.startswith(f"002 reaction: {HELD.objective} (standard) ")
    # Allure sorts keys letter by letter: 3 before 10.
    made = session([replace(HELD, experiment=name) for name in ("10 lag", "3 dip", "1 signal")])
    assert [key[:4] for key in sorted(main.key for main in main_numbers(made))] == ["001 ", "003 ", "010 "]


def test_other_trials_have_another_number() -> None:
    """A record's name has the hash of all inputs. A second attempt is of the same trial, as are its runs in other blocks."""

    def key(*names: str, runs: int = 1) -> str:
        (main,) = main_numbers(session([replace(HELD, trials=names, runs=runs)]))
        return main.key

    assert key("a-1f") == key("a-1f.2") == key("a-1f", "a-2f", runs=2)
    assert key("a-1f", "b-3f") == key("a-1f", "a-2f", "b-3f", "b-4f", runs=2)
    assert len({key("a-1f"), key("a-2f"), key("a-1f", "b-3f")}) == 3


def test_a_trend_has_a_column_for_each_session_that_has_the_number() -> None:
    """The newest last; a session at another scale has other numbers and no column. The first session has no trend."""
    assert trend(session([HELD]), [line(0, **{KEY: 71.2})]) is None
    history = [line(0, **{KEY: 80.0}), line(1, **{"other (quick)": 1.0}), line(2, **{KEY: 75.5}), line(3, **{KEY: 71.2})]
    table = trend(session([HELD]), history)
    assert table is not None
    assert list(table.head) == ["experiment", "number", "unit", "2023-11-14 22:13", "2023-11-16 22:13", "now"]
    assert [cell.text for cell in table.cells[0]][2:] == ["s", "80", "75.5", "71.2"]


@pytest.mark.parametrize(
    "changed",
    [
        *({"timestamp": value} for value in (None, "x", [], {}, float("nan"), float("inf"), 1e300)),
        *({"metrics": value} for value in (None, [], "x", 1, {"a": "x"}, {"a": None}, {"a": [1]})),
        *({"testResults": value} for value in (None, [], "x")),
    ],
)
def test_a_line_of_history_that_is_no_session_is_seen(changed: dict[str, object]) -> None:
    """Whatever a part of it is, or where its end or all of it is lost."""
    whole = line(0, **{KEY: 80.0})
    assert is_session(whole)
    assert not is_session(json.dumps(json.loads(whole) | changed))
    lost = {name: value for name, value in json.loads(whole).items() if name not in changed}
    assert is_session(json.dumps(lost)) is ("metrics" in changed)
    assert not any(map(is_session, (whole[:-1], "", "[]", "1", "null", '"x"')))


def test_the_speed_of_the_machine_stands_beside_the_numbers() -> None:
    """Above them, with nothing for a session of before; a session without it says nothing of it."""
    history = [line(0, **{KEY: 80.0}), line(1, **{KEY: 75.5, SPEED: 200_000.0}), line(2, **{KEY: 71.2, SPEED: 310_000.0})]
    made = session([HELD], speed=310_000.0)
    table = trend(made, history)
    assert table is not None
    said = [cell.text for cell in table.cells[0]]
    assert said == ["The machine", "speed of the machine", "events/s", "n/a", "200,000", "310,000"]
    assert speed_metric(session([HELD]), 1, 2) == []
    assert (unknown := trend(session([HELD]), history[:1] * 2)) is not None
    assert [row[0].text for row in unknown.cells] == ["2 reaction"]


MADE = session([HELD, INVALID, replace(HELD, experiment="9 far", measured=float("inf"))])


def series_line(day: int, value: float | None) -> dict[str, object]:
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
    sessions = [series_line(day, value) for day, value in enumerate(values, 1)]
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
