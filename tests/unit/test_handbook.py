"""The handbook and the page on scales: their numbers are the table's, and what an entry names exists.

The marks in the table of verdicts are those of today, and what a quantity's name alone tells.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import pytest

from lab import paths
from lab.__main__ import COMMANDS
from lab.archive import table
from lab.archive.lock import FOLDER
from lab.measure.outcome import committed
from tests import handbook, marks

PAGE = handbook.PAGE.read_text(encoding="utf-8")
ENTRIES = {text.split("\n", 1)[0]: text for text in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:] if "?\n" in text}


@cache
def marked():
    """The rows of the committed table, with their marks."""
    return table.read(paths.PROJECT / FOLDER)


@cache
def flips():
    """A claim of quick that real time refuted."""
    return next(row for row in marked() if row.claim == "to tell busy pods from idle ones ends the flapping")


ALONE, SIZE = "quick only; not validated at real time", "quick only; size not validated at real time"


@pytest.mark.parametrize("page", handbook.PAGES, ids=lambda page: page.name)
def test_every_number_is_that_of_the_table(page):
    """No number was changed in the page or in the table alone."""
    text = page.read_text(encoding="utf-8")
    assert handbook.filled(text, handbook.verdicts()) == text, "python -m tests.handbook fills the numbers in"


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_an_entry_has_its_form_and_names_what_is_there(entry, pytestconfig):
    """An answer in bold with a number of the table, one picture at most, a cure, and what would refute it.

    The sessions of its numbers stand in its last line, and its commands name tests, options and markers that exist.
    """
    assert re.search(r"^\*\*.+\*\*.*<!---->", entry, re.MULTILINE)
    assert entry.count("](img/") <= 1
    assert "\n**Cure.** " in entry
    assert "\n**Refuted by** " in entry
    last = entry.strip().splitlines()[-1]
    sessions = set(re.findall(r"^[\w-]+ = (\S+) \|", entry, re.MULTILINE))
    assert set(last.split("evidence ")[1].split(", ")) == sessions <= {row["session"] for row in handbook.verdicts()}
    options = (paths.PROJECT / "docs" / "options.md").read_text(encoding="utf-8")
    markers = {marker.split(":")[0] for marker in pytestconfig.getini("markers")}
    for program, rest in re.findall(r"`(pytest|elastic-lab) ([^`]+)`", last):
        files = [paths.PROJECT / name for name in re.findall(r"tests/[\w/]+\.py", rest)]
        texts = "".join(file.read_text(encoding="utf-8") for file in files)
        assert all(option in options for option in re.findall(r"--[a-z-]+", rest))
        assert set(re.findall(r"-m (\w+)", rest)) <= markers
        assert not files or all(word in texts for word in re.findall(r"-k (\w+)", rest))
        assert program == "pytest" or rest.split()[0] in COMMANDS


@pytest.mark.parametrize("section", re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:], ids=lambda text: text.split("\n", 1)[0])
def test_a_number_that_is_marked_stands_with_its_scale(section):
    """Whoever reads a number that is not shown to be that of real time reads at which scale it was measured."""
    sources = re.findall(r"^[\w-]+ = (\S+ \| .+)$", section, re.MULTILINE)
    scales = {
        row["scale"] for source in sources for row in handbook.rows_of(source, handbook.verdicts()) if row.get("real_time")
    }
    assert [scale for scale in scales if not re.search(rf"\b{scale}\b", section.partition("-->")[2])] == []


def test_a_picture_is_on_a_page():
    """docs/img holds no picture that no page shows, and 1.5 MB at most."""
    pages = [*paths.PROJECT.glob("*.md"), *(paths.PROJECT / "docs").rglob("*.md")]
    shown = "".join(page.read_text(encoding="utf-8") for page in pages)
    pictures = list((paths.PROJECT / "docs" / "img").iterdir())
    assert [picture.name for picture in pictures if f"img/{picture.name}" not in shown] == []
    assert sum(picture.stat().st_size for picture in pictures) <= 1_500_000


ROW = {"session": "a", "test": "test_x", "quantity": "flips", "claim": "it flaps", "n": "1", "held": "", "verdict": "breached"}
ROWS = [ROW | {"value": value, "low": "", "bound": "2"} for value in ("0.25", "4")]


def numbered(mark: str, what: str = "it flaps") -> str:
    """A page with one number."""
    return f"<!-- numbers\nit = a | test_x | {what}\n-->\n**{mark}**"


@pytest.mark.parametrize(
    ("mark", "text"),
    [("most", "4"), ("least:.0%", "25 %"), ("bound:.1f", "2.0"), ("verdict", "breached"), ("fell", "1"), ("held", "0")],
)
def test_a_number_is_filled_in(mark, text):
    """In its format, in place of whatever stood there."""
    assert handbook.filled(numbered(f"<!--it:{mark}-->17<!---->"), ROWS).endswith(f"**<!--it:{mark}-->{text}<!---->**")


@pytest.mark.parametrize(
    ("page", "words"),
    [
        (numbered("<!--it:value-->4<!---->"), "no one value"),
        (numbered("<!--it:low-->4<!---->"), "no one low"),
        (numbered("<!--that:n-->1<!---->"), r"differ: \['it', 'that'\]"),
        (numbered("", "dips"), "is not one number"),
        (numbered("\n- <!--it:n-->1<!---->"), "for HTML"),
    ],
)
def test_what_is_no_one_number_is_refused(page, words):
    """Rows that differ, an empty column, a name or a row that is not there, and a line that Markdown would not show."""
    with pytest.raises(ValueError, match=words):
        handbook.filled(page, ROWS)


def test_the_tables_marks_are_those_of_today() -> None:
    """``python -m tests.marks`` writes them: after an outcome of scales, or a claim that real time refuted."""
    assert [row for row in marked() if row.real_time != marks.mark(row)] == []
    assert {flips().scale, flips().real_time} == {"quick", "quick only; refuted at real time: 4 flips (2026-11-24-slow-start)"}


def test_real_time_refutes_the_claim_of_one_test():
    """Another test's claim of the same sentence, on other balancers, keeps its own mark."""
    soon = "a metadata refresh of a second finds the new partitions soon"
    rows = [row for row in marked() if row.claim == soon and "test_7_repartition" in row.test and row.scale != "real"]
    found = {(row.test.rpartition("::")[2].partition("[")[0], marks.mark(row)) for row in rows}
    refuted = "quick only; refuted at real time: 32.6 s (2026-11-30-partitions-at-real-time)"
    assert found == {
        ("test_new_partitions_are_consumed_whole", refuted),
        ("test_a_cure_for_added_partitions", "medium only; not validated at real time"),
    }


def test_every_name_in_the_outcome_of_scales_is_known() -> None:
    """A quantity that scales are compared by has the measures of all rows of that name."""
    for row in committed().rows:
        assert row.measure in marks.origins()[row.name].measures


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"quantity": "drain time"}, ALONE),
        ({"quantity": "one over another"}, ALONE),
        ({"quantity": "one over another", "real_time": SIZE}, SIZE),
        ({"quantity": "one over another", "scale": "standard", "real_time": SIZE}, "standard only; not validated at real time"),
        ({"quantity": "drain time", "real_time": SIZE}, ALONE),
        ({"quantity": "replicas above the floor at baseline", "real_time": ALONE}, ""),
        ({"quantity": "one over another", "kind": "control", "real_time": SIZE}, ""),
        ({"quantity": "one over another", "scale": "real", "real_time": SIZE}, ""),
        ({"quantity": "one over another", "value": "", "real_time": SIZE}, ""),
    ],
)
def test_a_mark_is_of_class_quantity_and_scale(changed: dict[str, str], words: str) -> None:
    """The session's own word stays where the name is no measure's, and the scale the row's; what is faithful loses its mark."""
    assert marks.mark(replace(flips(), claim="another", **changed)) == words
