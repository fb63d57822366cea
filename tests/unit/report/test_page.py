"""The session's page in a real browser, from a file:// address: it is read offline, in the dark, by keyboard."""

from __future__ import annotations

import json
from pathlib import Path
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
from lab.report import page
from lab.report.session import BROKEN, FAILED, INTERRUPTED, PASSED, Case, Session
from tests.unit.report import browser
from tests.unit.report.runtime_records import spike

pytestmark = [pytest.mark.services, pytest.mark.skipif(browser.CHROMIUM is None, reason="no Chromium on PATH")]

DUET = "tests/test_2_duet.py::test_it"
NOTE = "Experiment {}: is CPU a signal?\n\nHypothesis. It is not.\n\nMethod. Two trials.\n\nAsserted. The lag grows."


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a session with a breach, a broken test, no data, an invalid trial, repeats and a duet."""
    folder = tmp_path_factory.mktemp("results")
    (folder / "records").mkdir()
    record = spike(folder / "records", "binary")
    svg, alt = thumbnail({"CPU": [record], "lag": [record]})
    state = Session(records=[record], expected=["1_signal", "2_duet", "10_last", "11_never"])
    state.repeated(6)
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
        case.picture, case.alt = svg, alt
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
    state.conclusions.append({"experiment": "1_signal", "setting": "lagThreshold", "value": "150", "because": "it holds"})
    page.leave(folder, state)
    return folder


CALLS_OUT = '<script src="https://elsewhere.example/x.js"></script><img src="data:image/png;base64,AAAA"><a href="#a">a</a>'
# The drawn chart, then the words that stand at the pointer in its middle, then whether the wheel changes it.
POINTED = """(async () => {
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  let canvas;
  while (!(canvas = document.querySelector("#chart canvas"))) await frame();
  for (let n = 0; n < 300 && canvas.toDataURL().length <= 10000; n++) await frame();  // it is drawn after it is there
  const place = canvas.getBoundingClientRect();
  const at = { clientX: place.left + place.width / 2, clientY: place.top + 120, bubbles: true };
  const before = canvas.toDataURL();
  let words = "";
  for (let n = 0; n < 300 && !words; n++) {
    for (const kind of ["pointermove", "mousemove"]) canvas.dispatchEvent(new PointerEvent(kind, at));
    await frame();
    words = document.querySelector("#vg-tooltip-element")?.innerText ?? "";
  }
  const drawn = canvas.toDataURL();
  canvas.dispatchEvent(new WheelEvent("wheel", { ...at, deltaY: -200 }));
  for (let n = 0; n < 300 && canvas.toDataURL() === drawn; n++) await frame();
  const zoomed = canvas.toDataURL() !== drawn;
  return JSON.stringify([before.length > 10000, words, zoomed, document.getElementById("trial").value]);
})()"""


@pytest.fixture(scope="module")
def looks(results: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, browser.Seen]:
    """What one browser shows of the page, in each scheme and on paper, of the timelines, and of a page that calls out."""
    other = tmp_path_factory.mktemp("other") / "x.html"
    other.write_text(CALLS_OUT)
    written, timelines = results / page.PAGE, results / page.TIMELINES
    visits = {
        "light": browser.Visit(written),
        "dark": browser.Visit(written, scheme="dark"),
        "paper": browser.Visit(written, scheme="dark", media="print"),
        "side by side": browser.Visit(timelines, script=POINTED, anchor=quote(DUET)),
        "timeline": browser.Visit(timelines, script=POINTED, anchor="no such timeline"),
        "calls out": browser.Visit(other),
    }
    return dict(zip(visits, browser.see(tmp_path_factory.mktemp("profile"), *visits.values()), strict=True))


@pytest.fixture(scope="module")
def seen(looks: dict[str, browser.Seen]) -> browser.Seen:
    """The page as a browser shows it."""
    return looks["light"]


def test_the_first_screen_holds_the_verdict(seen: browser.Seen) -> None:
    """What broke, what was breached and what has no data, in words, and the counts, without a scroll or a click."""
    assert set(seen.bottoms) == {"verdict", "counts"}
    assert max(seen.bottoms.values()) < browser.HEIGHT
    for sentence in (
        "The session was interrupted: 4 of 5 experiments, 4 of 5 tests and 34 of 36 trials that they asked for ran.",
        "Not run: all of 12.",
        "1 test is broken. 1 claim was breached. 1 verdict has no data. 1 experiment is missing.",
    ):
        assert sentence in seen.text
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
    assert "102.5 messages, wanted < 103 messages; 100 to 105 (97 %), n = 6, held in 3, worst 105" in seen.text
    sure = "+10 to +15 (97 %), n = 6 pairs; 6 A/A pairs differ by up to 2"
    assert f"peak lag, first less second: 12.5 messages, wanted > 5 messages; {sure}" in seen.text
    assert f"12.5 messages (wanted > 0 messages; {sure})" in seen.text


def test_it_is_dark_where_the_reader_is(looks: dict[str, browser.Seen]) -> None:
    """The ground is dark in a dark scheme and light in a light one."""
    assert looks["light"].ground == "rgb(255, 255, 255)"
    assert looks["dark"].ground == "rgb(21, 24, 27)"


def test_paper_is_light_in_any_scheme(looks: dict[str, browser.Seen]) -> None:
    """What is printed has no dark ground."""
    assert looks["paper"].ground == "rgb(255, 255, 255)"


@pytest.mark.parametrize(("look", "shown"), [("side by side", DUET), ("timeline", DUET)])
def test_a_timeline_is_drawn_explained_at_the_pointer_and_zoomed(looks: dict[str, browser.Seen], look: str, shown: str) -> None:
    """It is found by its address, the first one where that names none, and it is one file."""
    drawn, words, zoomed, chosen = json.loads(looks[look].value)
    assert drawn
    assert "time (s)" in words
    assert zoomed
    assert chosen == shown
    assert looks[look].requests == []
    assert looks[look].complaints == []


def test_the_check_sees_a_page_that_calls_out(looks: dict[str, browser.Seen]) -> None:
    """The checks above can fail: a script of another host and a picture that is none."""
    found = looks["calls out"]
    assert found.requests == ["https://elsewhere.example/x.js"]
    assert found.complaints
    assert found.images == [[False, ""]]
