"""No text breaks a summary: whatever a claim, a policy or a record is called, it is read as text."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

from hypothesis import given
from hypothesis import strategies as st

from lab.report import summary
from lab.report.tables import code
from tests.unit.report.sessions import HELD, html, markdown
from tests.unit.report.test_tables import Tags, verdicts

conclusions = st.fixed_dictionaries(dict.fromkeys(("experiment", "setting", "value", "because"), st.text(max_size=20)))


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


def test_the_number_of_an_experiment_is_text() -> None:
    """It begins a name that a user gives, and is read as text like the rest of it."""
    assert "0&lt;" in (text := markdown([HELD], [], {"0<": "0<"}, expected=["0<"]))
    assert "<" not in text


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


def test_a_docstrings_backticks_are_code_and_its_text_is_text() -> None:
    """As a reader of the page expects them."""
    assert code("with ``--repeat`` <b>") == "with <code>--repeat</code> &lt;b&gt;"
