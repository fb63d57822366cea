"""What a session says: the same words and counts in the terminal, in summary.md, which CI shows, and on its page."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from lab.judge.claim import Repeats
from lab.judge.gates import GATES
from lab.report import summary
from lab.report.running_session import RunningSession
from lab.report.session import BROKEN, INTERRUPTED, NOT_RUN, Case, Head, Section, Session, SignOff
from lab.report.summary import WITHOUT, Summary
from lab.report.tables import Table
from tests.unit.report.sessions import (
    BREACHED,
    CONCLUSION,
    HELD,
    INVALID,
    INVARIANT,
    NO_DATA,
    Page,
    everywhere,
    gates,
    html,
    pages,
    plain,
    section,
    session,
    terminal,
)

SENTENCES = (
    "The session was interrupted: 4 of 5 experiments and 4 of 5 tests ran.",
    "Not run: all of 6 last.",
    "1 test is broken.",
    "1 test is broken by an invalid trial.",
    "1 claim was breached.",
    "1 verdict is invalid.",
    "2 verdicts have no data.",
)


@everywhere
def test_what_is_no_pass_is_told_everywhere(page: Page) -> None:
    """A broken test, a breach, an invalid trial, no data and an interruption, in one headline and each by its name."""
    outcomes = {"5 brokers": BROKEN, "6 last": NOT_RUN, "3 dip": BROKEN}
    text = plain(page([HELD, BREACHED, NO_DATA, NO_DATA, INVALID], outcomes=outcomes, stopped=INTERRUPTED))
    assert " ".join(SENTENCES) in text
    for one in ("drain", "dip", "idle", "why 6 last not run"):
        assert one in text
    assert "claims: 1 held, 1 breached, 2 no data, 1 invalid" in text
    assert "tests: 2 broken; tests: 1 not run" in text


@pages
def test_what_needs_attention_stands_above_the_rest(page: Page) -> None:
    """Each under its own heading: who, how much, against what, and the note; what held stands under none."""
    text = page([HELD, BREACHED, NO_DATA, INVALID], expected=["2 reaction", "5 brokers"], outcomes={"7 kafka": BROKEN})
    assert "2 reaction: two hot | ones: drain: 1.62 x, wanted < 1.5 x; n = 1" in section(text, "Breached")
    assert "4 ceiling: fast enough: idle: n/a, wanted < 90 s; n = 1 (no spike)" in section(text, "No data")
    assert "3 dip: fast enough: dip: 71.2 s, wanted < 90 s; n = 1 (steal 0.3)" in section(text, "Invalid")
    assert "7 kafka: why 7 kafka broken" in section(text, "Broken")
    assert "5 brokers: no verdict at all" in section(text, "Missing")
    assert "2 reaction" not in section(text, "Missing")
    assert "1 of 2 experiments missing" in plain(text)
    assert all("reaction: 71.2" not in section(text, heading) for heading in ("Breached", "No data", "Invalid"))
    assert text.index("Breached") < text.index("Recommended policy")


@everywhere
def test_a_whole_session_in_which_all_held_has_nothing_to_tell(page: Page) -> None:
    """No heading where nothing went wrong, and not a word of what did not run."""
    text = page([INVARIANT], expected=["2 reaction"])
    assert summary.ALL_WELL in text
    assert not re.search("missing|interrupted|not run", text.lower().replace("not-run", ""))
    assert [section(text, name) for name in ("Breached", "No data", "Missing")] == ["", "", ""]


@everywhere
def test_figures_without_data_are_counted_where_all_verdicts_held(page: Page) -> None:
    """Those of a test and of the sheet to be signed; a session in which all verdicts held is well all the same."""
    figures = {"peak lag": "", "drain": "no lag", "dip": "no step", "recovery": "no step"}
    sheet = SignOff("One policy", "", Table((), []), Table((), []), figures={"backlog": "its peak is smaller"})
    made = session([HELD])
    found = replace(made, tests=[replace(made.tests[0], figures=figures)], sign_offs=[sheet])
    text = plain(page(found.tests[0].rows, tests=found.tests, sign_offs=[sheet]))
    assert "Nothing broke and nothing was breached. 4 of 5 figures shown have no data." in text
    assert Summary(found).is_well
    (_, entries), *others = Summary(found).attention
    said = ["no lag (drain)", "no step (dip; recovery)", "its peak is smaller (backlog)"]
    assert ([one.text for one in entries], others) == (said, [])
    if page is not terminal:
        assert all(one in section(page(found.tests[0].rows, tests=found.tests, sign_offs=[sheet]), WITHOUT) for one in said)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, True),
        ({"outcomes": {"5 brokers": BROKEN}}, False),
        ({"outcomes": {"5 brokers": NOT_RUN}}, False),
        ({"outcomes": {"5 brokers": "failed"}}, False),
        ({"expected": ["5 brokers"]}, False),  # one that did not run did not hold
        ({"more": replace(INVARIANT, verdict="breached")}, False),
        ({"more": replace(INVARIANT, verdict="invalid")}, False),
        ({"more": replace(INVARIANT, verdict="no data", measured=None)}, False),
        ({"more": BREACHED}, True),  # a claim that was breached is no invariant
    ],
)
def test_all_held_is_said_of_invariants_alone(given: dict[str, Any], said: bool) -> None:
    """And only where every one of them was judged and held, and nothing broke."""
    more = [given.pop("more")] if "more" in given else []
    assert ("all held" in Summary(session([INVARIANT, *more], **given)).tally) is said
    assert "all held" not in Summary(session([HELD])).tally


@pages
def test_each_kind_is_counted_by_itself(page: Page) -> None:
    """A control that shows an effect adds nothing to the claims that held; a bound without a source is counted."""
    text = plain(page([INVARIANT, INVARIANT, replace(INVARIANT, kind="control"), HELD, replace(BREACHED, source="text 1")]))
    assert "invariants: 2 held, 0 breached, 0 no data, all held; controls: 1 held, 0 breached, 0 no data; " in text
    assert "claims: 1 held, 1 breached, 0 no data (1 without a source)" in text


@pages
def test_a_test_that_fails_beside_its_claims_is_told(page: Page) -> None:
    """A plain assertion is no claim, and no verdict shows it; one that failed by a breach is told by the breach alone."""
    text = plain(page([INVARIANT, BREACHED], outcomes={"2 reaction": "failed", "5 brokers": "failed"}))
    assert "1 claim was breached. 1 test failed beside its claims." in text
    assert "why 5 brokers failed" in text
    assert "why 2 reaction failed" not in text


@everywhere
def test_breaches_that_were_expected_are_counted_apart(page: Page) -> None:
    """With what holds and was not to. A session in which nothing differs is well; a plain assertion that fails is told."""
    known, other = replace(BREACHED, as_expected=True), replace(HELD, as_expected=False)
    text = plain(page([known, known, BREACHED, other], outcomes={"2 reaction": "failed"}))
    assert "3 claims were breached, 2 of them expected. 1 claim held, not as expected." in text
    assert "3 breached (2 as expected)" in text
    assert "1 claim was breached, as expected." in plain(page([known]))
    assert "2 claims were breached, all of them expected." in plain(page([known, known]))
    assert [Summary(session(rows)).is_well for rows in ([HELD], [HELD, known], [known, BREACHED])] == [True, True, False]
    assert [len(found) for _, found in Summary(session([known, BREACHED, other])).attention] == [1, 1, 1]
    assert "1 test failed beside its claims" in plain(page([known], outcomes={"2 reaction": "failed"}))


@pages
def test_an_empty_session_says_so(page: Page) -> None:
    """Nothing judged and nothing concluded is written out, not left blank. Facts that are not known are left out."""
    text = page([], expected=["2 reaction"], head=Head(runs=6, scale="quick: time / 30", machine="2 cores", trials=3, others=2))
    assert "1 experiment is missing. Nothing was judged." in plain(text)
    assert "No experiment of this session concluded" in section(text, "Recommended policy")
    assert "0 held, 0 breached, 0 no data; 1 of 1 experiments missing" in plain(text)
    for fact in ("scale", "quick: time / 30", "machine", "2 cores", "6 of each trial", "2 more trials in this folder"):
        assert fact in text
    assert "runtime" not in text


@pytest.mark.parametrize(
    ("stopped", "said"),
    [
        (INTERRUPTED, "The session was interrupted: "),
        ("stopping after 1 failures", "The session was stopped (stopping after 1 failures): "),
        ("", "The session is incomplete: "),
    ],
)
def test_an_incomplete_session_says_why_and_how_many_trials_ran(stopped: str, said: str) -> None:
    """Ctrl-C, a reason of pytest's, or none; trials are counted of those that its tests asked for, where any did."""
    given = {"outcomes": {"6 last": NOT_RUN}, "stopped": stopped}
    headline = Summary(session([HELD], **given, asked=36, done=34)).headline
    assert headline.startswith(f"{said}1 of 2 experiments, 1 of 2 tests and 34 of 36 trials that they asked for ran.")
    assert headline.endswith(summary.WELL_SO_FAR)
    assert "1 of 2 tests and 32 trials ran." in Summary(session([HELD], **given, head=Head(trials=32))).headline


