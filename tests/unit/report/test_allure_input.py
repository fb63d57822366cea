"""Allure's results as the report shows them: no noise, and a place for what did not run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lab.report.allure_input import container, metrics, prepare, result, unrun
from lab.report.session import INTERRUPTED, NOT_RUN, Session
from lab.report.trend import SPEED
from tests.unit.report.sessions import HELD, session

MADE: dict[str, Any] = {
    "name": "It holds",
    "start": 1_000,
    "stop": 3_000,
    "labels": [
        {"name": "epic", "value": "Scaling"},
        {"name": "host", "value": "vm"},
        {"name": "tag", "value": "spike"},
        {"name": "test", "value": "2 reaction"},
    ],
    "parameters": [{"name": "profile", "value": "'bursty'"}, {"name": "P", "value": "24"}],
}


def interrupted(**fields: Any) -> Session:
    """A session of which one test ran, and one did not."""
    return session([HELD], outcomes={"6 last": NOT_RUN}, stopped=INTERRUPTED, **fields)


def test_a_result_has_the_labs_labels_and_texts_without_quotes() -> None:
    """The machine, the thread and pytest's marks are no news to a reader."""
    made = result(MADE)
    assert [one["name"] for one in made["labels"]] == ["epic", "test"]
    assert [one["value"] for one in made["parameters"]] == ["bursty", "24"]


def test_fixtures_that_take_no_time_and_the_names_of_functions_are_left_out() -> None:
    """What broke stays, however short it was."""
    made = container(
        {
            "befores": [
                {"name": "results", "status": "passed", "start": 0, "stop": 1},
                {"name": "cluster", "status": "passed", "start": 0, "stop": 7_000},
                {"name": "spark", "status": "broken", "start": 0, "stop": 1},
            ],
            "afters": [
                {"name": "cluster::<lambda>", "status": "passed", "start": 0, "stop": 3_000},
                {"name": "evidence::<lambda>", "start": 1_795_397_456_743},
            ],
            "children": ["x"],
        }
    )
    assert [one["name"] for one in made["befores"]] == ["cluster", "spark"]
    assert [one["name"] for one in made["afters"]] == ["cluster"]
    assert made["children"] == ["x"]
    assert container({"befores": None})["befores"] == []


def test_what_did_not_run_has_a_result_that_says_so() -> None:
    """So that Allure counts what the page counts; a test that has a result gets no second one."""
    (made,) = unrun(interrupted(), [MADE])
    assert (made["status"], made["name"]) == ("skipped", "6 last")
    assert made["statusDetails"]["message"].startswith("not run. The session was interrupted: 1 of 2 experiments")
    assert {"name": "verdict", "value": "not run"} in made["labels"]
    assert unrun(interrupted(), [MADE | {"labels": [{"name": "test", "value": "6 last"}]}]) == []


def test_the_test_in_which_a_session_ended_has_one_result(tmp_path: Path) -> None:
    """Allure wrote that its setup passed, which is not how it ended."""
    source, target = tmp_path / "allure-results", tmp_path / "copy"
    source.mkdir()
    (source / "a-result.json").write_text(json.dumps({"name": "6 last", "status": "passed", "labels": []}))
    prepare(source, target, interrupted())
    (made,) = (json.loads(one.read_text()) for one in target.glob("*-result.json"))
    assert (made["name"], made["status"]) == ("6 last", "skipped")


def test_the_main_number_of_a_test_goes_into_the_history() -> None:
    """With its unit, and whether less is better; the key names the scale, at another one it is another number."""
    (made,) = metrics(interrupted(), [MADE])
    assert made["key"] == f"002 reaction: {HELD.objective} (standard)"
    assert (made["value"], made["title"], made["better"]) == (HELD.measured, f"2 reaction: {HELD.objective} (s)", "lower")
    assert (made["start"], made["stop"]) == (1_000, 3_000)


def test_the_speed_of_the_machine_goes_into_the_history_with_them() -> None:
    """It comes first, and it lasts as long as the tests together."""
    later = {"start": 5_000, "stop": 9_000, "labels": [{"name": "test", "value": "6 last"}]}
    first, *others = metrics(interrupted(speed=310_000.0), [MADE, later])
    assert (first["key"], first["value"], first["start"], first["stop"]) == (SPEED, 310_000.0, 1_000, 9_000)
    assert [one["value"] for one in others] == [HELD.measured]
    assert metrics(interrupted(speed=310_000.0), []) == []


def test_results_are_read_in_the_natural_order_of_experiments(tmp_path: Path) -> None:
    """Allure's tree has the order in which it reads: 1, 2, 10, and of one experiment the test that began first."""
    source, target = tmp_path / "allure-results", tmp_path / "copy"
    source.mkdir()
    for name, feature, start in (("a", "10 Lag", 1), ("b", "2 Reaction", 9), ("c", "2 Reaction", 5), ("d", "1 Signal", 7)):
        made = {"name": name, "start": start, "labels": [{"name": "feature", "value": feature}]}
        (source / f"{name}-result.json").write_text(json.dumps(made))
    prepare(source, target, None)
    names = [json.loads(one.read_text())["name"] for one in sorted(target.glob("*-result.json"))]
    assert names == ["d", "c", "b", "a"]


def test_the_results_themselves_stay_as_they_were(tmp_path: Path) -> None:
    """The copy has every file; what does not change is the same file."""
    source, target = tmp_path / "allure-results", tmp_path / "copy"
    source.mkdir()
    (source / "a-result.json").write_text(json.dumps(MADE))
    (source / "b-container.json").write_text(json.dumps({"befores": [{"name": "x", "status": "passed"}]}))
    (source / "c-attachment.svg").write_text("<svg/>")
    prepare(source, target, interrupted())
    assert json.loads((source / "a-result.json").read_text()) == MADE
    names = {"00000-result.json", "00001-result.json", "b-container.json", "c-attachment.svg", "main-numbers-perf.json"}
    assert {one.name for one in target.iterdir()} == names
    assert (target / "c-attachment.svg").samefile(source / "c-attachment.svg")
