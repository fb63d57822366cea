"""Evidence: which verdicts fail a test, and what stands beside a comparison."""

import math
import re
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest

from lab import evidence, paths
from lab.archive.table import read
from lab.errors import Breach, InvalidTrial
from lab.evidence import Evidence, breached
from lab.inputs.scale import Scale
from lab.judge.expectation import Expectations, Known
from lab.judge.measure import Runs
from lab.judge.quantity import NO_REASON, Quantity, Undecided
from lab.measure.delivery import AT_LEAST_ONCE, EXACTLY_ONCE
from lab.measure.lag import peak_lag
from lab.report.running_session import RunningSession
from tests.unit.measure import similar, whole
from tests.unit.measure.built import record
from tests.unit.measure.test_delivery import EXACT, trial
from tests.unit.measure.test_faults import SCHEDULE, under
from tests.unit.measure.test_kills import done, range_of
from tests.unit.measure.test_outcome import OUTCOME
from tests.unit.report.sessions import gates

BREACHED_AT_REAL = ("real", "breached", "claim")
FEW = Undecided("difference", "s", None, "1 pair: a difference is claimed from 6 on")


@pytest.fixture
def session(monkeypatch):
    """A session whose evidence goes nowhere."""
    monkeypatch.setattr(evidence, "attach", lambda *_: None)
    monkeypatch.setattr(evidence, "judge_validity", lambda _: ())
    monkeypatch.setattr(evidence, "side_by_side", lambda named: {"peak": dict.fromkeys(named, Quantity("peak", "", 1.0))})
    return RunningSession()


def records(*names):
    """Records by name, which nothing is read of."""
    return {name: Runs([SimpleNamespace(name=name, scale=Scale("real", 1, 1), release=lambda: None)]) for name in names}


@pytest.mark.parametrize("other", [Quantity("flips", "flips", None, "no spike"), Quantity("flips", "flips", 3)])
def test_what_a_record_lacks_or_breaches_fails_beside_it(session, other):
    """Only the session's own choice of few runs is excused. What has no number has no mark: its reason stands there already."""
    judged = Evidence("1 signal", session).of(records("a"), delivery=None)
    claim = judged.__enter__()
    claim(FEW > 0, "the first is later")
    claim(other <= 0, "it is calm")
    with pytest.raises(Breach, match="flips") as breach:
        judged.__exit__(None, None, None)
    assert "difference" not in str(breach.value)
    assert {row.real_time for row in session.rows} == {""}


def test_a_figure_that_is_shown_without_data_is_known_with_its_reason(session, monkeypatch):
    """What a test reports, what stands side by side, and the noise beside it; nan is no number either."""
    beside = {"peak": {"a": Quantity("peak", "", 1.0), "b": Quantity("peak", "", None, "no lag")}}
    monkeypatch.setattr(evidence, "side_by_side", lambda named: beside)
    experiment = Evidence("1 signal", session)
    experiment.report("dips", {"depth": Quantity("depth", "", None, "no step"), "noise": math.nan, "steps": 0})
    with experiment.of(records("a", "b"), delivery=None):
        pass
    (test,) = session.tests.values()
    assert test.figures == {
        "dips: depth": "no step",
        "dips: noise": NO_REASON,
        "dips: steps": "",
        "peak, a": "",
        "peak, b": "no lag",
    }
    assert test.tables[1].cells[0][2].text == "n/a"


@pytest.mark.parametrize(
    ("changed", "guarantee", "wanted"),
    [
        ({}, EXACTLY_ONCE, ["held"]),
        ({"doubled_messages": 3}, EXACTLY_ONCE, ["breached"]),
        ({"doubled_messages": 3}, AT_LEAST_ONCE, ["held"]),
        ({"holes": 3}, AT_LEAST_ONCE, ["breached"]),
        ({"holes": 3}, None, []),
    ],
)
def test_the_last_claim_is_the_delivery_of_every_record(session, tmp_path, changed, guarantee, wanted):
    """Of all that the block is given; one run that breaks the guarantee fails the block, unless it makes none.

    A claim on too few pairs is never held, and no breach.
    """
    runs = Runs([trial(tmp_path / "whole"), trial(tmp_path / "other", ledger=replace(EXACT, **changed))])
    with (
        pytest.raises(Breach) if "breached" in wanted else nullcontext(),
        Evidence("1 signal", session).of({"a": runs}, delivery=guarantee) as claim,
    ):
        claim(FEW > 0, "the first is later")
    assert [row.verdict for row in session.rows] == ["no data", *wanted]
    assert (session.rows[0].measured, session.rows[0].note.startswith("1 pair")) == (None, True)
    assert [row.why for row in session.rows[1:]] == [guarantee.sentence for _ in wanted]


