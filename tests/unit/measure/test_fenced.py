"""What a member that was fenced had in flight, and one whose broker was away: from when on, and until when."""

from dataclasses import replace

import pytest

from lab.measure.faults import fenced
from lab.measure.kills import Loss
from lab.record.trial import Fault

from .built import assigned, given_up, record, report


def refused(t, pod="pod-c", partition=5, **more):
    """A member's report of a commit that the group refused."""
    return report(t, pod, "commit_failed", partitions=[partition], **more)


OTHERS = [report(149, "pod-b", "left"), report(149, "pod-d", "left"), report(151, "pod-c", "left")]


def fencing(folder, event, more=(), faults=()):
    """A record in which pod-c had partitions 5 and 6 from 140 to 150, and pod-x gave up at 160 what it was never given."""
    told = [assigned(140, "pod-c", 5, 6), given_up(150, "pod-c", 5, 6, event=event), given_up(160, "pod-x", 9, event="lost")]
    work = {"commit_interval_ms": 500, "batch_ms": 150, "poll_ms": 100}  # 0.75 s from one commit to the next
    return record(folder, inputs={"workload": work}, faults=faults, group_events=[*told, *more])


@pytest.mark.parametrize(
    ("event", "more", "t", "after"),
    [
        ("lost", [], 150, 148.5),
        ("lost", [assigned(147.25, "pod-d", 5)], 150, 145.75),  # the rebalance in which another was given one of them
        ("lost", [assigned(145, "pod-b", 5)], 150, 143.5),
        ("lost", [assigned(146.75, "pod-e", 7), assigned(147.25, "pod-d", 5)], 150, 145.25),  # it had begun before
        ("lost", [assigned(147.25, "pod-d", 7)], 150, 148.5),  # another partition
        ("lost", [assigned(140, "pod-d", 5)], 150, 148.5),  # not later than its own assignment
        ("lost", [assigned(130, "pod-d", 5), given_up(145, "pod-d", 5), assigned(152, "pod-d", 5)], 150, 148.5),
        ("lost", [refused(148)], 148, 146.5),
        ("lost", [refused(148, seconds=1.0)], 147, 145.5),  # it was asked for at 147
        ("lost", [refused(150, seconds=2.0)], 148, 146.5),
        ("lost", [refused(135), refused(140), refused(155, seconds=20.0)], 150, 148.5),  # not between the two
        ("lost", [refused(146, "pod-b"), refused(146, "pod-d")], 150, 148.5),  # of others
        ("lost", [refused(148), assigned(150, "pod-c", 5), assigned(152, "pod-c", 5)], 148, 146.5),
        ("lost", [refused(142), assigned(144, "pod-c", 7)], 142, 140.5),  # what it is given beside them changes nothing
        ("lost", [refused(142), given_up(144, "pod-c", 6)], 142, 140.5),  # nor what it gives up with its commits taken
        ("lost", [refused(142), assigned(144, "pod-c", 5)], 150, 148.5),  # it was given one anew
        ("revoked", [refused(148)], 148, 146.5),
        ("revoked", [refused(148), *OTHERS], 148, 146.5),
        ("revoked", [refused(144), assigned(143, "pod-d", 7), assigned(146, "pod-c", owned=1), refused(149)], 144, 142.5),
        ("revoked", [], None, None),  # with its commits taken
        ("revoked", [refused(148, partition=7)], None, None),
        ("revoked", [refused(148), assigned(149.5, "pod-c", owned=1)], None, None),  # an assignment of nothing came after it
    ],
)
def test_what_a_member_did_from_two_commits_before_its_rebalance_is_in_flight(tmp_path, event, more, t, after):
    """Until it gives its partitions up. That is so of one that the group gave up, and of one whose last commit was refused."""
    made, last = fencing(tmp_path, event, more), Loss("pod-x", 160, 158.5, 160)
    assert list(fenced(made, [])) == [*([] if t is None else [Loss("pod-c", t, after, 150)]), last]
    assert list(fenced(made, [Loss("pod-c", 145.0, 0.0, 150.0)])) == [last]  # that is explained already


BROKER = Fault(120.0, "sigstop", component="broker", until=133.5)


@pytest.mark.parametrize(
    ("fault", "after"),
    [
        (BROKER, 138.5),  # from the assignment on: it was back 15 s later, when the last two commits were due
        (replace(BROKER, until=133.25), 148.5),
        (replace(BROKER, t=145.0, until=146.0), 143.5),
        (replace(BROKER, t=155.0, until=160.0), 148.5),
        (replace(BROKER, fault="sigkill", t=135.0, until=None), 138.5),
        (replace(BROKER, until=146.0, component="keda-operator"), 148.5),
        (replace(BROKER, until=146.0, skipped="no broker was at work"), 148.5),
    ],
)
def test_a_broker_that_is_away_answers_no_commit(tmp_path, fault, after):
    """What a member did since then is in flight, but nothing of before it had the partitions."""
    assert next(fenced(fencing(tmp_path, "lost", faults=(fault,)), [])) == Loss("pod-c", 150, after, 150)
