"""A document written once and rendered twice: as one HTML page that fetches nothing, and as GitHub's Markdown. Pure."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TypeAlias

from lab.report.build import closed
from lab.report.summary import PAGE
from lab.report.tables import html_table, markdown, markdown_table


@dataclass(frozen=True)
class Heading:
    """A heading of ``level`` 1 to 6; ``anchor`` is what a :class:`Contents` of the page links to."""

    level: int
    text: str
    anchor: str = ""


@dataclass(frozen=True)
class Text:
    """A paragraph; ``strong`` is what it begins with."""

    text: str
    strong: str = ""


@dataclass(frozen=True)
class Facts:
    """Sentences as a list."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A table of texts; the columns ``numbers`` are set to the right. It may be wider than the page, then it scrolls."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Picture:
    """A PNG image, ``alt`` in words; Markdown has the words only."""

    png: bytes
    alt: str


@dataclass(frozen=True)
class Contents:
    """Links to the headings with an anchor, (anchor, text); Markdown leaves it out."""

    links: tuple[tuple[str, str], ...]


Block: TypeAlias = Heading | Text | Facts | Table | Picture | Contents

STYLE = """<style>
h2 { border-top: 1px solid #ccc; padding-top: 18px; } h3 { font-size: 15px; margin: 20px 0 4px; }
ul { margin: 4px 0; padding-left: 22px; }
img { max-width: 100%; height: auto; display: block; margin: 14px 0; }
.wide { overflow-x: auto; margin: 10px 0 14px; }
.wide td:first-child { min-width: 150px; }
@media print { body { max-width: none; } h2, h3 { break-after: avoid; } img, tr { break-inside: avoid; } }
</style>
"""


def html(title: str, blocks: Iterable[Block]) -> str:
    """The page; every text in it is escaped, images are inside, and its policy lets a browser fetch nothing from elsewhere."""
    return closed(PAGE.format(title=escape(title), body=STYLE + "".join(f"{_html(block)}\n" for block in blocks)))


def text(blocks: Iterable[Block]) -> str:
    """The Markdown; every text in it is escaped."""
    parts = [part for block in blocks if (part := _markdown(block))]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _html(block: Block) -> str:
    match block:
        case Heading(level, words, anchor):
            name = f' id="{escape(anchor)}"' if anchor else ""
            return f"<h{level}{name}>{escape(words)}</h{level}>"
        case Text(words, strong):
            return f"<p>{_strong(strong, escape, '<b>{}</b> ')}{escape(words)}".rstrip() + "</p>"
        case Facts(sentences):
            return f"<ul>{''.join(f'<li>{escape(item)}</li>' for item in sentences)}</ul>"
        case Table(head, rows, numbers):
            cells = ([_cell("td", cell, n in numbers) for n, cell in enumerate(row)] for row in rows)
            top = [_cell("th", cell, n in numbers) for n, cell in enumerate(head)]
            return f'<div class="wide">{html_table(top, cells)}</div>'
        case Picture(png, alt):
            return f'<img alt="{escape(alt)}" src="data:image/png;base64,{base64.b64encode(png).decode()}">'
        case Contents(links):
            items = "".join(f'<li><a href="#{escape(to)}">{escape(words)}</a></li>' for to, words in links)
            return f"<ul>{items}</ul>"


def _markdown(block: Block) -> str:
    match block:
        case Heading(level, words, _):
            return f"{'#' * level} {markdown(words)}"
        case Text(words, strong):
            return f"{_strong(strong, markdown, '**{}** ')}{markdown(words)}".rstrip()
        case Facts(items):
            return "\n".join(f"- {markdown(item)}" for item in items)
        case Table(head, rows, numbers):
            return markdown_table(_safe(head), map(_safe, rows), numbers=numbers)
        case _:
            return ""


def _strong(words: str, safe: Callable[[str], str], form: str) -> str:
    return form.format(safe(words)) if words else ""


def _safe(cells: Sequence[str]) -> list[str]:
    return [markdown(cell) for cell in cells]


def _cell(tag: str, words: str, right: bool) -> str:
    return f'<{tag} class="number">{escape(words)}</{tag}>' if right else f"<{tag}>{escape(words)}</{tag}>"
