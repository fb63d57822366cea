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


def test_noise_is_left_out() -> None:
    """The machine, the thread and pytest's marks are no news, nor fixtures that take no time; what broke stays."""
    made = result(MADE)
    assert [one["name"] for one in made["labels"]] == ["epic", "test"]
    assert [one["value"] for one in made["parameters"]] == ["bursty", "24"]
    befores = [
        {"name": "results", "status": "passed", "start": 0, "stop": 1},
        {"name": "cluster", "status": "passed", "start": 0, "stop": 7_000},
        {"name": "spark", "status": "broken", "start": 0, "stop": 1},
    ]
    afters = [
        {"name": "cluster::<lambda>", "status": "passed", "start": 0, "stop": 3_000},
        {"name": "evidence::<lambda>", "start": 1_795_397_456_743},
    ]
    kept = container({"befores": befores, "afters": afters, "children": ["x"]})
    assert [one["name"] for one in kept["befores"]] == ["cluster", "spark"]
    assert [one["name"] for one in kept["afters"]] == ["cluster"]
    assert kept["children"] == ["x"]
    assert container({"befores": None})["befores"] == []


def prepared(folder: Path, given: Session | None, **results: dict[str, Any]) -> list[dict[str, Any]]:
    """The results that a report of ``given`` shows for these, in the order in which Allure reads them."""
    source = folder / "allure-results"
    source.mkdir()
    for name, made in results.items():
        (source / f"{name}-result.json").write_text(json.dumps(made))
    (source / "b-container.json").write_text(json.dumps({"befores": [{"name": "x", "status": "passed"}]}))
    (source / "c-attachment.svg").write_text("<svg/>")
    prepare(source, folder / "copy", given)
    return [json.loads(one.read_text()) for one in sorted((folder / "copy").glob("*-result.json"))]


def test_what_did_not_run_has_a_result_that_says_so() -> None:
    """So that Allure counts what the page counts; a test that has a result gets no second one."""
    (made,) = unrun(interrupted(), [MADE])
    assert (made["status"], made["name"]) == ("skipped", "6 last")
    assert made["statusDetails"]["message"].startswith("not run. The session was interrupted: 1 of 2 experiments")
    assert {"name": "verdict", "value": "not run"} in made["labels"]
    assert unrun(interrupted(), [MADE | {"labels": [{"name": "test", "value": "6 last"}]}]) == []


def test_the_test_in_which_a_session_ended_has_one_result(tmp_path: Path) -> None:
    """Allure wrote that its setup passed, which is not how it ended."""
    (made,) = prepared(tmp_path, interrupted(), a={"name": "6 last", "status": "passed", "labels": []})
    assert (made["name"], made["status"]) == ("6 last", "skipped")


def test_the_main_numbers_and_the_machines_speed_go_into_the_history() -> None:
    """With the unit, and whether less is better; the key names the scale, at another one it is another number.

    The speed comes first, and it lasts as long as the tests together.
    """
    (made,) = metrics(interrupted(), [MADE])
    assert made["key"].startswith(f"002 reaction: {HELD.objective} (standard) ")
    assert (made["value"], made["title"], made["better"]) == (HELD.measured, f"2 reaction: {HELD.objective} (s)", "lower")
    assert (made["start"], made["stop"]) == (1_000, 3_000)
    later = {"start": 5_000, "stop": 9_000, "labels": [{"name": "test", "value": "6 last"}]}
    first, other = metrics(interrupted(speed=310_000.0), [MADE, later])
    assert (first["key"], first["value"], first["start"], first["stop"]) == (SPEED, 310_000.0, 1_000, 9_000)
    assert other == made
    assert metrics(interrupted(speed=310_000.0), []) == []


def test_results_are_read_in_the_natural_order_of_experiments(tmp_path: Path) -> None:
    """Allure's tree has the order in which it reads: 1, 2, 10, and of one experiment the test that began first."""
    given = {"a": ("10 Lag", 1), "b": ("2 Reaction", 9), "c": ("2 Reaction", 5), "d": ("1 Signal", 7)}
    results = {
        name: {"name": name, "start": start, "labels": [{"name": "feature", "value": feature}]}
        for name, (feature, start) in given.items()
    }
    assert [made["name"] for made in prepared(tmp_path, None, **results)] == ["d", "c", "b", "a"]


def test_the_results_themselves_stay_as_they_were(tmp_path: Path) -> None:
    """The copy has every file; what does not change is the same file."""
    prepared(tmp_path, interrupted(), a=MADE)
    source, target = tmp_path / "allure-results", tmp_path / "copy"
    assert json.loads((source / "a-result.json").read_text()) == MADE
    names = {"00000-result.json", "00001-result.json", "b-container.json", "c-attachment.svg", "main-numbers-perf.json"}
    assert {one.name for one in target.iterdir()} == names
    assert (target / "c-attachment.svg").samefile(source / "c-attachment.svg")
