"""The session's summary: its counts, its order, its policy and its head, the same on the page and in Markdown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lab.report import page as renderer
from lab.report.session import Case, Session
from lab.report.summary import Summary
from lab.report.tables import Table
from tests.unit.report.sessions import (
    BREACHED,
    CONCLUSION,
    HEAD,
    HELD,
    INVARIANT,
    NO_DATA,
    Page,
    content,
    html,
    markdown,
    pages,
    plain,
    section,
)


@pages
def test_each_kind_is_counted_by_itself(page: Page) -> None:
    """A control that shows an effect adds nothing to the claims that held; a bound without a source is counted."""
    control = HELD | {"kind": "control", "source": "a pilot"}
    text = plain(page([INVARIANT, INVARIANT, control, HELD, BREACHED | {"source": "text 1"}], [], HEAD))
    assert "invariants: 2 held, 0 breached, 0 no data, all held; controls: 1 held, 0 breached, 0 no data; " in text
    assert "claims: 1 held, 1 breached, 0 no data (1 without a source)" in text


@pytest.mark.parametrize(
    ("rows", "expected", "said"),
    [
        ([INVARIANT], [], True),
        ([INVARIANT, BREACHED], [], True),  # a claim that was breached is no invariant
        ([INVARIANT], ["5 brokers"], False),  # one that did not run did not hold
        ([INVARIANT, INVARIANT | {"verdict": "breached"}], [], False),
        ([INVARIANT, INVARIANT | {"verdict": "invalid"}], [], False),
        ([INVARIANT, INVARIANT | {"verdict": "no data", "measured": None}], [], False),
        ([HELD], [], False),
        ([], [], False),
    ],
)
def test_all_held_is_said_of_invariants_alone(rows: list[dict[str, Any]], expected: list[str], said: bool) -> None:
    """And only where every one of them was judged and held."""
    assert ("all held" in Summary(content(rows, expected=expected)).tally) is said


@pages
def test_an_empty_session_says_so(page: Page) -> None:
    """Nothing judged and nothing concluded is written out, not left blank."""
    text = page([], [], HEAD, expected=["2 reaction"])
    assert "1 experiment is missing. Nothing was judged." in plain(text)
    assert "Nothing was judged." in section(text, "All verdicts")
    assert "No experiment of this session concluded" in section(text, "Recommended policy")
    assert "0 held, 0 breached, 0 no data; 1 of 1 experiments missing" in plain(text)


def test_the_head_is_one_line() -> None:
    """Scale and machine stand above every number; what is not known says so. The page has each fact by its name."""
    wanted = "scale standard; runtime binary; machine 2 cores; commit unknown"
    assert [plain(line) for line in markdown([], [], HEAD).splitlines()].count(wanted) == 1
    for name, value in HEAD.items():
        assert f"<dt>{name}</dt><dd>{value or 'unknown'}</dd>" in html([], [], HEAD)


@pages
def test_the_policy_says_what_and_why(page: Page) -> None:
    """The setting, its value, the reason and the experiment, over the YAML as it would be applied."""
    policy = "# lag & more\nspec:\n  maxReplicaCount: 24   # <= P\n"
    text = section(page([HELD], [CONCLUSION], HEAD, policy_yaml=policy), "Recommended policy")
    for told in CONCLUSION.values():
        assert told in text
    assert policy.strip() in text


def test_markdown_is_what_a_reader_expects() -> None:
    """The tables in full, as they are written."""
    text = markdown([BREACHED | {"trials": ["a1", "b 2"]}], [CONCLUSION], HEAD)
    lines = {part.splitlines()[0]: part.splitlines()[2:] for part in text.split("\n## ")}
    assert lines["All verdicts"] == [
        "| experiment | kind | claim | quantity | target | source | measured | runs | verdict | records |",
        "|---|---|---|---|---|---|---:|---|---|---|",
        "| 2 reaction | claim | two hot \\| ones | drain | &lt; 1.5 x | not stated | 1.62 x | n = 1 | ✘ breached "
        "| [a1](records/a1/), [b 2](records/b%202/) |",
    ]
    assert lines["Recommended policy"][2] == (
        "| maxReplicaCount | 24 | 24 surplus pods owned 0 partitions and added 0 messages/s | 4 ceiling |"
    )


@pages
def test_an_unknown_verdict_is_refused(page: Page) -> None:
    """A new word must get a meaning before it is counted."""
    with pytest.raises(ValueError, match="'passed' is not one of held, breached, no data, invalid"):
        page([HELD | {"verdict": "passed"}], [], HEAD)


@pages
def test_repeats_show_their_interval_and_their_number(page: Page) -> None:
    """Median, interval with its confidence, runs, and in how many it held; a number of one run, or of all, says so."""
    runs = {"n": 6, "held": 5, "worst": 95.0, "low": 60.0, "high": 95.0, "confidence": 0.96875}
    rows = [HELD | {"repeats": runs}, BREACHED, BREACHED | {"runs": 6}, NO_DATA | {"runs": 5}]
    text = plain(page(rows, [], HEAD))
    assert "60 to 95 (97 %), n = 6, held in 5, worst 95" in text
    assert "n = 1" in text
    assert "one number of 6 runs" in text  # as the worst step of all of them
    assert "n = 5" in text  # that have no number


@pages
def test_experiments_come_in_their_natural_order(page: Page) -> None:
    """1, 2, 10, and then those with a name."""
    names = ["model", "10_lag", "2_reaction", "1_signal"]
    text = plain(page([HELD | {"experiment": name, "why": f"of {name}"} for name in names], [], HEAD))
    places = [text.index(f"of {name}") for name in ("1_signal", "2_reaction", "10_lag", "model")]
    assert places == sorted(places)


@pages
def test_a_note_on_a_verdict_and_a_further_table_are_shown(page: Page) -> None:
    """What a claim is worth at real time, and sections that a session adds, are in both."""
    session = Session()
    session.add_section("Two alike", Table(("pair", "difference"), [["a", "0.1"]]), "How far a side is from itself.")
    made = content([HELD | {"real_time": "quick only"}], [], HEAD)
    made["sections"] = session.content(Path())["sections"]
    text = plain((renderer.markdown if page is markdown else renderer.html)(Summary(made)))
    assert "n = 1 (quick only)" in text
    for shown in ("quick only", "Two alike", "How far a side is from itself.", "0.1"):
        assert shown in text


def test_the_question_is_the_modules_first_line() -> None:
    """Without the name of the experiment; the rest of the docstring is its note."""
    case = Case("x", "3_dip", heading="3 Rebalance dip", note="Experiment 3: what does a step cost?\n\nHypothesis. Much.")
    case.rows.append(HELD)
    made = Session(tests={"x": case}).content(Path())
    (one,) = Summary(made).experiments
    assert (one.number, one.heading, one.question, one.note) == (
        "3",
        "Rebalance dip",
        "What does a step cost?",
        ["Hypothesis. Much."],
    )