def test_an_experiment_that_ran_in_part_is_named_as_such() -> None:
    """By its number; the entry has its tests in words and the one that was cut off. Its word is above a pass."""
    left = Case("b", "2 reaction", title="It lasts", remark="cut off")
    made = session([HELD])
    found = Summary(replace(made, tests=[*made.tests, left]))
    assert found.coverage.sentences[1] == "Not run: a part of 2 reaction."
    (entry,) = found.coverage.entries
    assert entry.text == "1 of 2 tests did not run: It lasts (cut off)"
    assert [one.word for one in found.experiments] == [NOT_RUN]


@pages
def test_the_policy_says_what_and_why(page: Page) -> None:
    """The setting, its value, the reason and the experiment, over the YAML as it would be applied."""
    policy = "# lag & more\nspec:\n  maxReplicaCount: 24   # <= P\n"
    text = section(page([HELD], conclusions=[CONCLUSION], policy=policy), "Recommended policy")
    for told in vars(CONCLUSION).values():
        assert told in text
    assert policy.strip() in text


@pages
def test_repeats_show_their_interval_and_their_number(page: Page) -> None:
    """Median, interval with its confidence, runs, and in how many it held; a number of one run, or of all, says so."""
    repeats = Repeats(6, 5, worst=95.0, low=60.0, high=95.0, confidence=0.96875)
    first = replace(HELD, repeats=repeats, experiment="1 signal")
    text = plain(page([first, BREACHED, replace(BREACHED, runs=6), replace(NO_DATA, runs=5)]))
    for said in ("60 to 95 (97 %), n = 6, held in 5, worst 95", "n = 1", "one number of 6 runs", "n = 5"):
        assert said in text


