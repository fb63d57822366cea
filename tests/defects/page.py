"""``python -m tests.defects.page > docs/known-behaviours.md``: your question, the experiment, the thread.

The page is made from the metadata of the tests in this package, and from :mod:`tests.defects.answers`.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import tests.defects
from lab.components.build import KEDA, KUBERNETES
from lab.report.tables import Cell, Table, markdown
from tests import pages
from tests.defects import behaviour
from tests.defects.answers import ANSWERS, Answer

COMMAND = "python -m tests.defects.page > docs/known-behaviours.md"
PAGE = """# Known behaviours: your question, the experiment, the thread

A program writes this page from the tests' metadata, and a test fails while the page differs from them:

    {command}

Each is shown by a test of its own on the real control plane, KEDA {keda}, Kubernetes {kubernetes} and Kafka: `tox -e defects`.
The pods do nothing. Lag is made by producing, and by committing for a group that has no consumers. The HPA syncs twice a
second, and KEDA polls every second. A KEDA that mends a behaviour turns its test red with the words "cured upstream"
([why they are tests of their own](decisions/51-a-known-behaviour-is-a-test.md)).

| question | thread | |
|---|---|---|
{rows}

An experiment of the lab answers these, with traffic and working consumers:

| question | thread | answer |
|---|---|---|
{others}

"""
NOTE = (
    f"Each is a test of its own at KEDA {KEDA} (tox -e defects), which this session did not run. docs/known-behaviours.md has "
    "what is shown, the cure and its price."
)


@dataclass(frozen=True)
class Entry:
    """A section of the page: the test ``name`` in ``file`` (relative to the project) and what it shows."""

    file: str
    name: str
    known: behaviour.Behaviour


def entries() -> list[Entry]:
    """The behaviours of every test module of the package, module by module, in the order of the code."""
    return [Entry(file, name, known) for file, name, _, known in tests_of_behaviours()]


def tests_of_behaviours() -> Iterator[tuple[str, str, object, behaviour.Behaviour]]:
    """(file, name, test, behaviour) of every test that is marked with one."""
    for item in sorted(pkgutil.iter_modules(tests.defects.__path__), key=lambda item: item.name):
        if not item.name.startswith("test_"):
            continue
        module = importlib.import_module(f"tests.defects.{item.name}")
        for name, test in vars(module).items():
            if (known := behaviour.of(test)) is not None:
                yield f"tests/defects/{item.name}.py", name, test, known


def threads(names: tuple[str, ...]) -> str:
    """All of ``names`` as Markdown."""
    return ", ".join(map(pages.thread, names))


def table() -> Table:
    """The behaviours with their threads and what is shown, for a session's page."""
    rows: list[list[str | Cell]] = [
        [each.known.question, Cell(links=tuple(filter(None, map(pages.link, each.known.threads)))), _state(each)]
        for each in entries()
    ]
    return Table(("question", "thread", "the test of it"), rows)


def page() -> str:
    """The whole page as GitHub's Markdown; its links lead from docs/."""
    found = entries()
    rows, others = "\n".join(map(_row, found)), "\n".join(map(_other, ANSWERS))
    return PAGE.format(command=COMMAND, keda=KEDA, kubernetes=KUBERNETES, rows=rows, others=others) + "\n".join(
        map(_section, found)
    )


def _row(entry: Entry) -> str:
    question = markdown(entry.known.question)
    return f"| [{question}](#{pages.anchor(entry.known.question)}) | {threads(entry.known.threads)} | {_state(entry)} |"


def _state(entry: Entry) -> str:
    return "shown" if entry.known.seen else f"not seen at {KEDA}"


def _other(answer: Answer) -> str:
    name = Path(answer.where).stem.removeprefix("test_")
    return (
        f"| {markdown(answer.question)} | {threads(answer.threads)} | {markdown(answer.answer)} ([{name}](../{answer.where})) |"
    )


def _section(entry: Entry) -> str:
    known = entry.known
    shown = "Shown" if known.seen else f"Not seen at {KEDA}"
    return f"""## {known.question}
{threads(known.threads)}: `{entry.name}` in [{Path(entry.file).name}](../{entry.file})

- **Reported.** {known.reported}
- **{shown}.** {known.shown}
- **Cure.** {known.cure}
- **Price.** {known.price}
"""


if __name__ == "__main__":
    sys.stdout.write(page())
