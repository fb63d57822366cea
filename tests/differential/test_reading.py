"""What a sync saw, from the source's answers, the replicas of the moment and the controller's log. Pure, no cluster."""

import json

import pytest

from lab.model import hpa, hpa_log
from lab.model.hpa_log import Seen
from tests.differential.real import Past, by_walk, events, syncs
from tests.differential.walks import Walk

WALK = Walk(replicas=2, least=1, most=9, target=100_000, behavior="null", steps=((250_000, 1), (None, 2), (900_000, 1)))
SPEC = hpa.parse(WALK.hpa(), "the walk")
ZERO = 1_800_000_000.0


def line(t, words, **replicas):
    """A line of the log, ``t`` s after ``ZERO``."""
    return hpa_log.Line(ZERO + t, words, replicas)


def read(lines, answers, counts=((0, 2),)):
    """The syncs of ``WALK``; times are s after ``ZERO``."""
    past = Past([(ZERO + t, value) for t, value in answers], [(ZERO + t, count) for t, count in counts], ZERO)
    return syncs(WALK, SPEC, lines, past)


def test_a_sync_saw_the_last_answer_before_its_proposal():
    """Not one that KEDA asked for before it was over with the last, and not the next one's."""
    lines = [
        line(1, hpa_log.PROPOSED, desiredReplicas=3),
        line(1.02, hpa_log.RESCALED, currentReplicas=2, desiredReplicas=3),
        line(4, hpa_log.PROPOSED, desiredReplicas=9),
        line(4.0001, hpa_log.KEPT, desiredReplicas=3),
    ]
    first, second = read(lines, [(0.5, 100_000), (0.99, 250_000), (1.01, 500_000), (3.99, 900_000), (4.5, 0)], [(0, 2), (3, 3)])
    assert [one.observed for one in first.seen] == [((250_000,),), ((100_000,),)]
    assert (first.current, first.desired, first.proposed, first.scaled_at) == (2, 3, 3, ZERO + 1.02)
    assert [one.existing for one in second.seen] == [3, 2]  # or read before they changed
    assert {one.observed for one in second.seen} == {((900_000,),)}
    assert (first.since, second.since) == (ZERO, None)
    assert (second.at, second.until, second.scaled_at) == (ZERO + 4, ZERO + 4.0001, None)


def test_replicas_that_changed_long_before_are_no_choice():
    """What was over when the sync before was over can't have been seen."""
    lines = [
        line(1, hpa_log.KEPT, desiredReplicas=2),
        line(2, hpa_log.PROPOSED, desiredReplicas=9),
        line(2, hpa_log.KEPT, desiredReplicas=3),
    ]
    *_, last = read(lines, [(1.9, 900_000)], [(0, 1), (0.5, 2), (0.9, 3)])
    assert [one.existing for one in last.seen] == [3]


def test_a_failed_source_is_not_what_was_seen():
    """The sync that failed saw nothing; one whose second try was answered saw that answer."""
    lines = [line(1, hpa_log.FAILED), line(2, hpa_log.PROPOSED, desiredReplicas=9), line(2, hpa_log.KEPT, desiredReplicas=2)]
    failed, other = read(lines, [(0.8, None), (0.9, None), (1.8, None), (1.9, 900_000)])
    assert (failed.seen, failed.proposed, failed.current, failed.desired) == ((Seen(2, (None,)),), None, 2, 2)
    assert [one.observed for one in other.seen] == [((900_000,),)]


def test_a_sync_that_no_answer_belongs_to_saw_nothing_known():
    """It is no evidence for the model."""
    (only,) = read([line(1, hpa_log.PROPOSED, desiredReplicas=9), line(1, hpa_log.KEPT, desiredReplicas=2)], [(1.5, 900_000)])
    assert only.seen == ()


@pytest.mark.parametrize("words", [hpa_log.KEPT, hpa_log.RESCALED])
def test_a_sync_without_a_proposal_is_one_that_the_bounds_decide(words):
    """No metric is asked then."""
    (only,) = read([line(1, words, currentReplicas=12, desiredReplicas=9)], [(0.9, 900_000)])
    assert (only.current, only.desired, only.proposed, only.seen) == (12, 9, None, (Seen(2, (None,)),))


def test_lines_and_events_are_told_apart_by_walk(tmp_path):
    """Ten is not one, and another namespace is none of ours."""
    log = """a scaleTarget="Deployment/walks-1/walk-1" x
b HPA="walks-1/keda-hpa-walk-1"
c HPA="walks-1/keda-hpa-walk-10" x
d HPA="walks-11/keda-hpa-walk-1" x
e listed metrics for Deployment/walks-1/walk-10: no"""
    told = {name: [line[0] for line in text.splitlines()] for name, text in by_walk(log, "walks-1").items()}
    assert told == {"walk-1": ["a", "b"], "walk-10": ["c", "e"]}
    rows = [
        (1.0, "Deployment", "walk-1", {"status": {}}),
        (2.0, "Deployment", "walk-1", {"status": {"replicas": 3}}),
        (1.5, "HorizontalPodAutoscaler", "keda-hpa-walk-1", {}),
        (2.5, "HorizontalPodAutoscaler", "keda-hpa-walk-1", {}),
        (2.0, "Pod", "walk-1", {"status": {"replicas": 9}}),
    ]
    file = tmp_path / "transitions.jsonl"
    file.write_text("\n".join(json.dumps(dict(zip(("t", "kind", "name", "object"), row, strict=True))) for row in rows))
    assert events(file) == ({"walk-1": [(1.0, 0), (2.0, 3)]}, {"keda-hpa-walk-1": 1.5})
