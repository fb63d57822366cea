"""The session's page in a real browser, from a file:// address: it is read offline, in the dark, by keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote, unquote

import pytest

from lab.charts.comparison import comparison_chart
from lab.charts.curves import compared_runs, timeline_of
from lab.charts.thumbnail import thumbnail
from lab.charts.timeline import timeline
from lab.judge.claim import judge
from lab.judge.gates import judge_gates
from lab.judge.pairs import discern, paired
from lab.judge.quantity import Quantity, repeated
from lab.report import session_page
from lab.report.running_session import RunningSession
from lab.report.session import BROKEN, FAILED, INTERRUPTED, PASSED, Case, Conclusion
from tests.unit.measure import similar
from tests.unit.report import browser

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.services, browser.needed]

DUET = "tests/test_2_duet.py::test_it"
WHITE, DARK = "rgb(255, 255, 255)", "rgb(21, 24, 27)"
NOTE = "Experiment {}: is CPU a signal?\n\nHypothesis. It is not.\n\nMethod. Two trials.\n\nAsserted. The lag grows."


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a session with a breach, a broken test, no data, an invalid trial, repeats and a duet."""
    folder = tmp_path_factory.mktemp("results")
    record = similar.write(folder / "records" / "plateau-10", 10)
    svg, alt = thumbnail({"CPU": [record], "lag": [record]})
    state = RunningSession(records=[record], expected=["1_signal", "2_duet", "10_last", "11_never"], runs=6)
    runs = repeated([Quantity("peak lag", "messages", 100.0 + n) for n in range(6)])
    same = repeated([Quantity("peak lag", "messages", 90.0) for _ in range(6)])
    less = discern(paired(runs, same), paired(same, repeated([one + 2 for one in same.runs])))
    missing = Quantity("drain", "s", None, "the backlog was never drained")
    comparisons = {
        "1_signal": ([runs < 103], PASSED, "CPU is no signal"),
        "2_duet": ([less > 5, less > 0], PASSED, "Woken has less lag"),
        "10_last": ([missing < 9], FAILED, "The drain is bounded"),
    }
    for name, (claims, outcome, title) in comparisons.items():
        case = Case(f"tests/test_{name}.py::test_it", name, "Signal", title, NOTE.format(name.partition("_")[0]))
        state.keep_picture(case, svg, alt)
        state.begin(case).end(outcome)
        state.judged([judge(one, "the sentence of the claim", source="text 1") for one in claims], name, [record.name])
    state.begin(Case("tests/test_model.py::test_broken", "model", title="The model decides")).end(
        BROKEN, "LabFault: a broker died"
    )
    state.faults.append("tests/test_model.py::test_broken (call): LabFault: a broker died")
    state.validity[record.name] = judge_gates(lambda gate: Quantity(gate, "x", 0.3 if gate == "steal" else 0.0))
    state.plan([Case("tests/test_12.py::test_it", "12_later", "12 Later", "It lasts", NOTE.format(12))])
    state.stop(INTERRUPTED)
    state.asked, state.done = range(36), range(34)
    curves = compared_runs({"CPU": [record, record], "lag": [record, record]})
    state.timelines[DUET] = comparison_chart(curves, "Both", "made up", [("CPU", "lag")]).to_dict()
    state.timelines[record.name] = timeline(timeline_of(record)).to_dict()
    state.conclusions.append(Conclusion("lagThreshold", "150", "it holds", "1_signal"))
    session_page.leave(folder, state)
    return folder


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for all looks."""
    with browser.started() as one:
        yield one


@pytest.fixture(scope="module")
def seen(results: Path, chromium: Browser) -> browser.View:
    """The page as a browser shows it."""
    return browser.look(chromium, results / session_page.PAGE)


def test_the_first_screen_holds_the_verdict(seen: browser.View) -> None:
    """What broke, what was breached and what has no data, in words, and the counts, without a scroll or a click."""
    bottoms = seen.all("#verdict, .counts", "one.getBoundingClientRect().bottom")
    assert len(bottoms) == 2
    assert max(bottoms) < browser.HEIGHT
    for sentence in (
        "The session was interrupted: 4 of 5 experiments, 4 of 5 tests and 34 of 36 trials that they asked for ran.",
        "Not run: all of 12.",
        "1 test is broken. 1 claim was breached. 1 verdict has no data. 1 experiment is missing.",
    ):
        assert sentence in seen.text
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= browser.WIDTH


def test_it_asks_for_nothing_and_complains_of_nothing(seen: browser.View) -> None:
    """It is one file: no request leaves, and the console is empty. Each chart is there, with what is seen in it."""
    assert (seen.requests, seen.complaints) == ([], [])
    images = seen.all("img", "[one.complete && one.naturalWidth > 0, one.alt]")
    assert len(images) == 3
    assert all(displayed and "peak lag" in alt and "replicas" in alt for displayed, alt in images)


def test_every_link_leads_somewhere_and_the_keyboard_reaches_it(seen: browser.View, results: Path) -> None:
    """To a place on the page, or to a file beside it; by Tab alone, and what is folded too, when it is opened."""
    links, anchors = seen.all("a[href]", "one.getAttribute('href')"), seen.all("[id]", "one.id")
    for link in links:
        address, _, place = link.partition("#")
        assert (results / unquote(address)).exists() if address else place in anchors, link
    assert {*links, "SUMMARY"} <= set(seen.reached())


def test_repeats_and_duets_show_their_interval_and_number(seen: browser.View) -> None:
    """The answer has the number, the interval, n, and in how many runs it held."""
    assert "102.5 messages, wanted < 103 messages; 100 to 105 (97 %), n = 6, held in 3, worst 105" in seen.text
    sure = "+10 to +15 (97 %), n = 6 pairs; 6 A/A pairs differ by up to 2"
    assert f"peak lag, first less second: 12.5 messages, wanted > 5 messages; {sure}" in seen.text
    assert f"12.5 messages (wanted > 0 messages; {sure})" in seen.text


GROUNDS = [("light", "screen", WHITE), ("dark", "screen", DARK), ("dark", "print", WHITE)]


@pytest.mark.parametrize(("scheme", "media", "ground"), GROUNDS)
def test_it_is_dark_where_the_reader_is_and_light_on_paper(
    chromium: Browser, results: Path, scheme: str, media: Literal["print", "screen"], ground: str
) -> None:
    """What is printed has no dark ground in any scheme."""
    page = browser.look(chromium, results / session_page.PAGE, color_scheme=scheme).page
    page.emulate_media(media=media)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == ground


DRAWN = "document.querySelector('#chart canvas')?.toDataURL().length > 10000"


@pytest.mark.parametrize("anchor", [quote(DUET), "no such timeline"])
def test_a_timeline_is_drawn_explained_at_the_pointer_and_zoomed(chromium: Browser, results: Path, anchor: str) -> None:
    """It is found by its address, the first one where that names none, and it is one file."""
    view = browser.look(chromium, results / session_page.TIMELINES, anchor)
    page = view.page
    page.wait_for_function(DRAWN)
    box = page.locator("#chart canvas").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 110)
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 120)
    page.locator("#vg-tooltip-element", has_text="time (s)").wait_for()
    before = page.evaluate("document.querySelector('#chart canvas').toDataURL()")
    page.mouse.wheel(0, -200)
    page.wait_for_function("(before) => document.querySelector('#chart canvas').toDataURL() !== before", arg=before)
    assert page.locator("#trial").input_value() == DUET
    assert (view.requests, view.complaints) == ([], [])


def test_the_check_sees_a_page_that_calls_out(chromium: Browser, tmp_path: Path) -> None:
    """The checks above can fail: a script of another host and a picture that is none."""
    page = tmp_path / "x.html"
    page.write_text('<script src="https://elsewhere.example/x.js"></script><img src="data:image/png;base64,AAAA">')
    view = browser.look(chromium, page)
    assert view.requests == ["https://elsewhere.example/x.js"]
    assert view.complaints
    assert view.all("img", "[one.complete && one.naturalWidth > 0, one.alt]") == [[False, ""]]