def test_a_trial_with_faults_is_held_to_what_faults_leave(session, tmp_path):
    """At least once, each copy explained, and what decides is back; the trials beside it deliver exactly once.

    What a record does not show is no data, and never a pass.
    """
    receipts = [done("a", 0, 0, 9, 99.9), done("b", 0, 0, 9, 108.0)]
    struck = under(
        tmp_path / "struck", receipts, [range_of(0, 0, 9)], inputs={"faults": SCHEDULE, "policy": whole.decreed(2, 3)}
    )
    beside = trial(tmp_path / "beside")
    with (
        pytest.raises(Breach),
        Evidence("1 signal", session).of({"a": Runs([struck]), "b": Runs([beside])}),
    ):
        pass
    found = {row.why: row.verdict for row in session.rows}
    assert found[EXACTLY_ONCE.sentence] == "held"
    assert [verdict for words, verdict in found.items() if words.startswith("each copy was in flight")] == ["held"]
    assert found["no group is scaled to zero while there is lag"] == "no data"
    assert AT_LEAST_ONCE.sentence in found


def test_what_a_trial_breaks_is_named(session, monkeypatch, tmp_path):
    """By its sentence, of a trial with faults or without. What is not known breaks nothing, and is no pass either."""
    struck = under(tmp_path / "struck", [done("a", 0, 0, 9, 99.0), done("b", 0, 0, 9, 99.9)], [range_of(0, 0, 9)])
    assert [line for line in breached(struck) if line.startswith("each copy was in flight at a fault")]
    assert "no group is scaled to zero while there is lag" not in breached(struck)
    assert breached(trial(tmp_path / "beside", ledger=replace(EXACT, doubled_messages=3))) == [EXACTLY_ONCE.sentence]
    assert breached(trial(tmp_path / "whole")) == []
    calm = under(tmp_path / "calm", [done("a", 0, 0, 9, 99.0)])
    assert breached(calm) is None  # without a watch event
    monkeypatch.setattr(evidence, "judge_validity", lambda _: gates(steal=0.3))
    assert breached(struck) is None


def test_the_noise_stands_beside_the_comparison(session, monkeypatch):
    """A column of its own in the table of the trials, with the number of pairs."""
    shown = []
    monkeypatch.setattr(evidence, "attach", lambda *given: shown.extend(given[4]))
    monkeypatch.setattr(evidence, "figures", lambda record: {"peak": Quantity("peak", "", record)})
    made = Evidence("1 signal", session)
    made.noise([10, 20], [13, 21])
    with made.of(records("a", "b"), delivery=None):
        pass
    assert shown == [{"peak": {"a": 1.0, "b": 1.0, "A/A differ by up to (n = 2)": 3}}]


@pytest.mark.parametrize("runs", [1, 3])
def test_a_chart_of_a_repeated_trial_is_one_of_each_run(session, monkeypatch, runs):
    """A trial that ran once has one chart, by its plain name."""
    drawn = {}
    monkeypatch.setattr(evidence, "attach", lambda *given: drawn.update(given[3]))
    of = records(*[f"run {n}" for n in range(runs)])
    found = Runs(record for (record,) in of.values())
    made = Evidence("1 signal", session)
    made.chart_of("reaction", lambda record: record.name, found)
    with made.of(of, delivery=None):
        pass
    numbered = {f"reaction #{n + 1}": f"run {n}" for n in range(runs)}
    assert {name: draw() for name, draw in drawn.items()} == (numbered if runs > 1 else {"reaction": "run 0"})


