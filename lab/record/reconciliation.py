"""The content of reconciliation.json; :mod:`lab.record.ledger.reconcile` makes it with Spark and defines its terms."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Range:
    """Offsets ``first`` to ``last`` of a partition, inclusive, with one anomaly; ``count`` messages, and sorted ``pods``.

    ``count``: for doubled the extra copies, for mismatched what the receipt claims. The receipts of ``pods`` cover the range
    or, for lost, unseen and dead, adjoin it.
    """

    partition: int
    first: int
    last: int
    count: int
    pods: tuple[str, ...]


@dataclass(frozen=True)
class Reconciliation:
    """The verdict on a record. Without holes, produced == processed + dead + lost + unseen messages."""

    produced: int  # messages in the topic
    processed: int  # of these, covered by at least one receipt
    receipts: int
    holes: int  # offsets
    resent: int  # messages
    lost_messages: int
    unseen_messages: int
    doubled_messages: int  # extra copies
    phantom_messages: int  # offsets
    mismatched_receipts: int
    lost: tuple[Range, ...]  # each of these sorted, and at most NAMED long
    unseen: tuple[Range, ...]
    doubled: tuple[Range, ...]
    phantom: tuple[Range, ...]
    mismatched: tuple[Range, ...]
    dead_messages: int = 0  # these are 0 in the records of before there were dead letters
    both_messages: int = 0
    buried_again: int = 0  # letters
    stray_letters: int = 0
    dead: tuple[Range, ...] = ()
    both: tuple[Range, ...] = ()

    @property
    def exact(self) -> bool:
        """Whether every produced message was processed exactly once or is one dead letter, and no receipt contradicts that."""
        return not (
            self.lost_messages
            or self.unseen_messages
            or self.doubled_messages
            or self.phantom_messages
            or self.mismatched_receipts
            or self.holes
            or self.both_messages
            or self.buried_again
            or self.stray_letters
        )

    @property
    def anomalies(self) -> dict[str, tuple[Range, ...]]:
        """The ranges of each kind that should not be there, by the kind's name."""
        kinds = ("lost", "unseen", "doubled", "phantom", "mismatched", "both")
        return {kind: getattr(self, kind) for kind in kinds}

    def to_json(self) -> dict[str, Any]:
        """Plain dicts, lists and numbers."""
        fields = dataclasses.asdict(self)
        for name, value in fields.items():
            if isinstance(value, tuple):
                fields[name] = [{**each, "pods": list(each["pods"])} for each in value]
        return fields

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Reconciliation:
        """Read the output of :meth:`to_json`. Raises ``KeyError`` or ``TypeError`` for anything else."""
        missing = {field.name: field.default for field in dataclasses.fields(cls) if field.default is not dataclasses.MISSING}
        fields = {field.name: (missing | dict(content))[field.name] for field in dataclasses.fields(cls)}
        for name, value in fields.items():
            if isinstance(value, list):
                fields[name] = tuple(Range(**{**each, "pods": tuple(each["pods"])}) for each in value)
        return cls(**fields)
