"""What the pages that programs write have in common: headings, sections, and links to public threads."""

from __future__ import annotations

import re

_HEADING = re.compile(r"^(#+) (.+)$", re.MULTILINE)
_THREAD = re.compile(r"(?P<owner>[\w-]+)/(?P<name>[\w-]+)#(?P<number>\d+)")


def anchor(heading: str) -> str:
    """The anchor that GitHub gives to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def sections(text: str) -> dict[str, str]:
    """The sections of a page of Markdown by anchor: from its heading to the next one of its level or a higher one.

    The whole page has the anchor "".
    """
    found = [(match.start(), len(match[1]), match[2]) for match in _HEADING.finditer(text)]
    parts = {"": text}
    for number, (start, level, heading) in enumerate(found):
        end = next((later for later, other, _ in found[number + 1 :] if other <= level), len(text))
        parts.setdefault(anchor(heading), text[start:end])
    return parts


def link(name: str) -> tuple[str, str] | None:
    """Text and address of the public thread ``name`` ("kedacore/keda#4483"); None where it is no issue of GitHub."""
    found = _THREAD.fullmatch(name)
    if found is None:
        return None
    return f"{found['name']} {found['number']}", f"https://github.com/{found['owner']}/{found['name']}/issues/{found['number']}"


def thread(name: str) -> str:
    """``name`` as Markdown: a link where it is an issue."""
    found = link(name)
    return name if found is None else f"[{found[0]}]({found[1]})"
