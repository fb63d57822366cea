"""The verdict table: everything escaped, one row for each verdict, numbers for people."""

from __future__ import annotations

import math
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import number_format
from lab.report import tables

VERDICT = {
    "experiment": "1 signal",
    "objective": "reaction",
    "measured": 71.234,
    "operator": "<",
    "bound": 90.0,
    "unit": "s",
    "verdict": "held",
    "why": "fast enough",
    "note": "",
    "trials": ["a1"],
}
verdicts = st.fixed_dictionaries(
    {
        "experiment": st.text(max_size=20),
        "objective": st.text(max_size=20),
        "measured": st.none() | st.floats(allow_nan=True),
        "operator": st.sampled_from(["<", "<=", "==", ">=", ">"]),
        "bound": st.floats(-1e12, 1e12),
        "why": st.text(max_size=20),
        "note": st.text(max_size=20),
        "unit": st.text(max_size=5),
        "verdict": st.sampled_from(["held", "breached", "no data", "invalid"]),
        "trials": st.lists(st.text(max_size=5), max_size=3),
    }
)


class Tags(HTMLParser):
    """Collects the tags a browser would see, and the cells' text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.cells: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        """Note a tag; a cell starts a new text."""
        self.tags.append(tag)
        if tag == "td":
            self.cells.append("")

    def handle_data(self, data: str) -> None:
        """Add to the open cell."""
        if self.cells and self.tags[-1] == "td":
            self.cells[-1] += data


@given(st.lists(verdicts, max_size=4))
def test_no_text_becomes_a_tag(rows: list[dict[str, Any]]) -> None:
    """Whatever the texts hold, the table has exactly its own tags and the texts come back."""
    seen = Tags()
    seen.feed(tables.verdict_table(rows).html)
    seen.close()
    assert set(seen.tags) <= {"style", "table", "thead", "tbody", "tr", "th", "td"}
    assert seen.tags.count("tr") == len(rows) + 1
    assert seen.tags.count("td") == len(rows) * len(tables.HEAD)
    assert [cell.replace("\r", "\n") for cell in seen.cells[tables.HEAD.index("quantity") :: len(tables.HEAD)]] == [
        row["objective"].replace("\r", "\n") for row in rows
    ]


@given(st.lists(verdicts, max_size=4))
def test_markdown_keeps_one_line_and_its_columns(rows: list[dict[str, Any]]) -> None:
    """No text adds a line, a column or a tag."""
    lines = tables.verdict_table(rows).markdown.split("\n")[:-1]
    assert len(lines) == len(rows) + 2
    for line in lines[2:]:
        unescaped = line.replace("\\\\", "").replace("\\|", "")
        assert unescaped.count("|") == len(tables.HEAD) + 1
        assert "<" not in line


def test_a_status_is_a_word_not_only_a_colour() -> None:
    """Held, breached and no data are written out, and a measure that is missing says so."""
    page = tables.verdict_table([VERDICT, VERDICT | {"verdict": "no data", "measured": None}]).html
    assert '<td class="verdict held">✔ held</td>' in page
    assert '<td class="verdict no-data">? no data</td>' in page
    assert '<td class="number">n/a</td>' in page


def test_a_claim_says_where_its_bound_is_from_and_why_it_has_no_number() -> None:
    """The source has a column, and the reason stands beside the sentence; a row of an older session has no source."""
    row = VERDICT | {"source": "text 1", "note": "no pod", "verdict": "no data", "measured": None}
    page = tables.verdict_table([row]).html
    assert "<td>fast enough (no data: no pod)</td>" in page
    assert "<td>text 1</td>" in page
    half = VERDICT | {"note": "no id is judged"}
    assert "(but: no id is judged)</td>" in tables.verdict_table([half]).html
    older = tables.verdict_table([VERDICT]).html
    assert "<td>fast enough</td>" in older
    assert "<td>not stated</td>" in older


def test_a_claim_on_an_invalid_trial_keeps_its_number() -> None:
    """It is shown with the mark and the reason, in a colour that is neither a pass's nor a breach's."""
    page = tables.verdict_table([VERDICT | {"verdict": "invalid", "note": "steal 0.3", "kind": "invariant"}]).html
    assert '<td class="verdict invalid">! invalid</td>' in page
    assert "<td>fast enough (invalid: steal 0.3)</td>" in page
    assert "<td>invariant</td>" in page
    assert '<td class="number">71.2</td>' in page


def test_an_unknown_verdict_is_refused() -> None:
    """A new word must get a meaning before it is shown."""
    with pytest.raises(ValueError, match="'passed' is not one of held, breached, no data"):
        tables.verdict_table([VERDICT | {"verdict": "passed"}])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "n/a"),
        (math.nan, "n/a"),
        (math.inf, "∞"),
        (90.0, "90"),
        (71.234, "71.2"),
        (412.06, "412.1"),
        (0.05, "0.05"),
        (0.0, "0"),
        (0.00001234, "1.23e-05"),
        (20_000_000.0, "20,000,000"),
        (1234.5, "1,234"),
        (-0.25, "-0.25"),
    ],
)
def test_numbers_are_for_people(value: float | None, text: str) -> None:
    """Grouped thousands, no needless digits, small numbers kept."""
    assert number_format.number(value) == text


@pytest.mark.parametrize(
    ("value", "bound", "text"),
    [
        (1.097, 1.1, "1.097"),
        (1.1, 1.1, "1.1"),
        (0.0996, 0.1, "0.0996"),
        (0.09996, 0.1, "0.09996"),
        (1234.6, 1235.0, "1,234.6"),
        (3.0, 5.0, "3"),
        (None, 1.0, "n/a"),
    ],
)
def test_a_number_is_not_shown_as_the_bound_that_it_is_not(value: float | None, bound: float, text: str) -> None:
    """A breach by less than a digit would read as if it had been held, and the other way round."""
    assert number_format.beside(value, bound) == text