@pytest.mark.parametrize(("scale", "mark"), [("quick", "quick only; not validated at real time"), ("real", "")])
def test_a_claim_is_marked(session, tmp_path, monkeypatch, scale, mark):
    """Where its measure is not shown to be faithful at the scale of its trial; an invariant is not."""
    monkeypatch.setattr(evidence, "committed", lambda: OUTCOME)
    one = similar.write(tmp_path / "one", 30 if mark else 1, scale=scale)
    with Evidence("scale", session).of(Runs([one]), delivery=None) as claim:
        claim(peak_lag(one) >= 0, "there was lag")
        claim.invariant(peak_lag(one) >= 0, "there was lag")
    assert [row.real_time for row in session.rows] == [mark, ""]
    assert [f" ({mark})" in str(row) for row in session.rows] == [bool(mark), False]


@pytest.mark.parametrize(("scale", "mark"), [("quick", " (quick only; refuted at real time: 5 (a))"), ("real", "")])
def test_what_real_time_refuted_says_so_wherever_it_stands(session, tmp_path, scale, mark):
    """In the verdict of a compressed trial, and in what the experiment concludes of it, first of all marks."""
    one = similar.write(tmp_path / "one", 30 if mark else 1, scale=scale)
    judged = Evidence("scale", session)
    with judged.of(Runs([one]), delivery=None) as claim:
        claim(peak_lag(one) >= 0, "there was lag")
        claim(peak_lag(one) >= 0, "there was more", refuted="5 (a)")
    judged.conclude("lagThreshold", 1, "it is enough")
    assert [mark in str(row) for row in session.rows] == [not mark, True]
    assert session.conclusions[0].because == f"it is enough{mark}"


def test_a_claim_that_real_time_breached_says_so_in_its_experiment():
    """Each that can be judged at a compressed scale too; the session that it names breached a claim at real time."""
    table = [row for row in read(paths.PROJECT / "docs" / "evidence") if (row.scale, row.verdict, row.kind) == BREACHED_AT_REAL]
    texts = {file: file.read_text() for file in (paths.PROJECT / "tests").glob("[es]*/**/test_*.py")}
    named = {text for file in texts.values() for text in re.findall(r'refuted="[^"]*\(([\w-]+)\)"', file)}
    assert named <= {row.session for row in table}
    for row in table:
        module, _, test = row.test.partition("::")
        text = texts[paths.PROJECT / module]
        mark = text[: text.index(f"def {test.partition('[')[0]}(")].rpartition("@pytest.mark.")[2]
        compressible = not mark.startswith("real_time") and "pytestmark = [pytest.mark.real_time" not in text
        assert not compressible or f"({row.session})" in text, row


@pytest.mark.parametrize("value", [1, 5])
def test_a_claim_on_an_invalid_trial_is_no_pass_and_no_breach(session, value, tmp_path, monkeypatch):
    """Held or not, the test is broken and not failed; the number is kept with the reason beside it."""
    monkeypatch.setattr(evidence, "judge_validity", lambda _: gates(steal=0.3))
    with (
        pytest.raises(InvalidTrial, match=r"trial: steal 0\.3 x, at most 0\.05"),
        Evidence("2 reaction", session).of(Runs([record(tmp_path)]), delivery=None) as claim,
    ):
        claim(Quantity("flips", "flips", value) <= 2, "it is calm")
    (row,) = session.rows
    assert (row.verdict, row.measured, "steal 0.3" in row.note) == ("invalid", value, True)
    assert list(session.validity) == [tmp_path.name]


@pytest.mark.parametrize(("value", "held", "fails"), [(5, 0, False), (1, 0, True), (5, None, True), (1, None, False)])
def test_a_session_that_expects_a_breach_fails_by_a_difference(session, value, held, fails):
    """A breach that is expected fails nothing; a claim that holds where it never did fails, with both numbers."""
    known = {} if held is None else {"it is calm": Known(held, 20, "5 flips", ["a"])}
    session.expectations = Expectations({"5_flapping": known})
    with (
        pytest.raises(Breach, match=rf"expected .*now held {int(not held and value < 2)} of 1") if fails else nullcontext(),
        Evidence("5_flapping", session).of(records("a"), delivery=None) as claim,
    ):
        claim(Quantity("flips", "flips", value) <= 2, "it is calm")
    assert session.rows[0].passes is not fails
