"""The session's summary: a breach, a gap and a missing experiment are each in sight, and no text breaks the page."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.report import session
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
PAGES = [session.summary_markdown, session.summary_html]
pages = pytest.mark.parametrize("page", PAGES)
Page = Callable[..., str]
conclusions = st.fixed_dictionaries(dict.fromkeys(("experiment", "setting", "value", "because"), st.text(max_size=20)))


def plain(text: str) -> str:
    """A page's words without its markup."""
    return unescape(re.sub(r"\\(.)", r"\1", re.sub(r"<[^>]*>|\*\*", "", text)))


def section(text: str, heading: str) -> str:
    """What stands under one heading, without markup; empty if there is no such heading."""
    parts = re.split(r"^## |<h2>", text, flags=re.MULTILINE)
    return next((plain(part) for part in parts if part.startswith(heading)), "")


@pages
def test_a_breach_is_told_before_the_table(page: Page) -> None:
    """Under its own heading: who, how much, against what, and the note."""
    text = page([HELD, BREACHED], [], HEAD)
    assert "2 reaction, drain: 1.62 x, wanted < 1.5 x; two hot | ones" in section(text, "Breached")
    assert "reaction: 71.2" not in section(text, "Breached")
    assert text.index("Breached") < text.index("Claims")
    assert "✘ breached" in section(text, "Claims")
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
    assert ("all held" in session.tally(rows, expected)) is said


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
    assert "Nothing was judged." in section(text, "Claims")
    assert "No experiment of this session concluded" in section(text, "Recommended policy")
    assert "0 held, 0 breached, 0 no data; 1 of 1 experiments missing" in plain(text)


def test_missing_keeps_the_expected_order() -> None:
    """Each once, in the order asked for; a verdict without data is a verdict."""
    assert session.missing([HELD, NO_DATA], ["9 kafka", "4 ceiling", "1 signal", "9 kafka", "2 reaction"]) == [
        "9 kafka",
        "1 signal",
    ]


@pages
def test_the_head_is_one_line(page: Page) -> None:
    """Scale and machine stand above every number; what is not known says so."""
    wanted = "scale standard; runtime binary; machine 2 cores; commit unknown"
    assert [plain(line) for line in page([], [], HEAD).splitlines()].count(wanted) == 1


@pages
def test_the_policy_says_what_and_why(page: Page) -> None:
    """The setting, its value, the reason and the experiment, over the YAML as it would be applied."""
    policy = "# lag & more\nspec:\n  maxReplicaCount: 24   # <= P\n"
    text = section(page([HELD], [CONCLUSION], HEAD, policy_yaml=policy), "Recommended policy")
    for told in CONCLUSION.values():
        assert told in text
    assert policy.strip() in text


def test_markdown_is_what_a_reader_expects() -> None:
    """The table in full, as it is written."""
    table = session.summary_markdown([BREACHED | {"trials": ["a1", "b 2"]}], [CONCLUSION], HEAD).split("\n## ")
    assert table[2].splitlines()[2:] == [
        "| experiment | kind | claim | quantity | target | source | measured | verdict | records |",
        "|---|---|---|---|---|---|---:|---|---|",
        "| 2 reaction | claim | two hot \\| ones | drain | &lt; 1.5 x | not stated | 1.62 x | ✘ breached "
        "| [a1](records/a1/), [b 2](records/b%202/) |",
    ]
    assert table[3].splitlines()[4] == (
        "| maxReplicaCount | 24 | 24 surplus pods owned 0 partitions and added 0 messages/s | 4 ceiling |"
    )


@given(st.text(max_size=60) | st.text("`~ \n", max_size=20))
def test_no_yaml_ends_its_own_block(policy: str) -> None:
    """Whatever the YAML holds, the first line that could close the block is the one after it."""
    lines = session.summary_markdown([], [], {}, policy_yaml=policy).split("\n")
    begun = next(n for n, line in enumerate(lines) if line.endswith("```yaml"))
    fence = lines[begun].removesuffix("yaml")
    closing = next(n for n in range(begun + 1, len(lines)) if lines[n].strip().startswith(fence))
    assert "\n".join(lines[begun + 1 : closing]) == policy.rstrip()
    assert lines[closing + 1 :] == [""]


@given(st.lists(verdicts, min_size=1, max_size=4), st.lists(conclusions, min_size=1, max_size=3), st.text(max_size=9))
def test_no_text_breaks_the_markdown(rows: list[dict[str, Any]], concluded: list[dict[str, str]], name: str) -> None:
    """Any text in any cell: each row stays one line with its columns, and no line becomes a tag or a heading."""
    text = session.summary_markdown(rows, concluded, {name: name}, expected=[name])
    lines = [line for line in text.split("\n") if line.startswith("|")]
    tables = [len(session.CLAIMS)] * (len(rows) + 2) + [len(session.SETTINGS)] * (len(concluded) + 2)
    assert len(lines) == len(tables)
    for line, columns in zip(lines, tables, strict=True):
        assert line.replace("\\\\", "").replace("\\|", "").count("|") == columns + 1
    assert "<" not in text
    headings = re.findall(r"^#+ (.*)", text, flags=re.MULTILINE)
    assert set(headings) <= {session.TITLE, "Breached", "Invalid", "No data", "Missing", "Claims", "Recommended policy"}


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
    """Only the page's own tags and cells, and each record's link leads to its folder below records/."""
    seen = Links()
    seen.feed(session.summary_html(rows, concluded, {name: name}, policy_yaml=name, expected=[name]))
    seen.close()
    own = "html head meta title style body main h1 h2 p b ul li table thead tbody tr th td a pre"
    assert set(seen.tags) <= set(own.split())
    assert seen.tags.count("td") == len(rows) * len(session.CLAIMS) + len(concluded) * len(session.SETTINGS)
    trials = [trial for row in rows for trial in row["trials"]]
    assert [unquote(link) for link in seen.links] == [f"records/{trial}/" for trial in trials]
    assert all(link.count("/") == 2 for link in seen.links)


def test_the_name_of_a_record_is_text() -> None:
    """A record's id is escaped in what is read and quoted in what is followed."""
    page = session.summary_html([HELD | {"trials": ['<b>"/..']}], [], {})
    assert '<a href="records/%3Cb%3E%22%2F../">&lt;b&gt;&#34;/..</a>' in page


@pages
def test_an_unknown_verdict_is_refused(page: Page) -> None:
    """A new word must get a meaning before it is counted."""
    with pytest.raises(ValueError, match="'passed' is not one of held, breached, no data, invalid"):
        page([HELD | {"verdict": "passed"}], [], HEAD)
