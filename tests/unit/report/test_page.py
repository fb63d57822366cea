"""The session's page in a real browser, from a file:// address: it is read offline, in the dark, by keyboard."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

import pytest

from lab.judge.claim import judge
from lab.judge.gates import judge_gates
from lab.judge.pairs import paired
from lab.judge.quantity import Quantity, repeated
from lab.report import page
from lab.report.glance import glance
from lab.report.session import BROKEN, FAILED, PASSED, Case, Session
from tests.unit.report import browser
from tests.unit.report.runtime_records import spike

pytestmark = [pytest.mark.services, pytest.mark.skipif(browser.CHROMIUM is None, reason="no Chromium on PATH")]

NOTE = "Experiment {}: is CPU a signal?\n\nHypothesis. It is not.\n\nMethod. Two trials.\n\nAsserted. The lag grows."


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a session with a breach, a broken test, no data, an invalid trial, repeats and a duet."""
    folder = tmp_path_factory.mktemp("results")
    (folder / "records").mkdir()
    record = spike(folder / "records", "binary")
    svg, alt = glance({"CPU": [record], "lag": [record]})
    state = Session(records=[record], expected=["1_signal", "2_duet", "10_last", "11_never"])
    state.repeated(6, 7)
    runs = repeated([Quantity("peak lag", "messages", 100.0 + n) for n in range(6)])
    pairs = paired(runs, repeated([Quantity("peak lag", "messages", 90.0) for _ in range(6)]))
    missing = Quantity("drain", "s", None, "the backlog was never drained")
    comparisons = {
        "1_signal": (runs < 103, PASSED, "CPU is no signal"),
        "2_duet": (pairs.estimate > 5, PASSED, "Woken has less lag"),
        "10_last": (missing < 9, FAILED, "The drain is bounded"),
    }
    for name, (comparison, outcome, title) in comparisons.items():
        case = Case(f"tests/test_{name}.py::test_it", name, "Signal", title, NOTE.format(name.partition("_")[0]))
        case.picture, case.alt = svg, alt
        state.begin(case).end(outcome)
        state.judged([judge(comparison, "the sentence of the claim", source="text 1")], name, [record.name])
    state.begin(Case("tests/test_model.py::test_broken", "model", title="The model decides")).end(
        BROKEN, "LabFault: a broker died"
    )
    state.faults.append("tests/test_model.py::test_broken (call): LabFault: a broker died")
    state.validity[record.name] = judge_gates(lambda gate: Quantity(gate, "x", 0.3 if gate == "steal" else 0.0))
    state.conclusions.append({"experiment": "1_signal", "setting": "lagThreshold", "value": "150", "because": "it holds"})
    page.leave(folder, state)
    return folder


@pytest.fixture(scope="module")
def seen(results: Path, tmp_path_factory: pytest.TempPathFactory) -> browser.Seen:
    """The page as a browser shows it."""
    return browser.see(results / page.PAGE, tmp_path_factory.mktemp("profile"))


def test_the_first_screen_holds_the_verdict(seen: browser.Seen) -> None:
    """What broke, what was breached and what has no data, in words, and the counts, without a scroll or a click."""
    assert set(seen.bottoms) == {"verdict", "counts"}
    assert max(seen.bottoms.values()) < browser.HEIGHT
    headline = "1 test is broken. 1 claim was breached. 1 verdict has no data. 1 experiment is missing."
    assert headline in seen.text
    assert seen.wide <= browser.WIDTH


def test_every_image_is_displayed_and_has_its_text(seen: browser.Seen) -> None:
    """A chart for each test that has one, with what is seen in it in words."""
    assert len(seen.images) == 3
    assert all(displayed for displayed, _ in seen.images)
    assert all("peak lag" in alt and "replicas" in alt for _, alt in seen.images)


def test_it_asks_for_nothing_and_complains_of_nothing(seen: browser.Seen) -> None:
    """It is one file: no request leaves, and the console is empty."""
    assert seen.requests == []
    assert seen.complaints == []


def test_every_link_leads_somewhere(seen: browser.Seen, results: Path) -> None:
    """To a place on the page, or to a file beside it."""
    for link in seen.links:
        address, _, place = link.partition("#")
        assert (results / unquote(address)).exists() if address else place in seen.anchors, link


def test_the_keyboard_reaches_every_link(seen: browser.Seen) -> None:
    """By Tab alone; links in what is folded are reached when it is opened."""
    assert set(seen.links) <= set(seen.reached)
    assert "SUMMARY" in seen.reached


def test_repeats_and_duets_show_their_interval_and_number(seen: browser.Seen) -> None:
    """The answer has the number, the interval, n, and in how many runs it held."""
    assert "102.5 messages, wanted < 103 messages; 100 to 105 (97 %), n = 6, held in 3" in seen.text
    assert "peak lag, first less second 12.5 messages, wanted > 5 messages" in seen.text


def test_it_is_dark_where_the_reader_is(results: Path, tmp_path: Path, seen: browser.Seen) -> None:
    """The ground is dark in a dark scheme and light in a light one."""
    assert seen.ground == "rgb(255, 255, 255)"
    assert browser.see(results / page.PAGE, tmp_path, scheme="dark").ground == "rgb(21, 24, 27)"


def test_paper_is_light_in_any_scheme(results: Path, tmp_path: Path) -> None:
    """What is printed has no dark ground."""
    assert browser.see(results / page.PAGE, tmp_path, scheme="dark", media="print").ground == "rgb(255, 255, 255)"


def test_the_check_sees_a_page_that_calls_out(tmp_path: Path) -> None:
    """The checks above can fail: a script of another host and a picture that is none."""
    file = tmp_path / "x.html"
    file.write_text(
        '<script src="https://elsewhere.example/x.js"></script><img src="data:image/png;base64,AAAA"><a href="#a">a</a>'
    )
    found = browser.see(file, tmp_path / "profile")
    assert found.requests == ["https://elsewhere.example/x.js"]
    assert found.complaints
    assert found.images == [[False, ""]]
