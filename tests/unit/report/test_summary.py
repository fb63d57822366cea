"""The session's summary: a breach, a gap and a missing experiment are each in sight, and no text breaks the page."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.report import page as renderer
from lab.report import summary
from lab.report.session import Case, Session
from lab.report.summary import Summary
from lab.report.tables import Table, code
from tests.unit.report.test_tables import VERDICT, Tags, verdicts

HELD = VERDICT | {"experiment": "2 reaction"}
BREACHED = HELD | {
    "objective": "drain",
    "measured": 1.62,
    "bound": 1.5,
    "unit": "x",
    "verdict": "breached",
    "why": "two hot | ones",
}
NO_DATA = HELD | {"experiment": "4 ceiling", "objective": "idle", "measured": None, "verdict": "no data", "note": "no spike"}
CONCLUSION = {
    "experiment": "4 ceiling",
    "setting": "maxReplicaCount",
    "value": "24",
    "because": "24 surplus pods owned 0 partitions and added 0 messages/s",
}
HEAD = {"scale": "standard", "runtime": "binary", "machine": "2 cores", "commit": None}
Page = Callable[..., str]


def content(
    rows: Sequence[dict[str, Any]],
    concluded: Sequence[dict[str, str]] = (),
    head: Mapping[str, Any] | None = None,
    *,
    expected: Sequence[str] = (),
    policy_yaml: str | None = None,
    outcomes: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The content of a session whose experiments have one test each, which judged these rows."""
    tests: dict[str, Case] = {}
    for row in rows:
        name = row["experiment"]
        tests.setdefault(name, Case(name, name, outcome="passed")).rows.append(row)
    for name, outcome in (outcomes or {}).items():
        test = tests.setdefault(name, Case(name, name))
        test.outcome, test.remark = outcome, f"why {name} {outcome}"
    made = Session(tests=tests, conclusions=list(concluded), expected=expected).content(Path())
    return made | {"head": head or {}, "policy": policy_yaml}


def markdown(*given: Any, **named: Any) -> str:
    """summary.md of :func:`content`."""
    return renderer.markdown(Summary(content(*given, **named)))


def html(*given: Any, **named: Any) -> str:
    """The session's page of :func:`content`."""
    return renderer.html(Summary(content(*given, **named)))


PAGES = [markdown, html]
pages = pytest.mark.parametrize("page", PAGES)
conclusions = st.fixed_dictionaries(dict.fromkeys(("experiment", "setting", "value", "because"), st.text(max_size=20)))


def plain(text: str) -> str:
    """A page's words without its markup."""
    return unescape(re.sub(r"\\(.)", r"\1", re.sub(r"<[^>]*>|\*\*", "", text)))


def section(text: str, heading: str) -> str:
    """What stands under one heading, without markup; empty if there is no such heading."""
    parts = re.split(r"^## |<h2>|<nav", text, flags=re.MULTILINE)
    return next((plain(part) for part in parts if part.startswith(heading)), "")


@pages
def test_a_breach_is_told_before_the_table(page: Page) -> None:
    """Under its own heading: who, how much, against what, and the note."""
    text = page([HELD, BREACHED], [], HEAD)
    assert "2 reaction, drain: 1.62 x, wanted < 1.5 x; two hot | ones" in section(text, "Breached")
    assert "reaction: 71.2" not in section(text, "Breached")
    assert text.index("Breached") < text.index("All verdicts")
    assert "✘ breached" in section(text, "All verdicts")
    assert "1 held, 1 breached, 0 no data" in plain(text)


@pages
def test_no_data_is_told_and_is_no_pass(page: Page) -> None:
    """What could not be measured has its own heading with the reason, and is not counted as held."""
    text = page([HELD, NO_DATA], [], HEAD)
    assert "4 ceiling, idle: n/a, wanted < 90 s; fast enough (no data: no spike)" in section(text, "No data")
    assert "1 held, 0 breached, 1 no data" in plain(text)
    assert section(text, "Breached") == section(text, "Missing") == ""


INVALID = HELD | {"experiment": "3 dip", "objective": "dip", "verdict": "invalid", "note": "steal 0.3"}
INVARIANT = HELD | {"kind": "invariant", "source": "text 1"}


