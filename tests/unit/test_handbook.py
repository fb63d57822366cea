"""The handbook and the page on scales: their numbers are the table's, and what an entry names exists."""

from __future__ import annotations

import re

import pytest

from lab import paths
from lab.__main__ import COMMANDS
from tests import handbook

PAGE = handbook.PAGE.read_text(encoding="utf-8")
ENTRIES = {text.split("\n", 1)[0]: text for text in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:] if "?\n" in text}
TABLE = handbook.verdicts()
OPTIONS = (paths.PROJECT / "docs" / "options.md").read_text(encoding="utf-8")

every_page = pytest.mark.parametrize("page", handbook.PAGES, ids=lambda page: page.name)
every_entry = pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)


@every_page
def test_every_number_is_that_of_the_table(page):
    """No number was changed in the page or in the table alone."""
    text = page.read_text(encoding="utf-8")
    assert handbook.filled(text, TABLE) == text, "python -m tests.handbook fills the numbers in"


@every_page
def test_each_number_that_a_page_names_is_shown(page):
    """A number that no sentence shows goes."""
    for entry in re.split(r"^## ", page.read_text(encoding="utf-8"), flags=re.MULTILINE):
        assert set(re.findall(r"^([\w-]+) = ", entry, re.MULTILINE)) == set(re.findall(r"<!--([\w-]+):", entry))


@every_page
def test_no_line_begins_with_a_number(page):
    """Markdown takes such a line for HTML, and shows its stars and links as they are."""
    lines = page.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if re.match(r"\s*(?:[-*>]\s+)?<!--[\w-]+:", line)] == []


@every_entry
def test_an_entry_has_its_form(entry):
    """An answer in bold, a number of the table, one picture at most, a cure, and what would refute it."""
    assert re.search(r"^\*\*.+?\*\*", entry, re.MULTILINE)
    assert "<!---->" in entry
    assert entry.count("](img/") <= 1
    assert "\n**Cure.** " in entry
    assert "\n**Refuted by** " in entry


@every_entry
def test_what_an_entry_names_is_there(entry):
    """Its sessions have verdicts, its tests and commands exist, and so do their options."""
    last = entry.strip().splitlines()[-1]
    sessions = set(re.findall(r"\d{4}-\d\d-\d\d-[\w-]+", entry))
    assert "evidence " in last
    assert sessions <= {row["session"] for row in TABLE}
    assert set(re.findall(r"^[\w-]+ = ([\w-]+) ", entry, re.MULTILINE)) <= set(last.split("evidence ")[1].split(", "))
    for command in re.findall(r"`((?:pytest|tox|elastic-lab) [^`]+)`", entry):
        assert [name for name in re.findall(r"tests/[\w/]+\.py", command) if not (paths.PROJECT / name).exists()] == []
        assert [option for option in re.findall(r"--[a-z-]+", command) if option not in OPTIONS] == []
        assert command.split()[0] != "elastic-lab" or command.split()[1] in COMMANDS


def test_a_picture_is_on_a_page():
    """docs/img holds no picture that no page shows, and 1.5 MB at most."""
    pages = [*paths.PROJECT.glob("*.md"), *(paths.PROJECT / "docs").rglob("*.md")]
    shown = "".join(page.read_text(encoding="utf-8") for page in pages)
    pictures = list((paths.PROJECT / "docs" / "img").iterdir())
    assert [picture.name for picture in pictures if f"img/{picture.name}" not in shown] == []
    assert sum(picture.stat().st_size for picture in pictures) <= 1_500_000


ROW = {"session": "a", "test": "test_x", "quantity": "flips", "claim": "it flaps", "n": "1", "held": "", "verdict": "breached"}
ROWS = [ROW | {"value": "0.25", "low": "", "bound": "2"}, ROW | {"value": "4", "low": "", "bound": "2"}]


def numbered(mark: str, source: str = "a | test_x | it flaps") -> str:
    """A page with one number."""
    return f"<!-- numbers\nit = {source}\n-->\n**{mark}**"


@pytest.mark.parametrize(
    ("mark", "text"),
    [("most", "4"), ("least:.0%", "25 %"), ("bound:.1f", "2.0"), ("verdict", "breached"), ("fell", "1"), ("held", "0")],
)
def test_a_number_is_filled_in(mark, text):
    """In its format, in place of whatever stood there."""
    assert handbook.filled(numbered(f"<!--it:{mark}-->17<!---->"), ROWS).endswith(f"**<!--it:{mark}-->{text}<!---->**")


@pytest.mark.parametrize(
    ("mark", "source", "words"),
    [
        ("<!--it:value-->4<!---->", "a | test_x | flips", "no one value"),
        ("<!--it:low-->4<!---->", "a | test_x | flips", "no one low"),
        ("<!--that:n-->1<!---->", "a | test_x | flips", "none of the entry's numbers"),
        ("", "a | test_y | flips", "is not one number"),
        ("", "a | flips", "three parts"),
    ],
)
def test_what_is_no_one_number_is_refused(mark, source, words):
    """Rows that differ, an empty column, a name or a row that is not there."""
    with pytest.raises(ValueError, match=words):
        handbook.filled(numbered(mark, source), ROWS)
