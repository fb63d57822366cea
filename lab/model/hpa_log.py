"""The HPA controller's log of its syncs at ``--vmodule=horizontal=4``, from which decisions are replayed.

The source is ``reconcileAutoscaler`` in ``pkg/controller/podautoscaler/horizontal.go`` of Kubernetes 1.36.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

PROPOSED, KEPT, RESCALED = "Proposing desired replicas", "Decided not to scale", "Successfully rescaled"
FAILED = "failed to compute desired number of replicas"  # said within an "Unhandled Error"
DECIDED = (KEPT, RESCALED)
UPDATED, NOT_UPDATED = "Successfully updated status", "failed to update status"  # the latter within an "Unhandled Error"
_LINE = re.compile(r'[A-Z](\d{4} \d\d:\d\d:\d\d\.\d{6}) +\d+ horizontal\.go:\d+\] "([^"]+)"(.*)')
_NUMBER = re.compile(r"(currentReplicas|desiredReplicas)=(-?\d+)")


@dataclass(frozen=True)
class Line:
    """One line of the controller's log: epoch s, its words, and the replicas it names."""

    t: float
    words: str
    replicas: Mapping[str, int]


@dataclass(frozen=True)
class Logged:
    """The lines of one sync. ``proposal`` is None when no metric was asked.

    ``before`` is the end of the sync before, and ``after`` the time when the next sync had its metrics (epoch s). ``lost``: the
    HPA's status does not show what this sync saw, because another write had overtaken its own, or a sync that failed followed
    and wrote its own.
    """

    proposal: Line | None
    outcome: Line
    before: float
    after: float
    lost: bool

    @property
    def at(self) -> float:
        """When its metrics had been read (epoch s)."""
        return self.proposal.t if self.proposal else self.outcome.t


def parse(text: str, begun: float) -> Iterator[Line]:
    """The lines of a log in klog's format, in UTC. ``begun`` (epoch s) gives the year, which klog leaves out."""
    year = datetime.fromtimestamp(begun, UTC).year
    for line in text.splitlines():
        if found := _LINE.match(line):
            stamp = datetime.strptime(f"{year} {found[1]} +0000", "%Y %m%d %H:%M:%S.%f %z").timestamp()
            stamp = stamp if stamp >= begun - 86_400 else stamp + 365 * 86_400  # a trial over New Year
            words = next((error for error in (FAILED, NOT_UPDATED) if error in found[3]), found[2])
            yield Line(stamp, words, {name: int(value) for name, value in _NUMBER.findall(found[3])})


def syncs(lines: Sequence[Line], outcomes: Collection[str] = DECIDED) -> Iterator[Logged]:
    """The syncs of one HPA from its lines. Each ends with one of ``outcomes``; a sync decided by the bounds has no proposal."""
    ends = [index for index, line in enumerate(lines) if line.words in outcomes]
    for place, index in enumerate(ends):
        own = lines[ends[place - 1] + 1 if place else 0 : index]
        proposal = next((line for line in reversed(own) if line.words.startswith(PROPOSED)), None)
        before = lines[ends[place - 1]].t if place else float("-inf")
        rest = lines[index + 1 : ends[place + 1] if place + 1 < len(ends) else len(lines)]
        after = next((line.t for line in rest if line.words.startswith(PROPOSED)), None)
        if after is None:
            after = lines[ends[place + 1]].t if place + 1 < len(ends) else float("inf")
        said = {line.words for line in rest}
        # A rescale always changes the status: without a line about the write, it was not written.
        lost = bool(said & {NOT_UPDATED, FAILED}) or (lines[index].words == RESCALED and UPDATED not in said)
        yield Logged(proposal, lines[index], before, after, lost)