@pages
def test_an_invalid_trial_is_told_and_is_neither_a_pass_nor_a_breach(page: Page) -> None:
    """Its claims have their own heading with the reason, and their own count."""
    text = page([HELD, INVALID], [], HEAD)
    assert "3 dip, dip: 71.2 s, wanted < 90 s; fast enough (invalid: steal 0.3)" in section(text, "Invalid")
    assert section(text, "Breached") == ""
    assert "1 held, 0 breached, 0 no data, 1 invalid" in plain(text)


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
def test_a_missing_experiment_is_told(page: Page) -> None:
    """An experiment that was expected and judged nothing is named and counted; one that was judged is not."""
    text = page([HELD], [], HEAD, expected=["2 reaction", "5 brokers"])
    assert "5 brokers: no verdict at all" in section(text, "Missing")
    assert "2 reaction" not in section(text, "Missing")
    assert "1 of 2 experiments missing" in plain(text)


@pages
def test_all_held_has_nothing_to_tell(page: Page) -> None:
    """No empty heading where nothing went wrong."""
    text = page([HELD], [], HEAD, expected=["2 reaction"])
    assert [section(text, name) for name in ("Breached", "No data", "Missing")] == ["", "", ""]
    assert "missing" not in text.lower()


@pages
def test_an_empty_session_says_so(page: Page) -> None:
    """Nothing judged and nothing concluded is written out, not left blank."""
    text = page([], [], HEAD, expected=["2 reaction"])
    assert "1 experiment is missing. Nothing was judged." in plain(text)
    assert "Nothing was judged." in section(text, "All verdicts")
    assert "No experiment of this session concluded" in section(text, "Recommended policy")
    assert "0 held, 0 breached, 0 no data; 1 of 1 experiments missing" in plain(text)


def test_missing_keeps_the_expected_order() -> None:
    """Each once, in the order asked for; a verdict without data is a verdict."""
    expected = ["9 kafka", "4 ceiling", "1 signal", "9 kafka", "2 reaction"]
    assert Summary(content([HELD, NO_DATA], expected=expected)).missing == ["9 kafka", "1 signal"]


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


@given(st.text(max_size=60) | st.text("`~ \n", max_size=20))
def test_no_yaml_ends_its_own_block(policy: str) -> None:
    """Whatever the YAML holds, the first line that could close the block is the one after it."""
    lines = markdown([], [], {}, policy_yaml=policy).split("\n")
    begun = next(n for n, line in enumerate(lines) if line.endswith("```yaml"))
    fence = lines[begun].removesuffix("yaml")
    closing = next(n for n in range(begun + 1, len(lines)) if lines[n].strip().startswith(fence))
    assert "\n".join(lines[begun + 1 : closing]) == policy.rstrip()


@given(st.lists(verdicts, min_size=1, max_size=4), st.lists(conclusions, min_size=1, max_size=3), st.text(max_size=9))
def test_no_text_breaks_the_markdown(rows: list[dict[str, Any]], concluded: list[dict[str, str]], name: str) -> None:
    """Any text in any cell: each row stays one line with its columns, and no line becomes a tag or a heading."""
    text = markdown(rows, concluded, {name: name}, expected=[name])
    lines = [line for line in text.split("\n") if line.startswith("|")]
    tables = [len(summary.SETTINGS)] * (len(concluded) + 2) + [len(summary.CLAIMS)] * (len(rows) + 2)
    assert len(lines) == len(tables)
    for line, columns in zip(lines, tables, strict=True):
        assert line.replace("\\\\", "").replace("\\|", "").count("|") == columns + 1
    assert "<" not in text
    known = {summary.TITLE, *["Breached", "Invalid", "No data", "Missing", "Answers", "All verdicts", "Recommended policy"]}
    assert set(re.findall(r"^#+ (.*)", text, flags=re.MULTILINE)) <= known


class Links(Tags):
    """Collects the links too."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        """Note a link's address."""
        super().handle_starttag(tag, attrs)
        self.links += [value for key, value in attrs if tag == "a" and key == "href"]


