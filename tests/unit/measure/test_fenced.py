"""What a member that was fenced had in flight: from when on, and until when."""

import math

import pytest

from lab.measure.faults import fenced
from lab.measure.kills import Loss

from .built import assigned, given_up, record, report


def refused(t, pod="pod-c", partition=5, **more):
    """A member's report of a commit that the group refused."""
    return report(t, pod, "commit_failed", partitions=[partition], **more)


OTHERS = [report(149, "pod-b", "left"), report(149, "pod-d", "left"), report(151, "pod-c", "left")]


def fencing(folder, event, more=()):
    """A record in which pod-c had partitions 5 and 6 from 140 to 150, and pod-x gave up at 160 what it was never given."""
    told = [assigned(140, "pod-c", 5, 6), given_up(150, "pod-c", 5, 6, event=event), given_up(160, "pod-x", 9, event="lost")]
    return record(folder, group_events=[*told, *more])


@pytest.mark.parametrize(
    ("event", "more", "t", "after"),
    [
        ("lost", [], 150, 140),
        ("lost", [assigned(147.25, "pod-d", 5)], 147.25, 140),  # another's: what is committed since may be its own
        ("lost", [assigned(145, "pod-b", 5)], 145, 140),
        ("lost", [assigned(146.75, "pod-e", 7), assigned(147.25, "pod-d", 5)], 147.25, 140),
        ("lost", [assigned(147.25, "pod-d", 7)], 150, 140),  # another partition
        ("lost", [assigned(140, "pod-d", 5)], 150, 140),  # not later than its own assignment
        ("lost", [assigned(130, "pod-d", 5), given_up(145, "pod-d", 5), assigned(152, "pod-d", 5)], 150, 140),
        ("lost", [refused(148)], 148, 140),
        ("lost", [refused(148), assigned(147.25, "pod-d", 5)], 147.25, 140),
        ("lost", [refused(147), assigned(147.25, "pod-d", 5)], 147, 140),
        ("lost", [refused(148, seconds=1.0)], 147, 140),  # it was asked for at 147
        ("lost", [refused(150, seconds=2.0)], 148, 140),
        ("lost", [refused(135), refused(140), refused(155, seconds=20.0)], 150, 140),  # not between the two
        ("lost", [refused(146, "pod-b"), refused(146, "pod-d")], 150, 140),  # of others
        ("lost", [refused(148), assigned(150, "pod-c", 5), assigned(152, "pod-c", 5)], 148, 140),
        ("lost", [refused(142), assigned(144, "pod-c", 7)], 142, 140),  # what it is given beside them changes nothing
        ("lost", [refused(142), given_up(144, "pod-c", 6)], 142, 140),  # nor what it gives up with its commits taken
        ("lost", [refused(142), assigned(144, "pod-c", 5)], 150, 144),  # it was given one anew
        ("revoked", [refused(148)], 148, 140),
        ("revoked", [refused(148), *OTHERS], 148, 140),
        ("revoked", [refused(144), assigned(143, "pod-d", 7), assigned(146, "pod-c", owned=1), refused(149)], 144, 140),
        ("revoked", [], None, None),  # with its commits taken
        ("revoked", [refused(148, partition=7)], None, None),
        ("revoked", [refused(148), assigned(149.5, "pod-c", owned=1)], None, None),  # an assignment of nothing came after it
    ],
)
def test_what_a_member_did_since_its_assignment_may_be_in_flight(tmp_path, event, more, t, after):
    """Until it gives its partitions up. That is so of one that the group gave up, and of one whose last commit was refused."""
    made, last = fencing(tmp_path, event, more), Loss("pod-x", 160, -math.inf, 160)
    assert list(fenced(made, [])) == [*([] if t is None else [Loss("pod-c", t, after, 150)]), last]
    assert list(fenced(made, [Loss("pod-c", 145.0, 0.0, 150.0)])) == [last]  # that is explained already
