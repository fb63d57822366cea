"""The main numbers over the sessions: what is compared is the same number at the same scale."""

from __future__ import annotations

import json
from dataclasses import replace

from lab.report.trend import SPEED, main_numbers, speed_metric, trend
from tests.unit.report.sessions import BREACHED, HELD, INVARIANT, NO_DATA, session

KEY = f"002 reaction: {HELD.objective} (standard)"


def line(day: int, **metrics: float) -> str:
    """A line of Allure's history of a session on a day of November 2023."""
    return json.dumps({"timestamp": 1_700_000_000_000 + day * 86_400_000, "metrics": metrics, "testResults": {}})


def test_the_main_number_is_of_the_first_claim_that_has_one() -> None:
    """Neither an invariant nor a control is a result; a test whose claims have no number has none."""
    other = replace(INVARIANT, experiment="5 brokers")
    made = session([replace(INVARIANT, objective="lost", measured=0.0), HELD, BREACHED, NO_DATA, other])
    assert [main.key for main in main_numbers(made)] == [KEY]
    # Allure sorts keys letter by letter: 3 before 10.
    made = session([replace(HELD, experiment=name) for name in ("10 lag", "3 dip", "1 signal")])
    assert [key[:4] for key in sorted(main.key for main in main_numbers(made))] == ["001 ", "003 ", "010 "]


def test_a_trend_has_a_column_for_each_session_that_has_the_number() -> None:
    """The newest last; a session at another scale has other numbers and no column. The first session has no trend."""
    assert trend(session([HELD]), [line(0, **{KEY: 71.2})]) is None
    history = [line(0, **{KEY: 80.0}), line(1, **{"other (quick)": 1.0}), line(2, **{KEY: 75.5}), line(3, **{KEY: 71.2})]
    table = trend(session([HELD]), history)
    assert table is not None
    assert list(table.head) == ["experiment", "number", "unit", "2023-11-14 22:13", "2023-11-16 22:13", "now"]
    assert [cell.text for cell in table.cells[0]][2:] == ["s", "80", "75.5", "71.2"]


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