@given(st.lists(verdicts, min_size=1, max_size=4), st.lists(conclusions, min_size=1, max_size=3), st.text(max_size=9))
def test_no_text_breaks_the_page(rows: list[dict[str, Any]], concluded: list[dict[str, str]], name: str) -> None:
    """Only the page's own tags, and each record's link leads to its folder below records/; the others stay on the page."""
    seen = Links()
    seen.feed(html(rows, concluded, {name: name}, policy_yaml=name, expected=[name]))
    seen.close()
    own = (
        "html head meta title style body header nav main section article div h1 h2 h3 p b i em small a pre span ul li dl dt dd"
    )
    own += " table caption thead tbody tfoot tr th td details summary"
    assert set(seen.tags) <= set(own.split())
    trials = sorted(f"records/{trial}/" for row in rows for trial in row["trials"])
    links = [unquote(link) for link in seen.links if not link.startswith(("#", "report/", "timelines"))]
    assert set(links) == set(trials)
    assert len(links) >= len(trials)
    assert all(quoted.count("/") == 2 for quoted in seen.links if quoted.startswith("records/"))


def test_the_name_of_a_record_is_text() -> None:
    """A record's id is escaped in what is read and quoted in what is followed."""
    page = html([HELD | {"trials": ['<b>"/..']}], [], {})
    assert '<a href="records/%3Cb%3E%22%2F../">&lt;b&gt;&#34;/..</a>' in page


@pages
def test_an_unknown_verdict_is_refused(page: Page) -> None:
    """A new word must get a meaning before it is counted."""
    with pytest.raises(ValueError, match="'passed' is not one of held, breached, no data, invalid"):
        page([HELD | {"verdict": "passed"}], [], HEAD)


@pages
def test_a_broken_test_is_told_and_nothing_is_praised_beside_it(page: Page) -> None:
    """In the headline, with its reason, and in the counts; that all held is not said."""
    text = plain(page([INVARIANT], [], HEAD, outcomes={"5 brokers": "broken"}))
    assert "1 test is broken." in text
    assert "why 5 brokers broken" in text
    assert "tests: 1 broken" in text
    assert "all held" not in text
    assert summary.ALL_WELL not in text


@pages
def test_a_test_that_fails_beside_its_claims_is_told(page: Page) -> None:
    """A plain assertion is no claim, and no verdict shows it; one that failed by a breach is told by the breach alone."""
    text = plain(page([INVARIANT, BREACHED], [], HEAD, outcomes={"2 reaction": "failed", "5 brokers": "failed"}))
    assert "1 claim was breached. 1 test failed beside its claims." in text
    assert "why 5 brokers failed" in text
    assert "why 2 reaction failed" not in text


@pages
def test_tests_that_invalid_trials_broke_are_counted_as_such(page: Page) -> None:
    """They are broken for whoever counts tests; the reason is the trial's."""
    text = plain(page([INVALID], [], HEAD, outcomes={"3 dip": "broken"}))
    assert "1 test is broken, 1 of them by invalid trials. 1 verdict is invalid." in text


@pages
def test_repeats_show_their_interval_and_their_number(page: Page) -> None:
    """Median, interval with its confidence, runs, and in how many it held; a single run says that it is one."""
    runs = {"n": 6, "held": 5, "worst": 95.0, "low": 60.0, "high": 95.0, "confidence": 0.96875}
    text = plain(page([HELD | {"repeats": runs}, BREACHED], [], HEAD))
    assert "60 to 95 (97 %), n = 6, held in 5" in text
    assert "n = 1" in text


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
    made = content([HELD | {"real_time": "not shown to hold"}], [], HEAD)
    made["sections"] = session.content(Path())["sections"]
    text = plain((renderer.markdown if page is markdown else renderer.html)(Summary(made)))
    assert "n = 1 (Real time: not shown to hold)" in text
    for shown in ("not shown to hold", "Two alike", "How far a side is from itself.", "0.1"):
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


@pages
def test_trials_that_are_not_known_to_be_valid_are_told(page: Page) -> None:
    """What they say may be the machine's: nothing is well before that is known."""
    made = content([INVARIANT], [], HEAD)
    made["validity"] = [{"trial": "a1", "word": "no data", "remark": "no data: CPU time that the hypervisor took"}]
    text = plain((renderer.markdown if page is markdown else renderer.html)(Summary(made)))
    assert "1 trial is not known to be valid." in text
    assert summary.ALL_WELL not in text


def test_a_docstrings_backticks_are_code_and_its_text_is_text() -> None:
    """As a reader of the page expects them."""
    assert code("with ``--repeat`` <b>") == "with <code>--repeat</code> &lt;b&gt;"
