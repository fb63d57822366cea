"""The index of the sessions whose evidence is committed: what each asked and found, on the page that people read.

It is made of each folder's session.json alone, and says the words of its pages. It stands between two marks on a page whose
other text is written by hand: that text is never touched.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab import wholefile
from lab.errors import InputError
from lab.report import answers, findings, session
from lab.report.summary import Summary
from lab.report.tables import Cell, Table, render

BEGIN = "<!-- `elastic-lab findings --index` writes what follows, to the next mark. A test holds the two together. -->"
END = "<!-- What follows is written by hand. -->"
HEAD = ("", "experiment", "what it asserts", "what was found")


def update(page: Path, folder: Path) -> None:
    """Write the index of the sessions in ``folder`` anew between the marks of ``page``. Raises like :func:`indexed`."""
    wholefile.write(page, indexed(page, folder))


def indexed(page: Path, folder: Path) -> str:
    """The text of ``page`` with the index of ``folder``. Raises :class:`InputError` for a page without the two marks."""
    text = page.read_text(encoding="utf-8")
    before, begun, rest = text.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not (begun and ended):
        raise InputError(page, "marks", "missing", f"a page with the lines {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{index(sessions(folder), os.path.relpath(folder, page.parent))}\n{END}{after}"


def sessions(folder: Path) -> dict[str, Mapping[str, Any]]:
    """The content of each session.json in the folders of ``folder``, by their names, the newest name first."""
    files = sorted(folder.glob(f"*/{session.FILE}"), reverse=True)
    return {file.parent.name: findings.read(file.parent) for file in files}


def index(contents: Mapping[str, Mapping[str, Any]], folder: str) -> str:
    """A section for each session in ``contents``, by the name of its folder; links lead into ``folder``."""
    found = {name: Summary(content) for name, content in contents.items()}
    return render("evidenceindex.md", sessions=found, folder=folder, README=findings.README, table=_table)


def _table(one: Summary) -> str:
    """A row for each test, in the natural order of experiments."""
    rows = [
        [
            Cell(f"{answer.mark} {answer.word}"),
            Cell(answers.called(answer.test)),
            Cell(answers.title(answer.test)),
            Cell(answer.lead),
        ]
        for experiment in one.experiments
        for answer in experiment.answers
    ]
    return Table(HEAD, rows).markdown
