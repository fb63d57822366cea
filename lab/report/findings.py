"""Findings: one page of a session's evidence, with every number, its interval, its class, its figure and its command. Pure.

The page is made of session.json alone, like the session's own page, and says the same words. It stands beside the records that
it is about, so that each of its numbers can be judged again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lab import wholefile
from lab.errors import InputError
from lab.report import answers, page, session
from lab.report.answers import Experiment, Row, measured, runs_of, target
from lab.report.summary import Summary
from lab.report.tables import Cell, Table, kind, render, source, verdict_cell

README, FIGURES = "README.md", "img"
HEAD = ("verdict", "class", "claim", "quantity", "measured", "wanted", "interval and runs", "source of the bound")
SHOWN = ("Hypothesis", "What would refute it")  # paragraphs of an experiment's note
RUNS = re.compile(r"^\d+")
KIND = "kind"  # the runtime that pytest is asked for by its name; the other is the default
LEFT_OUT = "left out of the records"  # the fact of a session's head that names files


def write(content: Mapping[str, Any], folder: Path) -> Path:
    """Write the page, its figures, and the session's own page and content into ``folder``; returns the page.

    ``content`` is that of a session.json. Its records are expected in ``folder``/records, and are linked there.
    """
    kept = {**content, "folders": {name: f"records/{name}" for name in content["folders"]}}
    files = {README: markdown(kept, Path(os.path.relpath(folder))), **figures(kept)}
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        wholefile.write(folder / name, text)
    wholefile.write(folder / session.FILE, session.as_text(kept))
    wholefile.write(folder / page.PAGE, page.html(Summary(kept), page.Around(lambda address: (folder / address).exists())))
    return folder / README


def read(results: Path) -> Mapping[str, Any]:
    """The content of the session in ``results``. Raises :class:`InputError` where it left none, or one of another schema."""
    content = session.read(results)
    if content is None:
        raise InputError(results, session.FILE, "no file", "results of a session that came to its end, or was judged again")
    return content


def markdown(content: Mapping[str, Any], folder: Path) -> str:
    """The page as GitHub's Markdown; ``folder`` is where it stands. Every text in it is escaped."""
    found = Summary(content)
    modules = list(dict.fromkeys(module for experiment in found.experiments for module in _modules(experiment)))
    return render(
        "findings.md",
        s=found,
        w=answers,
        head=content["head"],
        left_out=LEFT_OUT,
        again=" ".join(["pytest", *modules, *_options(content["head"]), f"--from-records={folder.as_posix()}"]),
        anew=lambda experiment: " ".join(["pytest", *_modules(experiment), *_options(content["head"])]),
        title=folder.name,
        Table=Table,
        claims=_claims,
        before=_before,
        figure=_figure,
        policy=content["policy"],
        versions="; ".join(f"{name} {version}" for name, version in content["versions"].items() if name != "commit"),
    )


def figures(content: Mapping[str, Any]) -> dict[str, str]:
    """Each chart of the session as SVG, by its file's name."""
    return {_figure(test): test["picture"] + "\n" for test in content["tests"] if test["picture"]}


def _figure(test: Mapping[str, Any]) -> str:
    """The file of a test's chart, relative to the page; "" where it has none."""
    if not test["picture"]:
        return ""
    name = re.sub(r"[^a-z0-9]+", "-", f"{test['experiment']} {test['id'].rpartition('::')[2]}".lower()).strip("-")
    return f"{FIGURES}/{name}.svg"


def _claims(rows: Sequence[Row]) -> Table:
    return Table(HEAD, [_claim(row) for row in rows], frozenset({HEAD.index("measured"), HEAD.index("wanted")}))


def _claim(row: Row) -> list[str | Cell]:
    remarks = "".join(f" ({remark})" for remark in answers.remarks(row))
    return [
        verdict_cell(row),
        kind(row),
        f"{row['why']}{remarks}",
        str(row["objective"]),
        measured(row),
        target(row),
        runs_of(row),
        source(row),
    ]


def _before(experiment: Experiment) -> list[str]:
    """What an experiment's note says that decides before it runs: its hypothesis, and what would refute it."""
    return [" ".join(paragraph.split()) for paragraph in experiment.note if paragraph.startswith(SHOWN)]


def _modules(experiment: Experiment) -> list[str]:
    """The test modules of an experiment."""
    return list(dict.fromkeys(answer.test["id"].partition("::")[0] for answer in experiment.answers))


def runs(head: Mapping[str, Any]) -> int:
    """How many runs of each trial the session of this ``head`` has: 1 where it does not say."""
    found = RUNS.match(str(head.get("runs", "")))
    return int(found.group()) if found else 1


def _options(head: Mapping[str, Any]) -> list[str]:
    """How pytest is asked for as many runs at the same scale, on the same runtime."""
    repeat, scale = runs(head), str(head.get("scale", "")).partition(":")[0]
    chosen = [f"--scale={scale}"] if scale else []
    chosen += [f"--cluster={KIND}"] if head.get("runtime") == KIND else []
    return [*chosen, f"--repeat={repeat}"] if repeat > 1 else chosen
