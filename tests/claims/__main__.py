"""``python -m tests.claims``: every claim of the texts, with its verdict, its number and its command, as Markdown."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from lab import paths
from lab.errors import BAD_INPUT, InputError
from lab.report.tables import Cell, Table
from tests import pages
from tests.claims import register
from tests.claims.register import HELD, MEASURED, NON_GOAL, NOT_BUILT, OPEN, PARTLY, REFUTED, TEST, Claim, Text, texts

CLAIMS = paths.PROJECT / "docs" / "claims"
PAGE = """# Claims: each sentence of the texts, and its verdict

{refuted} of {claims} claims are refuted, {partly} hold in part, {held} held, and {open} are not yet judged.
Of those {open}, {unbuilt} are not built, {never} are non-goals, and {tested} have a test or a command and no number.

{counts}
"""
SECTION = """
## {verdict}
"""
PART = """
### {heading}
{title}

{table}"""
HEAD = ("claim", "section", "the text says", "measured", "session", "by", "run it again")
OPEN_HEAD = ("claim", "section", "the text says", "missing", "by", "run it again")


def page(found: Sequence[Text]) -> str:
    """The page of the texts ``found`` as Markdown."""
    claims = [claim for text in found for claim in text.claims]
    verdicts, ways = register.by_verdict(claims), register.by_way(claims)
    start = PAGE.format(
        claims=len(claims),
        refuted=verdicts[REFUTED],
        partly=verdicts[PARTLY],
        open=verdicts[OPEN],
        held=verdicts[HELD],
        tested=ways[TEST] + ways[MEASURED],
        unbuilt=ways[NOT_BUILT],
        never=ways[NON_GOAL],
        counts=_counts(found).markdown,
    )
    return start.rstrip("\n") + "\n" + "".join(_section(verdict, found) for verdict in register.VERDICTS)


def _counts(found: Sequence[Text]) -> Table:
    head = ("", "claims", *register.VERDICTS)
    rows = [_count(f"{text.name}: {text.title}", text.claims, text.name) for text in found]
    rows.append(_count("all", [claim for text in found for claim in text.claims]))
    return Table(head, rows, frozenset(range(1, len(head))))


def _count(label: str, claims: Sequence[Claim], name: str = "") -> list[str | Cell]:
    """A row of the table of counts; a count leads to the heading of the text ``name``, if it is given."""
    row: list[str | Cell] = [label, str(len(claims))]
    for verdict, number in register.by_verdict(claims).items():
        heading = f"#{pages.anchor(_heading(verdict, name))}"
        row.append(Cell(links=((str(number), heading),)) if name and number else str(number))
    return row


def _heading(verdict: str, name: str) -> str:
    return f"{verdict.capitalize()}: {name}"


def _section(verdict: str, found: Sequence[Text]) -> str:
    parts = [(text, [claim for claim in text.claims if claim.verdict == verdict]) for text in found]
    head = OPEN_HEAD if verdict == OPEN else HEAD
    return SECTION.format(verdict=verdict.capitalize()) + "".join(
        PART.format(heading=_heading(verdict, text.name), title=text.title, table=Table(head, list(map(_row, claims))).markdown)
        for text, claims in parts
        if claims
    )


def _row(claim: Claim) -> list[str | Cell]:
    thread = pages.link(claim.section)
    section = Cell(links=(thread,)) if thread else Cell(claim.section)
    return [Cell(claim.id, code=True), section, f"“{claim.quote}”", *_found(claim), claim.way, Cell(claim.rerun, code=True)]


def _found(claim: Claim) -> list[Cell]:
    """What was measured and in which sessions; for a claim that is not yet judged what is missing, or why it is a non-goal."""
    if claim.verdict == OPEN:
        return [Cell(claim.missing or claim.non_goal)]
    lacking = f" Missing: {claim.missing}" if claim.missing else ""
    return [Cell(claim.number + lacking), Cell(", ".join(claim.sessions))]


def whole() -> str:
    """The page of the committed texts. Raises :class:`InputError` for a row that can't be used."""
    found = texts(CLAIMS)
    for text in found:
        register.check(text, paths.PROJECT)
    return page(found)


def main() -> int:
    """Print the page; a row that can't be used is one line on stderr and exit code 2."""
    try:
        sys.stdout.write(whole())
    except InputError as error:
        print(f"claims: {error}", file=sys.stderr)
        return BAD_INPUT
    return 0


if __name__ == "__main__":
    sys.exit(main())