@pages
def test_experiments_come_in_their_natural_order(page: Page) -> None:
    """1, 2, 10, and then those with a name."""
    names = ["model", "10_lag", "2_reaction", "1_signal"]
    text = plain(page([replace(HELD, experiment=name, why=f"of {name}") for name in names]))
    places = [text.index(f"of {name}") for name in ("1_signal", "2_reaction", "10_lag", "model")]
    assert places == sorted(places)


@everywhere
def test_what_a_claim_is_worth_stands_wherever_it_does(page: Page) -> None:
    """A claim that held says it too."""
    assert "quick only; refuted" in page([replace(HELD, real_time="quick only; refuted at real time: 4 flips")])


def test_the_page_has_every_verdict_and_further_tables() -> None:
    """With what a claim is worth at real time, and the sections that a session adds."""
    table = Section("Two alike", "How far a side is from itself.", Table(("pair", "difference"), [["a", "0.1"]]))
    text = html([replace(HELD, real_time="quick only")], sections=[table])
    assert "fast enough (quick only)" in section(text, "All verdicts")
    assert "How far a side is from itself." in section(text, "Two alike")


def test_the_question_is_the_modules_first_line() -> None:
    """Without the name of the experiment; the rest of the docstring is its note."""
    note = "Experiment 3: what does a step cost?\n\nHypothesis. Much."
    (one,) = Summary(Session(tests=[Case("x", "3_dip", "3 Rebalance dip", note=note, rows=[HELD])])).experiments
    found = (one.number, one.heading, one.question, one.note)
    assert found == ("3", "Rebalance dip", "What does a step cost?", ["Hypothesis. Much."])


def test_each_trial_is_said_to_be_valid_or_why_not(tmp_path: Any) -> None:
    """What is not valid comes first; a valid trial takes no line on the terminal. Each gate has its bound and its reason."""
    trials = {"good": gates(), "bad": gates(steal=0.3), "old": gates(io_pressure=None)}
    found = Summary(RunningSession(validity=trials).session(tmp_path))
    invalid, unknown = ["bad", "! invalid", "steal 0.3 x, at most 0.05"], ["old", "? no data", "no data: io_pressure"]
    rows = [[cell.text for cell in row] for row in found.validity_table.cells]
    assert rows == [invalid, unknown, ["good", "valid", ""]]
    said = [" invalid  bad: steal 0.3 x, at most 0.05", " no data  old: no data: io_pressure"]
    assert dict(found.terminal)["validity of the trials"] == ["3 trials: 1 valid, 1 invalid, 1 no data", *said]
    assert found.headline.startswith("1 trial is not known to be valid.")  # what it says may be the machine's
    gate_rows = {row[0].text: [cell.text for cell in row] for row in found.gates.cells}
    assert list(gate_rows) == [gate.name for gate in GATES]
    assert gate_rows["steal"][1:3] == ["0.05 x", "yes"]
    assert gate_rows["settle"][2] == "no, it is shown"
