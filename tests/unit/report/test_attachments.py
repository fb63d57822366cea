"""What is attached to an Allure test: images of a stated size, and steps that last as long as what they stand for."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from allure_commons import model2, plugin_manager
from allure_commons.reporter import AllureReporter

from lab.charts import breakdown, drawing, timeline
from lab.charts.curves import by_trial, duets
from lab.report import attachments
from tests.unit.report import demo


def test_a_chart_is_attached_as_a_vector_image(monkeypatch):
    """Its size is in its name."""
    attached = []
    monkeypatch.setattr("allure.attach", lambda body, name, kind: attached.append((body, name, kind.extension)))
    attachments._draw(lambda: breakdown.breakdown(demo.reaction()), "1 x")
    assert attached[0][0].startswith("<svg")
    size = round(len(attached[0][0].encode()) / 1000)
    assert attached[0][1:] == (f"1 x ({size} kB)", "svg")


def test_an_image_has_nothing_for_a_pointer():
    """No cells around the cursor's places, no label on each mark: they were two thirds of a timeline's image."""
    image = drawing.svg(timeline.timeline(demo.trial()))
    assert 'stroke-width="0.35"' not in image
    assert "aria-label" not in image
    assert "produced" in image


class Listener:
    """What allure-pytest registers."""

    def __init__(self) -> None:
        self.allure_logger = AllureReporter()


@pytest.fixture
def running() -> Iterator[model2.TestResult]:
    """A running Allure test."""
    listener = Listener()
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
    attachments._steps({"lag": whole, "CPU": cut})
    (step,) = running.steps
    assert (step.name, step.start, step.stop) == ("lag: x-1", 100_000, 150_000)
    assert [(one.name, one.stop - one.start) for one in step.steps] == [
        ("preparing", 4_000),
        ("settling", 36_000),
        ("closing the record", 10_000),
    ]
    assert step.steps[0].start == 100_000


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


def test_of_a_repeated_trial_one_run_is_an_image(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every run is there to zoom; the image and the files of the other five would make the report six times as heavy."""
    attached: list[str] = []
    monkeypatch.setattr("allure.attach", lambda body, name, kind: attached.append(name))
    monkeypatch.setattr("allure.attach.file", lambda file, name, kind: attached.append(name), raising=False)
    for name in ("_parameters", "_steps", "verdict_table", "gate_table"):
        monkeypatch.setattr(attachments, name, lambda *_: SimpleNamespace(html=""))
    monkeypatch.setattr(attachments, "_draw", lambda make, name: attached.append(name))
    monkeypatch.setattr(attachments, "_timeline", lambda record, timelines: timelines.update({record.name: {}}))
    monkeypatch.setattr(attachments, "picture", lambda records: ("", ""))
    monkeypatch.setattr("lab.report.attempts.others", lambda record: [])
    runs = {f"lag #{n}": SimpleNamespace(name=f"r{n}", folder=Path("r"), policy=SimpleNamespace(content={})) for n in (1, 2, 3)}
    timelines: dict[str, dict[str, object]] = {}
    attachments.attach(runs, SimpleNamespace(), [], {}, [], {}, timelines)
    assert [name for name in attached if name[0] in "456"] == [
        "4 timeline: lag #1",
        "5 policy as applied: lag #1",
        "5 trial.json: lag #1",
        "6 measures: lag #1",
    ]
    assert set(timelines) == {"r2", "r3"}  # the first run's is kept as it is drawn
