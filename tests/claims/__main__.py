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
HEADING = "{}: {}"
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
    """A row for each text, whose counts lead to its headings, and one for all."""
    head, rows = ("", "claims", *register.VERDICTS), []
    for label, name, claims in (
        *((f"{text.name}: {text.title}", text.name, text.claims) for text in found),
        ("all", "", [claim for text in found for claim in text.claims]),
    ):
        row: list[str | Cell] = [label, str(len(claims))]
        for verdict, number in register.by_verdict(claims).items():
            heading = f"#{pages.anchor(HEADING.format(verdict.capitalize(), name))}"
            row.append(Cell(links=((str(number), heading),)) if name and number else str(number))
        rows.append(row)
    return Table(head, rows, frozenset(range(1, len(head))))


def _section(verdict: str, found: Sequence[Text]) -> str:
    section, head = SECTION.format(verdict=verdict.capitalize()), OPEN_HEAD if verdict == OPEN else HEAD
    for text in found:
        if rows := [_row(claim) for claim in text.claims if claim.verdict == verdict]:
            heading = HEADING.format(verdict.capitalize(), text.name)
            section += PART.format(heading=heading, title=text.title, table=Table(head, rows).markdown)
    return section


def _row(claim: Claim) -> list[str | Cell]:
    """The claim; what was measured and in which sessions, or what a claim that is not yet judged lacks; its command."""
    thread = pages.link(claim.section)
    section = Cell(links=(thread,)) if thread else Cell(claim.section)
    found = [Cell(claim.missing or claim.non_goal)]
    if claim.verdict != OPEN:
        lacking = f" Missing: {claim.missing}" if claim.missing else ""
        scales = register.scales(paths.PROJECT / register.TABLE)
        judged = ", ".join(f"{one} at {scales[one]}" if one in scales else one for one in claim.sessions)
        found = [Cell(claim.number + lacking), Cell(judged)]
    return [Cell(claim.id, code=True), section, f"“{claim.quote}”", *found, claim.way, Cell(claim.rerun, code=True)]


def main() -> int:
    """Print the page of the committed texts; a row that can't be used is one line on stderr and exit code 2."""
    try:
        found = texts(CLAIMS)
        for text in found:
            register.check(text, paths.PROJECT)
        sys.stdout.write(page(found))
    except InputError as error:
        print(f"claims: {error}", file=sys.stderr)
        return BAD_INPUT
    return 0


if __name__ == "__main__":
    sys.exit(main())
