"""What Allure shows of a test: the answer and its chart first, then what was asked; images, and steps with their time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from allure_commons import model2, plugin_manager
from allure_commons.reporter import AllureReporter

from lab.report import allure_test
from lab.report.running_session import RunningSession
from lab.report.session import BROKEN, FAILED, PASSED, Case
from tests.unit.report.sessions import BREACHED, HELD, NO_DATA

NOTE = "Experiment 2: is it fast?\n\nHypothesis. It is, with ``--repeat 6``.\n\nAsserted. It is fast."


def case(**named: object) -> Case:
    """A test with a note."""
    return Case("tests/test_2.py::test_it", "2_reaction", "2 Reaction", "It is fast", NOTE, **named)


def test_the_answer_and_the_chart_come_before_the_table_and_the_note() -> None:
    """One reads what was found, then what was asked and how."""
    text = allure_test.description(case(outcome=FAILED, rows=[HELD, BREACHED], alt="a peak", explained=["Why."]), "<svg/>")
    places = ["two hot | ones: drain: 1.62 x, wanted &lt; 1.5 x", "<img", "<table>", "is it fast?", "Hypothesis.", "Why."]
    assert [text.index(one) for one in places] == sorted(text.index(one) for one in places)
    assert text.count("<tr>") == 3
    assert "<code>--repeat 6</code>" in text
    assert "``" not in text
    assert 'alt="a peak"' in text


@pytest.mark.parametrize(
    ("test", "word"),
    [
        (case(outcome=PASSED, rows=[HELD]), "held"),
        (case(outcome=FAILED, rows=[HELD, BREACHED]), "breached"),
        (case(outcome=PASSED, rows=[HELD, NO_DATA]), "no data"),
        (case(outcome=BROKEN, remark="LabFault: a broker died"), "broken"),
        (case(outcome=FAILED, remark="AssertionError", rows=[HELD]), "failed"),
        (case(outcome=PASSED), "passed"),
    ],
)
def test_a_test_is_labelled_with_the_pages_word_for_it(monkeypatch: pytest.MonkeyPatch, test: Case, word: str) -> None:
    """By which Allure's categories find it."""
    labels = []
    monkeypatch.setattr("allure.dynamic.label", lambda name, value: labels.append((name, value)))
    allure_test.end(test)
    assert labels == [("verdict", word)]
    assert test.remark in allure_test.description(test)  # also where it broke before anything was judged


def test_a_chart_is_attached_as_a_vector_image(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its size is in its name."""
    attached: list[tuple[str, str, str]] = []
    monkeypatch.setattr("allure.attach", lambda body, name, kind: attached.append((body, name, kind.extension)))
    monkeypatch.setattr(allure_test, "svg", lambda chart: "<svg/>" * chart)
    allure_test._draw(lambda: 500, "1 x")
    assert attached == [("<svg/>" * 500, "1 x (3 kB)", "svg")]


@pytest.fixture
def running() -> Iterator[model2.TestResult]:
    """A running Allure test, in what allure-pytest registers."""
    listener = type("Listener", (), {"allure_logger": AllureReporter()})()
    test = model2.TestResult(uuid="x", name="x")
    listener.allure_logger.schedule_test("x", test)
    plugin_manager.register(listener)
    yield test
    plugin_manager.unregister(listener)


def test_a_step_is_as_long_as_its_phase(running: model2.TestResult) -> None:
    """A step for each trial with its phases inside, at the moments at which they were; one that was never closed has none."""
    trial = SimpleNamespace(begun=100.0, finished=150.0, times={"settling": 104.0, "ended": 140.0})
    whole = SimpleNamespace(name="x-1", trial=trial, phase_lengths=[("settling", 36.0), ("closing the record", 10.0)])
    cut = SimpleNamespace(name="x-2", trial=SimpleNamespace(finished=None, times={}))
    allure_test._steps({"lag": whole, "CPU": cut})
    (step,) = running.steps
    assert (step.name, step.start, step.stop) == ("lag: x-1", 100_000, 150_000)
    lengths = [("preparing", 4_000), ("settling", 36_000), ("closing the record", 10_000)]
    assert [(one.name, one.stop - one.start) for one in step.steps] == lengths
    assert step.steps[0].start == 100_000


def test_of_a_repeated_trial_one_run_is_an_image(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every run is there to zoom; the image and the files of the other five would make the report six times as heavy."""
    attached: list[str] = []
    monkeypatch.setattr("allure.attach", lambda body, name, kind: attached.append(name))
    monkeypatch.setattr("allure.attach.file", lambda file, name, kind: attached.append(name), raising=False)
    for name in ("_parameters", "_steps", "gate_table"):
        monkeypatch.setattr(allure_test, name, lambda *_: SimpleNamespace(html=""))
    monkeypatch.setattr(allure_test, "_draw", lambda make, name: attached.append(name))
    monkeypatch.setattr(allure_test, "_timeline", lambda record, timelines: timelines.update({record.name: {}}))
    monkeypatch.setattr(allure_test, "thumbnail", lambda runs: ("<svg/>", "a peak"))
    monkeypatch.setattr(allure_test, "other_attempts", lambda record: [])
    runs = {f"lag #{n}": SimpleNamespace(name=f"r{n}", folder=Path("r"), policy=SimpleNamespace(content={})) for n in (1, 2, 3)}
    session, test = RunningSession(), case()
    allure_test.attach(runs, test, [], {}, [], {}, session)
    own = ("4 timeline", "5 policy as applied", "5 trial.json", "6 measures")
    assert [name for name in attached if name[0] in "456"] == [f"{name}: lag #1" for name in own]
    assert session.pictures == {"pictures/test-2-py-test-it.svg": "<svg/>"}
    assert (test.picture, test.alt) == ("pictures/test-2-py-test-it.svg", "a peak")
    assert set(session.timelines) == {"r2", "r3"}  # the first run's is kept as it is drawn
