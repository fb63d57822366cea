"""Progress: what a group's commits show of a consumer that writes no receipts, and how finely.

A commit is seen some tenths of a second after it was made. Between two commits of a partition nothing is seen of its work. So
any figure here is true to the time between commits (``longest_s``).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from statistics import median

from lab.errors import NoData
from lab.judge.measure import Measure, measure, number, quantity
from lab.judge.origin import UNSCALED
from lab.record.reports import GIVEN, Commit, Report
from lab.record.store import Record

LOOK_S = 0.3  # a commit is seen by then


class Progress(Measure):
    """The commits of the group's partitions. ``uncommitted`` is committed == end, where it is 0.

    A time between two commits counts where the partition had work at the first of them.
    """

    resolution_s = number("s", "median time between two commits of a partition with work", UNSCALED)
    longest_s = number("s", "longest time between two commits of a partition with work", UNSCALED)
    uncommitted = number("messages", "messages that were not committed at the end")


@measure
def progress(record: Record) -> Progress:
    """Measure the commits that were seen. There is no data where nobody looked, or none came after another."""
    gaps = gaps_s(record.commits)
    if not gaps:
        raise NoData("no partition with work was seen to commit twice")
    return Progress(resolution_s=median(gaps), longest_s=max(gaps), uncommitted=uncommitted(record).number)


@quantity("messages", "messages that were not committed at the end")
def uncommitted(record: Record) -> int:
    """By the offsets that were read when the trial was over. There is no data where they could not be read.

    A commit beyond the log's end counts as well: the log lost what the group had read, or the record is wrong.
    """
    return sum(abs(part.lag) for part in record.offsets.values())


def gaps_s(commits: Iterable[Commit]) -> list[float]:
    """The times between two commits of a partition that had work at the first of them, s."""
    return [
        later.t - earlier.t
        for own in _by_partition(commits).values()
        for earlier, later in pairwise(own)
        if earlier.offset < earlier.end
    ]


def first_commit(handovers: Iterable[Report], commits: Iterable[Commit], pods: Iterable[str]) -> tuple[str, float] | None:
    """The first of ``pods`` of which a partition had a further commit while it owned it, and when that was seen, epoch s.

    A commit that was seen in the look of the assignment, or within LOOK_S of one that was reported, may be that of the owner
    before. None where there was none.
    """
    among = set(pods)
    owner: dict[int, Report] = {}  # what it was assigned by, by partition
    last: dict[int, int] = {}
    changes: list[tuple[float, int, Report | Commit]] = [(one.t, 0, one) for one in handovers]
    for t, _, one in sorted([*changes, *((one.t, 1, one) for one in commits)], key=lambda row: row[:2]):
        if isinstance(one, Commit):
            by = owner.get(one.partition)
            if by and by.pod in among and _later(one, by) and one.offset > last.get(one.partition, 0):
                return by.pod, t
            last[one.partition] = one.offset
        else:
            for partition in one.partitions:
                if one.event == GIVEN:
                    owner[partition] = one
                elif partition in owner and owner[partition].pod == one.pod:
                    del owner[partition]
    return None


def _later(commit: Commit, assigned: Report) -> bool:
    """Whether ``commit`` was seen so late that it is the new owner's."""
    look = assigned.detail.get("look")
    return commit.t > assigned.t + LOOK_S if look is None else commit.look > int(look)


def _by_partition(commits: Iterable[Commit]) -> dict[int, list[Commit]]:
    found: dict[int, list[Commit]] = {}
    for one in commits:
        found.setdefault(one.partition, []).append(one)
    return found
