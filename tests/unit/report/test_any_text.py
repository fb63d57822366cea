"""No text breaks what a session says: whatever words, numbers and YAML it is given, summary.md and the page keep their form."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote

from hypothesis import given
from hypothesis import strategies as st

from lab.report import summary
from lab.report.session import Conclusion, Head, Row
from lab.report.verdict_text import VERDICTS, verdict_table
from tests.unit.report.sessions import html, markdown

rows = st.builds(
    Row,
    objective=st.text(max_size=20),
    measured=st.none() | st.floats(allow_nan=True),
    operator=st.sampled_from(["<", "<=", "==", ">=", ">"]),
    bound=st.floats(-1e12, 1e12),
    unit=st.text(max_size=5),
    verdict=st.sampled_from(["held", "breached", "no data", "invalid"]),
    why=st.text(max_size=20),
    note=st.text(max_size=20),
    experiment=st.text(max_size=20),
    trials=st.lists(st.text(max_size=5), max_size=3),
)
conclusions = st.lists(st.builds(Conclusion, *[st.text(max_size=20)] * 4), min_size=1, max_size=3)


@given(st.text(max_size=60) | st.text("`~ \n", max_size=20))
def test_no_yaml_ends_its_own_block(policy: str) -> None:
    """Whatever the YAML holds, the first line that could close the block is the one after it."""
    lines = markdown([], policy=policy).split("\n")
    begun = next(n for n, line in enumerate(lines) if line.endswith("```yaml"))
    fence = lines[begun].removesuffix("yaml")
    closing = next(n for n in range(begun + 1, len(lines)) if lines[n].strip().startswith(fence))
    assert "\n".join(lines[begun + 1 : closing]) == policy.rstrip()


@given(st.lists(rows, min_size=1, max_size=4), conclusions, st.text(max_size=9))
def test_no_text_breaks_the_markdown(judged: list[Row], concluded: list[Conclusion], name: str) -> None:
    """Any text in any cell: each row stays one line with its columns, and no line becomes a tag or a heading."""
    text = markdown(judged, conclusions=concluded, head=Head(commit=name), expected=[name])
    lines = [line for line in text.split("\n") if line.startswith("|")]
    assert len(lines) == len(concluded) + 2
    assert all(line.replace("\\\\", "").replace("\\|", "").count("|") == len(summary.SETTINGS) + 1 for line in lines)
    assert "<" not in text
    known = {summary.TITLE, "Breached", "Invalid", "No data", "Missing", "Answers", "Recommended policy"}
    assert set(re.findall(r"^#+ (.*)", text, flags=re.MULTILINE)) <= known


class Seen(HTMLParser):
    """Collects the tags that a browser would see, the addresses of links, and the texts of cells."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.cells: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        """Note a tag and a link's address; a cell starts a new text."""
        self.tags.append(tag)
        self.links += [value for key, value in attrs if tag == "a" and key == "href"]
        self.cells += [""] if tag == "td" else []

    def handle_data(self, data: str) -> None:
        """Add to the open cell."""
        if self.cells and self.tags[-1] == "td":
            self.cells[-1] += data


OWN = "html head meta title style body header nav main section article div h1 h2 h3 p b i em small a pre span ul li dl dt dd"
OWN += " table caption thead tbody tfoot tr th td details summary"


@given(st.lists(rows, min_size=1, max_size=4), conclusions, st.text(max_size=9))
def test_no_text_breaks_the_page(judged: list[Row], concluded: list[Conclusion], name: str) -> None:
    """Only the page's own tags, and each record's link leads to its folder below records/; the others stay on the page."""
    seen = Seen()
    seen.feed(html(judged, conclusions=concluded, head=Head(commit=name), policy=name, expected=[name]))
    seen.close()
    assert set(seen.tags) <= set(OWN.split())
    links = [link for link in seen.links if not link.startswith("#")]
    assert {unquote(link) for link in links} == {f"records/{trial}/" for row in judged for trial in row.trials}
    assert all(link.count("/") == 2 for link in links)
    own, table = Seen(), verdict_table(judged)
    own.feed(table.html)
    own.close()
    assert set(own.tags) <= {"style", "table", "thead", "tbody", "tr", "th", "td"}
    texts = [cell.replace("\r", "\n") for cell in own.cells[VERDICTS.index("quantity") :: len(VERDICTS)]]
    assert texts == [row.objective.replace("\r", "\n") for row in judged]
