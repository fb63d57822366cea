"""``elastic-lab settings``: it prints docs/workload.md, with every setting of a Workload."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable

from lab.flags import Flags
from lab.inputs import consumer, producer
from lab.inputs.settings import Setting, declared
from lab.inputs.workload import MOST_PARTITIONS, PARTITIONS, Workload
from lab.report.tables import Cell, Table

HEAD = """# The settings of a workload

`elastic-lab settings > docs/workload.md` writes this page, and a test holds it against the declarations. The field
`commit_interval_ms` is also the flag `--commit-interval-ms` of its program, the environment variable `COMMIT_INTERVAL_MS` of
its pod, a field of a [Workload](bring-your-own.md#the-workload-your-consumer), and an argument of `Workload(...)` in an
experiment. A program's `--help` has the flags that a trial sets itself.
"""


def add_flags(parser: Flags) -> None:
    """The command has none."""


def run(options: Namespace) -> int:
    """Print the page. Returns the exit code."""
    print(page(), end="")
    return 0


def page() -> str:
    """Return the page as Markdown."""
    programs = (consumer, producer)
    shared = {one.name for program in programs for one in declared(program.TrialSettings)}
    parts = [HEAD]
    for title, program in (("The consumer's", consumer), ("The producer's", producer)):
        parts.append(f"## {title}\n" + _table(declared(program.TrialSettings)))
    both = (
        f"A file of kind Workload also sets `partitions`, of all topics: 1 to {MOST_PARTITIONS}, default {PARTITIONS}. For a\n"
        f"simulation, not for a trial, it may have [quantiles of `start_s`, and `nodes`](simulate.md#starts-and-nodes).\n"
    )
    parts.append("## The pod's\n" + _table(one for one in declared(Workload) if one.name not in shared) + "\n" + both)
    return "\n".join(parts)


def _table(given: Iterable[Setting]) -> str:
    rows = []
    for one in given:
        scaled = f"{one.scaling.text} in a trial" if one.scaling else ""
        meaning = "; ".join(filter(None, (one.text, scaled, f"librdkafka's {one.client}" if one.client else "")))
        rows.append((Cell(one.name, code=True), Cell(str(one.default), code=True), one.unit, one.kind.allowed, meaning))
    return Table(("field", "default", "unit", "allowed", ""), rows).markdown
