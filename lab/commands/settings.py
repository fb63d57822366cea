"""``python -m lab settings``: it prints docs/workload.md, with every setting of a Workload and of the programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from lab.flags import Flags
from lab.inputs import consumer, producer
from lab.inputs.settings import Setting, declared
from lab.inputs.workload import MOST_PARTITIONS, PARTITIONS, Workload
from lab.report.tables import Cell, Table

HEAD = """# The settings of a workload

`python -m lab settings > docs/workload.md` writes this page from the declarations, and a test holds it against them.

A setting is one field of a dataclass, in [lab/inputs/consumer.py](../lab/inputs/consumer.py),
[lab/inputs/producer.py](../lab/inputs/producer.py), [lab/inputs/store.py](../lab/inputs/store.py),
[lab/inputs/topics.py](../lab/inputs/topics.py) or
[lab/inputs/workload.py](../lab/inputs/workload.py). The field
`commit_interval_ms` is also the flag `--commit-interval-ms` of its program, the environment variable `COMMIT_INTERVAL_MS` of
its pod, a field of a [Workload](bring-your-own.md#the-workload-your-consumer), an argument of `Workload(...)` in an experiment,
and part of the trial's identity. A setting that is added later is left out of the identity at its default, so that stored ids
stay valid. A setting with a librdkafka property in its last column is given to the client as it is.
"""


def run(command: str, help_text: str, arguments: Sequence[str]) -> int:
    """Print the page. Returns the exit code."""
    Flags(prog=f"python -m lab {command}", description=help_text, environment=False).parse_args(arguments)
    print(page(), end="")
    return 0


def page() -> str:
    """Return the page as Markdown."""
    programs = (consumer, producer)
    shared = {one.name for program in programs for one in declared(program.TrialSettings)}
    parts = [HEAD]
    for title, program in (("The consumer's", consumer), ("The producer's", producer)):
        parts.append(f"## {title}, which a trial may set\n" + _table(declared(program.TrialSettings)))
    both = f"A file of kind Workload also sets `partitions`, of all topics: 1 to {MOST_PARTITIONS}, default {PARTITIONS}.\n"
    parts.append("## The pod's, which a trial may set\n" + _table(_without(Workload, shared)) + "\n" + both)
    for title, program in (("The consumer's", consumer), ("The producer's", producer)):
        text = "A trial sets these itself, or leaves them at their default; they are flags and environment variables.\n\n"
        parts.append(f"## {title} other flags\n{text}" + _table(_without(program.Settings, shared)))
    return "\n".join(parts)


def _without(owner: Any, names: set[str]) -> Iterable[Setting]:
    return (one for one in declared(owner) if one.name not in names)


def _table(given: Iterable[Setting]) -> str:
    rows = [
        (
            Cell(one.name, code=True),
            Cell(str(one.default), code=True),
            one.unit,
            one.kind.allowed,
            one.text,
            one.scaling.text if one.scaling else "",
            Cell(one.client or "", code=True),
        )
        for one in given
    ]
    return Table(("field", "default", "unit", "allowed", "", "at a scale", "librdkafka"), rows).markdown
