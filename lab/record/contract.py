"""What a consumer in any language writes by the contract (docs/your-consumer.md): receipts and reports.

``consumer.schema.json`` beside this module is its JSON Schema. ``python -m lab.record.contract`` writes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from lab import validation
from lab.validation import Strict

FILE = Path(__file__).with_name("consumer.schema.json")
VERSION = 1  # a field that is added, or that means something else, makes the next one

Pod = Annotated[str, Field(min_length=1, description="name of the pod: $POD_NAME")]
Number = Annotated[int, Field(ge=0)]
Change = Literal["assigned", "revoked", "lost"]
Seconds = Annotated[float, Field(ge=0, description="epoch seconds, with fractions")]


@dataclass(frozen=True)
class Receipt(Strict):
    """A batch of one partition is processed: a record on $RECEIPTS_TOPIC, acknowledged before the batch is committed."""

    pod: Pod
    partition: Annotated[Number, Field(description="partition that the batch is of; of several topics the trial's number")]
    first: Annotated[Number, Field(description="offset of its first message")]
    last: Annotated[Number, Field(description="offset of its last message, inclusive")]
    count: Annotated[Number, Field(description="its messages")]
    checksum: Annotated[Number, Field(description="sum of the unsigned CRC-32 (IEEE) of each message's value")]
    start: Annotated[Seconds, Field(description="when its processing began, epoch seconds")]
    end: Annotated[Seconds, Field(description="when its processing ended, epoch seconds")]
    version: Literal[1] = 1


@dataclass(frozen=True)
class Report:
    """A member's partitions have changed: a line of its own on stdout, or a record on $REPORTS_TOPIC."""

    __pydantic_config__ = {"extra": "ignore"}  # what else it says is kept, and no measure needs it

    event: Annotated[Change, Field(description="lost: its partitions went to others before it knew")]
    partitions: Annotated[list[Number], Field(description="those that came, or went; of several topics the trial's numbers")]
    owned: Annotated[Number, Field(description="how many partitions it owns from now on")]
    pod: Annotated[Pod | None, Field(description="name of the pod; a line on stdout needs none")] = None
    t: Annotated[Seconds | None, Field(description="when, epoch seconds; without it, when it was read")] = None


KINDS = (Receipt, Report)
ASSIGNED = "assigned"
CHANGES = get_args(Change)
LINES, SHOWN = 20, 200  # of the end of an output, and characters of a line


def json_schema() -> dict[str, Any]:
    """The JSON Schema of what a consumer writes; each kind is a definition in it."""
    kinds = {kind.__name__: validation.adapter(kind).json_schema() for kind in KINDS}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"what a consumer writes, version {VERSION}",
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in kinds],
        "$defs": kinds,
    }


def line(text: str) -> dict[str, Any] | None:
    """The report in a line of a consumer's output; None where it is any other line."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        row = json.loads(text)
    except ValueError:
        return None
    return row if isinstance(row, dict) and row.get("event") in CHANGES else None


def last_words(output: Sequence[str]) -> str:
    """The line that says most at the end of a consumer's ``output``: the last that names an error, else that has a word.

    After its error many a program writes a stack, or the braces of an object.
    """
    lines = [line.strip()[:SHOWN] for line in output[-LINES:] if re.search(r"\w", line)]
    errors = [line for line in lines if re.search("error|exception|fatal|panic", line, re.IGNORECASE)]
    return next(iter((errors or lines)[-1:]), "")


if __name__ == "__main__":
    FILE.write_text(json.dumps(json_schema(), indent=1) + "\n")
