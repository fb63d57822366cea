"""The differential search without a cluster: what it finds on walks that the model plays, and what a sync saw of a source."""

import json
from dataclasses import replace

import pytest

from lab.model import hpa, hpa_log
from lab.model.hpa_log import Seen
from tests.differential.real import Past, by_walk, events, syncs
from tests.differential.search import REAL, agree, draw, foreseen
from tests.differential.walks import Walk

CONTROLLER = hpa.Controller(downscale_stabilization_s=10)


@pytest.fixture(scope="module")
def drawn():
    """Walks."""
    return draw(80, 7)


def rounds_down(spec, state, current, observed, now, **how):
    """A model that rounds down where the controller rounds up."""
    (metric,) = spec.metrics
    observed = [value and tuple(one // metric.amount * metric.amount for one in value) for value in observed]
    return REAL(spec, state, current, observed, now, **how)


def forgets_the_window_down(spec, state, current, observed, now, **how):
    """A model without a window down."""
    if spec.behavior:
        spec = replace(spec, behavior=replace(spec.behavior, down=replace(spec.behavior.down, window_s=0)))
    return REAL(spec, state, current, observed, now, **how)


def counts_no_steps_down(spec, state, current, observed, now, **how):
    """A model whose policies up don't count the steps down of their period."""
    return REAL(spec, replace(state, downs=()), current, observed, now, **how)


def test_a_model_agrees_with_itself(drawn):
    """As many walks as were asked for, each run once, in batches of at most so many; and they ask for something."""
    batches = []

    def run(walks):
        batches.append(len(walks))
        return foreseen(walks, CONTROLLER)

    tally = agree(run, drawn, CONTROLLER, parallel=40)
    assert batches == [40, 40]
    assert (tally["walks"], tally["disagreements"], tally["edges"], tally["alternatives"]) == (80, 0, 0, 0)
    assert tally["syncs"] > 15 * 80
    assert tally["rescaled"] > 40
    assert tally["failed"] > 5


@pytest.mark.parametrize("wrong", [rounds_down, forgets_the_window_down, counts_no_steps_down])
def test_a_wrong_model_is_found_out(monkeypatch, drawn, wrong):
    """Told with what was asked for, seen and decided."""
    monkeypatch.setattr(hpa, "decide", wrong)
    with pytest.raises(AssertionError, match=r"sync \d+ at .*: real .*, model ") as failure:
        agree(lambda walks: foreseen(walks, CONTROLLER), drawn, CONTROLLER)
    for said in ('ScaledObject: {"scaleTargetRef"', " replicas at first", " s saw "):
        assert said in str(failure.value)


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
