"""The content of reconciliation.json; :mod:`lab.record.ledger.reconcile` makes it with Spark and defines its terms."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Range:
    """Offsets ``first`` to ``last`` of a partition, inclusive, with one anomaly; receipts of ``pods`` cover or adjoin it.

    ``count`` messages; for doubled the extra copies, for mismatched what the receipt claims.
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
        messages = (self.lost_messages, self.unseen_messages, self.doubled_messages, self.phantom_messages, self.both_messages)
        return not any((*messages, self.mismatched_receipts, self.holes, self.buried_again, self.stray_letters))

    @property
    def anomalies(self) -> dict[str, tuple[Range, ...]]:
        """The ranges of each kind that should not be there, by the kind's name."""
        kinds = ("lost", "unseen", "doubled", "phantom", "mismatched", "both")
        return {kind: getattr(self, kind) for kind in kinds}
