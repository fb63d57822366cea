"""The answer of an acceptance: ship or don't, by its verdicts, and the sheet that a panel signs, by lines of section 12."""

import re
import shutil
from dataclasses import replace

import pytest
import yaml

from lab.charts import drawing, timeline
from lab.judge.claim import judge
from lab.judge.measure import Runs
from lab.measure.drain import drain
from lab.measure.reaction.step import PARTS
from lab.measure.scaling import policy_excess
from lab.record.store import BOARD, Record
from lab.report import criteria, session_page, shipping
from lab.report.criteria import ON_RANGE, PAST_P, SHORT_WINDOW
from lab.report.running_session import RunningSession
from lab.report.session import Advice, Case, Head, Row, Session, Tried, Validity, read
from lab.report.shipping import DO_NOT_SHIP, NO_ANSWER, SHIP
from lab.report.sign_off import LINES, sign_off
from tests.unit.measure import similar
from tests.unit.report.sessions import plain

from . import sessions
from .sessions import BREACHED, HELD, INVALID, INVARIANT, NO_DATA

TEST = "tests/experiments/test_acceptance.py::test_it"
PNG = b"\x89PNG, as far as the page knows"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Three runs of one trial, whose peaks of lag differ."""
    folder = tmp_path_factory.mktemp("results") / "records"
    return Runs(similar.write(folder / f"run-{n}", 5, scale="standard", peak=n, block=n) for n in (1, 2, 3))


def case(runs, *judged):
    """A test of ``runs``; ``judged`` are a comparison, its kind and more of its row."""
    made = [(judge(comparison, "so", kind=kind, source="text 1"), more) for comparison, kind, more in judged]
    names = [one.name for one in runs]
    rows = [replace(Row(**vars(one), experiment="acceptance", trials=names, runs=len(runs)), **more) for one, more in made]
    return Case(TEST, "acceptance", "Acceptance", "A spike is answered", rows=rows, trials=names)


def changed(folder, one, **workload):
    """The record ``one`` again in ``folder``, as it would be with another workload."""
    shutil.copytree(one.folder, folder)
    inputs = replace(one.inputs, workload=replace(one.inputs.workload, **workload))
    replace(one.trial, inputs=inputs).write(folder)
    return Record(folder)


def shown(test, runs, tests=(), records=()):
    """The lines of the sheet by what is measured, without unit and reason: their cells by the head of the column."""
    found = sign_off(test, runs, [test, *tests], [*runs, *records], lambda name: f"records/{name}/")
    rows = [{name: cell.text for name, cell in zip(LINES, row, strict=True)} for row in found.lines.cells]
    return {re.split(r", | \(", row["measured"])[0]: row for row in rows}, found


def test_a_line_has_its_number_its_interval_and_its_verdict(runs):
    """The number is the median, its interval that of every page, and the class that of the claim."""
    peak, flips = drain(runs).peak_lag, policy_excess(runs).flips
    lines, found = shown(case(runs, (peak >= 1.5 * peak.number / 2, "control", {}), (flips == 0, "claim", {})), runs)
    line = lines["peak lag"]
    low, middle, high = (round(one.number) for one in peak.runs)
    assert (line["number"], line["interval"]) == (f"{middle:,}, worst {low:,}", f"{low:,} to {high:,} (75 %)")
    assert (line["n"], line["class"], line["verdict"]) == ("3, held in 2", "control", "✘ breached")
    assert (lines["flips"]["verdict"], lines["flips"]["wanted"]) == ("✔ held", "= 0")
    assert "1 breached, " in found.note
    assert re.fullmatch(r"1 breached, \d+ no data", found.open_lines)
    assert found.trials.cells[0][2].text == f"pytest {TEST} --scale=standard --repeat=3 --cluster=binary --lab-order-seed=1"
    assert found.trials.cells[0][3].links[0] == ("run-1", "records/run-1/")
    assert yaml.safe_load(found.policy) == runs[0].inputs.policy.content


def test_what_no_claim_judges_is_shown_and_said_to_be(runs):
    """With its interval, and what it is worth at real time; each part of the reaction is there."""
    lines, _ = shown(case(runs), runs)
    line = lines["drain time"]
    assert (line["class"], line["verdict"], line["n"]) == ("shown", "", "3")
    assert line["interval"].endswith("(75 %)")
    assert line["scale"] == "standard, times / 5, not validated"
    assert lines.keys() >= {f"reaction: {part}" for part in PARTS}
    alone, _ = shown(case(runs[:1]), Runs(runs[:1]))
    assert (alone["drain time"]["n"], alone["drain time"]["interval"]) == ("1", "")


def test_what_has_no_number_says_so_and_holds_nothing(runs):
    """It has the reason; of a trial that the session lacks there is no n either."""
    lines, found = shown(case(runs), runs)
    missing = [row for row in found.lines.cells if row[2].text == "? no data"]
    assert all("(" in row[1].text and row[8].text != "✔ held" for row in missing)
    assert sum(map(bool, found.figures.values())) == len(missing) < len(found.figures) == len(found.lines.rows)
    for name in ("replicas beyond P", "backlog of 20 million events or more"):
        assert lines[name]["number"] == "? no data"
    beside = " ".join(row[1].text for row in missing)
    assert all(why in beside for why in criteria.ABSENT.values())


def test_an_invalid_trial_is_signed_for_nothing(runs):
    """What no claim judges is invalid with the rest."""
    lines, _ = shown(case(runs, (policy_excess(runs).flips == 0, "claim", {"verdict": "invalid"})), runs)
    assert {lines[name]["verdict"] for name in ("flips", "drain time")} == {"! invalid"}


def test_the_trials_that_stand_beside_it_are_found(runs, tmp_path):
    """The same on range, whatever its order; one past P and one with a short window by what they were judged for."""
    ranged = changed(tmp_path / "ranged", runs[0], balancer="range")
    other = changed(tmp_path / "other", runs[0], balancer="range", start_s=1.0)
    flips = policy_excess(runs).flips
    hasty = case(runs[1:], (policy_excess(Runs(runs[1:])).flips > 0, "control", {}))
    surplus = case(runs[2:], (flips == 0, "invariant", {"objective": "messages processed by the surplus"}))
    on_range = case([ranged])
    found = criteria.trials(case(runs), runs, [hasty, surplus, on_range], [*runs, other, ranged])
    assert {letter: one.test for letter, one in found.items() if letter != "A"} == {
        ON_RANGE: on_range,
        PAST_P: surplus,
        SHORT_WINDOW: hasty,
    }
    assert [one.name for one in found[ON_RANGE].runs] == ["ranged"]


def test_the_sheet_is_at_the_head_of_the_page(runs, monkeypatch):
    """With both pictures: that of the board is out of the first record that has one. session.json keeps it.

    What runs it again has the options that alter trials.
    """
    results = runs[0].folder.parent.parent
    (runs[1].folder / BOARD).write_bytes(PNG)
    state = RunningSession(records=list(runs), no_board="no browser", altering=["--lab-faults=3", "--lab-profile=a b.yaml"])
    state.begin(case(runs))
    state.signed[TEST] = runs
    page = session_page.leave(results, state).read_text()
    assert "--cluster=binary --lab-faults=3 '--lab-profile=a b.yaml' --lab-order-seed=1" in plain(page)
    assert page.index('class="sign-off"') < page.index('class="facts"')
    assert page.count("<img", page.index('class="sign-off"'), page.index('class="facts"')) == 2
    (kept,) = read(results).sign_offs
    assert (kept.board, (results / kept.chart).is_file()) == ("records/run-2/board.png", True)
    (runs[1].folder / BOARD).unlink()
    monkeypatch.setattr(timeline, "timeline", lambda found: found)  # to draw it takes a second
    monkeypatch.setattr(drawing, "svg", lambda chart: "<svg></svg>")
    again = plain(session_page.leave(results, state).read_text())
    assert "No picture of the live board: no browser." in again


def test_a_session_that_signs_nothing_has_no_sheet(runs, tmp_path):
    """Nor one whose records are gone."""
    for signed in ({}, {TEST: Runs([Record(tmp_path / "gone")])}):
        state = RunningSession(records=list(runs), signed=signed)
        state.begin(case(runs))
        assert 'class="sign-off"' not in session_page.leave(tmp_path, state).read_text()


LOST = replace(INVARIANT, objective="lost", verdict="breached")
BLIND = replace(BREACHED, kind="control")


def told(*rows, outcome="passed", remark=""):
    """A test with these verdicts."""
    return Case("a.py::test_it", "acceptance", outcome=outcome, remark=remark, rows=list(rows))


@pytest.mark.parametrize(
    ("tests", "word", "decided"),
    [
        ([told(HELD, INVARIANT)], SHIP, ["reaction", "reaction"]),
        ([told(HELD, BREACHED, outcome="failed")], DO_NOT_SHIP, ["drain"]),
        ([told(HELD, NO_DATA, BREACHED, outcome="failed")], DO_NOT_SHIP, ["drain"]),
        ([told(HELD, LOST, outcome="failed")], DO_NOT_SHIP, ["lost"]),
        ([told(HELD, replace(BREACHED, as_expected=True))], DO_NOT_SHIP, ["drain"]),
        ([told(HELD, outcome="failed", remark="assert 3 == 4")], DO_NOT_SHIP, []),
        ([told(HELD, NO_DATA, outcome="failed")], NO_ANSWER, ["idle"]),
        ([told(HELD, BLIND, outcome="failed")], NO_ANSWER, ["drain"]),
        ([told(INVALID, HELD, outcome="broken", remark="invalid: steal")], NO_ANSWER, []),
        ([told(BREACHED, outcome="broken", remark="a broker died")], NO_ANSWER, []),
        ([told(HELD), told(outcome="not run")], NO_ANSWER, []),
        ([told(outcome="skipped")], NO_ANSWER, []),
        ([told()], NO_ANSWER, []),
        ([], NO_ANSWER, []),
    ],
)
def test_one_breach_is_enough_and_what_is_missing_is_no_pass(tests, word, decided):
    """Nothing is concluded from a broken trial, nor from a figure that is not there; no answer says why."""
    found = shipping.decide("my.yaml", tests)
    assert (found.word, [row.objective for row in found.rows]) == (word, decided)
    assert found.rows or found.why
    assert str(found) == f"my.yaml: {word}"


def test_a_session_that_was_stopped_ships_nothing():
    """Its breaches stay breaches."""
    assert shipping.decide("my.yaml", [told(HELD)], "interrupted") == shipping.Decision("my.yaml", NO_ANSWER, [], "interrupted")
    assert shipping.decide("my.yaml", [told(BREACHED, outcome="failed")], "interrupted").word == DO_NOT_SHIP


def test_a_verdict_that_decides_has_its_number_and_its_bound():
    """And why it has none. A session of the lab's own experiments decides nothing."""
    found = shipping.decide("my.yaml", [told(NO_DATA, BREACHED, outcome="failed")])
    assert found.lines == ["✘ drain: 1.62 x, wanted < 1.5 x"]
    assert shipping.decide("my.yaml", [told(NO_DATA)]).lines == ["? idle: n/a, wanted < 90 s (no spike)"]
    assert shipping.of(Session(tests=[told(HELD)])) is None


