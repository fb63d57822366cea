"""Tables: everything escaped, one row for each verdict, numbers for people."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from lab import number_format
from lab.report.tables import code, comparison_table
from lab.report.verdict_text import verdict_table
from tests.unit.report.sessions import BREACHED, INVALID, NO_DATA


def test_a_verdict_is_a_row_with_links_to_its_records() -> None:
    """A word and not only a colour, the claim with its remarks, the number, the target, the runs and the bound's source."""
    row = replace(BREACHED, note="but one", real_time="quick only", trials=["a1", "b 2"], source="text 1")
    line = verdict_table([row], "records/{}/".format).markdown.splitlines()[2]
    assert line == (
        "| ✘ breached | claim | two hot \\| ones (but one) (quick only) | drain | 1.62 x | &lt; 1.5 x | n = 1 | text 1 "
        "| 2 reaction | [a1](records/a1/), [b 2](records/b 2/) |"
    )
    page = verdict_table([INVALID, NO_DATA]).html
    for name, said in (("verdict invalid", "! invalid"), ("verdict no-data", "? no data"), ("number", "71.2 s")):
        assert f'<td class="{name}">{said}</td>' in page
    assert "<td>fast enough (no spike)</td>" in page
    assert "<td>not stated</td>" in page


def test_measures_of_two_trials_have_their_ratio() -> None:
    """What is missing is n/a, and has no ratio; nor have infinity and a negative base."""
    for values in ((math.inf, 1.0), (1.0, math.inf), (math.nan, 1.0), (-2.0, 1.0)):
        assert comparison_table({"x": dict(zip("ab", values, strict=True))}).cells[0][-1].text == "n/a"
    found = comparison_table({"peak lag": {"a": 200.0, "b": 50.0}, "flips": {"a": 0.0, "b": 3.0}, "drain (s)": {"a": 2.0}})
    assert found.markdown.splitlines()[0] == "| measure | a | b | second / first |"
    assert [[cell.text for cell in row] for row in found.cells] == [
        ["peak lag", "200", "50", "0.25"],
        ["flips", "0", "3", "n/a"],
        ["drain (s)", "2", "n/a", "n/a"],
    ]
    assert comparison_table({"peak": {"a": 1.0, "b": 2.0, "c": None}}).head == ["measure", "a", "b", "c"]
    with pytest.raises(ValueError, match="no measure"):
        comparison_table({})


def test_a_docstrings_backticks_are_code_and_its_text_is_text() -> None:
    """As a reader of the page expects them."""
    assert code("with ``--repeat`` <b>") == "with <code>--repeat</code> &lt;b&gt;"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "n/a"),
        (math.nan, "n/a"),
        (math.inf, "∞"),
        (71.234, "71.2"),
        (412.06, "412.1"),
        (0.0, "0"),
        (0.00001234, "1.23e-05"),
        (20_000_000.0, "20,000,000"),
        (1234.5, "1,234"),
    ],
)
def test_numbers_are_for_people(value: float | None, text: str) -> None:
    """Grouped thousands, no needless digits, small numbers kept."""
    assert number_format.number(value) == text


@pytest.mark.parametrize(
    ("value", "bound", "text"),
    [
        (1.097, 1.1, "1.097"),
        (0.09996, 0.1, "0.09996"),
        (1234.6, 1235.0, "1,234.6"),
        (None, 1.0, "n/a"),
    ],
)
def test_a_number_is_not_shown_as_the_bound_that_it_is_not(value: float | None, bound: float, text: str) -> None:
    """A breach by less than a digit would read as if it had been held, and the other way round."""
    assert number_format.beside(value, bound) == text