@pytest.mark.parametrize(
    ("scale", "more", "why"),
    [
        ("real", {}, ""),
        ("medium: times / 15", {"at_real_time": []}, ""),
        ("medium: times / 15", {}, "all held at medium; its behaviour at real time was not simulated: --scale real shows it"),
        ("medium: times / 15", {"unsimulated": "no such query"}, "was not simulated (no such query): --scale"),
        ("real", {"validity": [Validity("a", "no data", "steal is not known")]}, "a is no data: steal is not known"),
    ],
)
def test_what_a_ship_leaves_open_is_said(scale, more, why):
    """What holds at a compressed scale alone, and on a machine of which too little is known."""
    found = shipping.of(Session(head=Head(scale=scale), tests=[told(HELD)], brought="my.yaml", **more))
    assert found.word == SHIP
    assert why in found.why
    assert bool(found.why) == bool(why)


def test_a_policy_is_no_cure_for_what_is_lost():
    """A change is looked for where a claim was breached, and nowhere else."""
    words = {"claim": told(LOST, BREACHED, outcome="failed"), "invariant": told(LOST, outcome="failed"), "held": told(HELD)}
    assert [name for name, one in words.items() if shipping.decide("my.yaml", [one]).is_of_the_policy] == ["claim"]


@sessions.everywhere
def test_the_word_is_shown_everywhere(page):
    """With the file's name and what decides; the pages show what to change, and how that did."""
    advice = Advice(
        "--- a/my.yaml\n+++ b/my.yaml\n-  a: 1 & 3\n+  a: 2", ["a 1 -> 2"], Tried(SHIP, ["✔ flips: 0"], "changed/report.html")
    )
    text = page([BREACHED], outcomes={BREACHED.experiment: "failed"}, brought="my.yaml", advice=advice)
    told = sessions.plain(text)
    assert told.index("my.yaml: don't ship") < told.index("1 claim was breached.") or page is sessions.terminal
    assert "drain: 1.62 x, wanted" in told
    if page is not sessions.terminal:
        for words in ("-  a: 1 & 3", "a 1 -> 2", "With that change: ship", "✔ flips: 0"):
            assert words in told
    assert "ship" not in page([BREACHED])
