"""Reactions: how long each burst waits that finds a group at its floor, what the HPA reads in it, and its wait by the syncs."""

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import NoData
from lab.inputs.profile import Step
from lab.measure.reaction.bursts import burst_reactions, bursts_at_floor, bursts_met, reactions
from lab.measure.reaction.hpa_readings import bursts, readings
from lab.measure.reaction.step import POLICY, reaction
from lab.measure.reaction.waits import decision, split
from lab.model.hpa_log import KEPT, PROPOSED, RESCALED, Line, Logged, Seen, Sync
from lab.record.pods import Pod
from lab.record.store import Record
from tests.records import FOLDER
from tests.unit.scenarios.payments.test_hpa_steps import SPEC

from .built import Shown

STARTS = (100.0, 400.0, 700.0)


def made(*steps, pods=(), floor=4, syncs=()):
    """Three bursts of 120 s; ``steps`` are (t, wanted), and ``pods`` are (name, added, first receipt, and a later one)."""
    wanted = [(0.0, floor), *steps]
    receipts = pd.DataFrame([(name, end) for name, _, *ends in pods for end in ends], columns=["pod", "end"])
    return Shown(
        policy=SimpleNamespace(min_replicas=floor, hpa="keda-hpa-consumer" if syncs else None),
        hpa_syncs=[SimpleNamespace(at=t) for t in syncs],
        scale=SimpleNamespace(hpa_sync_s=15.0),
        replicas=pd.DataFrame(wanted, columns=["t", "desired"]),
        scalings=[SimpleNamespace(t=t, before=old, after=new) for (_, old), (t, new) in pairwise(wanted)],
        phases=pd.DataFrame([(t, t + 120, "burst") for t in STARTS], columns=["start", "end", "label"]),
        pods={name: Pod(name, added, added=added) for name, added, *_ in pods},
        receipts=receipts,
    )


TWO = [("b", 113.0, 165.0, 166.0), ("a", 113.0, 161.0, 170.0), ("c", 715.0, 761.0, 762.0)]


def test_each_burst_that_began_at_the_floor_has_an_answer():
    """The first new pod is the one with the first receipt. The second burst found 24 pods, so it asked for none."""
    found = burst_reactions(made((112, 24), (520, 12), (580, 4), (714, 24), pods=TWO))
    assert [(one.burst.number, one.burst.step, one.at_work_s, one.pod) for one in found] == [
        (1, 112, 61, "a"),
        (3, 714, 61, "c"),
    ]
    group = made((112, 24), (520, 12), (580, 4), (714, 24), pods=[*TWO[:2], ("c", 715.0, 770.0, 780.0)])
    measured = reactions(group)
    assert (measured.fastest_s.number, measured.median_s.number, measured.slowest_s.number) == (61, 65.5, 70)
    assert (bursts_met(group).bursts.number, bursts_met(group).span_s.value) == (2, None)
    # The third one met 8 pods on their way down, and lag asked for more later.
    assert [one.number for one in bursts_at_floor(made((112, 24), (520, 8), (730, 24)))] == [1]
    assert "no burst that began at the floor" in reactions(made((90, 24))).slowest_s.why


def test_a_burst_that_is_answered_late_or_never_is_not_left_out():
    """A step up in the lull after it is its own; without one before the next burst no reaction is the slowest."""
    late = made((290, 24), (520, 12), pods=[("a", 291.0, 340.0, 341.0)])
    assert reactions(late).slowest_s.number == 240
    never = made((112, 24), (520, 4), pods=TWO[:2])
    assert "burst 3 met the floor, and no step up followed" in reactions(never).slowest_s.why
    assert bursts_met(never).bursts.value is None


@pytest.mark.parametrize(("syncs", "since"), [((), None), ((85, 98, 113), 2), ((113,), None)])
def test_where_in_the_syncs_period_the_burst_came(syncs, since):
    """So long after the last sync before it; without an HPA, or without a sync before, that is not known."""
    (one,) = bursts_at_floor(made((112, 24), syncs=syncs))
    assert one.since_sync_s == since
    measured = bursts_met(made((112, 24), (520, 4), (714, 24), syncs=(*syncs, 692)))
    assert measured.span_s.value == {2: 6}.get(since, 0)


@pytest.mark.parametrize(
    ("points", "span_s"),
    [
        ((14.9, 0.1, 14.9), 0.2),
        ((0.1, 14.9, 0.1), 0.2),
        ((5, 5, 5), 0),
        ((0, 5, 10), 10),
        ((1, 3, 9), 8),
        ((15.1, 0.2, 0.3), 0.2),
    ],
)
def test_a_syncs_period_begins_anew_as_it_ends(points, span_s):
    """Its end is its beginning: the span is all of the period but the longest part of it without a burst."""
    syncs = [start - point for start, point in zip(STARTS, points, strict=True)]
    met = bursts_met(made((112, 24), (380, 4), (412, 24), (680, 4), (714, 24), syncs=syncs))
    assert (met.bursts.value, met.span_s.value) == (3, pytest.approx(span_s))


@pytest.mark.parametrize("pods", [[], [("a", 113.0, 405.0, 406.0)], [("a", 90.0, 95.0, 161.0)]])
def test_a_step_that_brings_no_pod_in_time_is_no_data(pods):
    """None was made, one had its first receipt in the next burst, one was there before: no reaction is made up or left out."""
    with pytest.raises(NoData, match=r"since the step up at 00:01:52 .* before the next burst"):
        burst_reactions(made((112, 24), pods=pods))
    assert reactions(made((112, 24), pods=pods)).slowest_s.value is None


ON_LAG = replace(SPEC, metrics=(replace(SPEC.metrics[0], name="s0-kafka-events"),))  # lagThreshold 250


def between_commits(every_s, *, ready=24, read=True, spec=ON_LAG, taken=()):
    """Three bursts of 120 s at 1,000/s: lag is 1,000 messages for each s since the last commit, which come every 5 s."""

    def lag(t):
        return 1000 * ((t + 2) % 5)

    steps = [Step(0.0, 100, "baseline"), *(Step(100.0 + 300 * n, 1000, "burst") for n in range(3))]
    times = [n / 2 for n in range(2000)]
    seen = [(n * every_s, lag(n * every_s)) for n in range(int(1000 / every_s))]
    return Shown(
        policy=SimpleNamespace(max_replicas=24),
        replicas=pd.DataFrame([(0.0, ready), *taken], columns=["t", "ready"]),
        lag=pd.DataFrame([(t, lag(t)) for t in times], columns=["t", "lag"]),
        hpa_syncs=[Sync(t, spec, 24, 24, 24, (Seen(24, ((round(value * 1000),),) if read else None),)) for t, value in seen],
        profile=SimpleNamespace(steps=steps),
        phases=pd.DataFrame([(100.0 + 300 * n, 220.0 + 300 * n, "burst") for n in range(3)], columns=["start", "end", "label"]),
    )


@pytest.mark.parametrize(("every_s", "share", "renewing_s"), [(15, 0, 2), (13, 4 / 4.5, 4)])
def test_syncs_in_step_with_commits_read_one_point(every_s, share, renewing_s):
    """Each sync 2 s after a commit: 2 s of traffic, and nothing of the 4.5 s by which lag goes up and down.

    13 s are three commits less two s: the syncs read each whole second since a commit, up to 4 s.
    """
    found = readings(between_commits(every_s))
    assert (found.bursts.number, found.share.number, found.renewing_s.number) == (3, pytest.approx(share), renewing_s)


@pytest.mark.parametrize("lacking", [{"ready": 12}, {"read": False}, {"spec": SPEC}])
def test_without_all_pods_or_without_readings_there_is_no_data(lacking):
    """A burst with a backlog shows no commits. An HPA of unknown input shows nothing, nor does one on another metric."""
    assert "no burst" in readings(between_commits(15, **lacking)).share.why


def test_a_burst_counts_until_pods_are_taken_away():
    """In the second burst 12 pods go after 90 s; the third begins without them."""
    found = bursts(between_commits(15, taken=[(490.0, 12)]))
    assert [(one.number, one.start, one.end) for one in found] == [(1, 130, 220), (2, 430, 490)]
    assert [one.t for one in found[1].read] == [435, 450, 465, 480]


@pytest.mark.parametrize(("tolerance", "surplus"), [(None, 5400), (0.94, 360)])
def test_the_window_is_renewed_by_a_reading_that_is_no_surplus(tolerance, surplus):
    """At a lagThreshold of 250, 24 pods hold 6,000: the controller's own tolerance makes 5,400 of it, 0.94 makes 360."""
    down = replace(ON_LAG.behavior.down, tolerance=tolerance)
    found = bursts(between_commits(15, spec=replace(ON_LAG, behavior=replace(ON_LAG.behavior, down=down))))
    assert {round(reading.surplus) for one in found for reading in one.read} == {surplus}
    assert [one.renews for one in found] == [tolerance is not None] * 3
    assert [one.below for one in found] == pytest.approx([0.1 if tolerance else 1.0] * 3, abs=0.01)  # 0.5 s of 5 s


def sync(at, proposed, before, after):
    """A sync that read its metrics at ``at`` and wrote 10 ms later."""
    words = RESCALED if after != before else KEPT
    outcome = Line(at + 0.01, words, {"currentReplicas": before, "desiredReplicas": after})
    return Logged(
        Line(at, PROPOSED, {"desiredReplicas": proposed}), outcome, float("-inf"), float("inf"), lost=False, wrote=True
    )


@pytest.mark.parametrize(
    ("syncs", "crossed", "stepped", "parts"),
    [
        # A sync at 10.5 sees an older lag, one at 11.0 asks and is held, one at 11.5 rescales, which is seen at 11.53.
        (
            [(10.0, 4, 4, 4), (10.5, 4, 4, 4), (11.0, 12, 4, 4), (11.5, 12, 4, 12), (12.0, 24, 12, 24)],
            *(10.2, 11.53, (0.3, 0.5, 0.5, 0.03)),
        ),
        # Nothing older, nothing held. A watch may see the step before the controller has logged it.
        ([(10.0, 4, 4, 4), (10.5, 12, 4, 12)], 10.2, 10.505, (0.3, 0, 0, 0.005)),
        # Decided before the crossing that the samples show: the rest is the write.
        ([(10.0, 12, 4, 12)], 10.1, 10.15, (0, 0, 0, 0.05)),
        # A burst long before had a step of its own; the sync that took this one is the nearest to it.
        ([(1.0, 8, 4, 8), (10.5, 24, 8, 24)], 10.2, 10.53, (0.3, 0, 0, 0.03)),
    ],
)
def test_each_part_ends_at_its_sync(syncs, crossed, stepped, parts):
    """A sync is (when, proposed, before, after)."""
    assert split([sync(*one) for one in syncs], crossed, stepped) == pytest.approx(parts)


def test_a_step_that_no_sync_took_is_no_data():
    """The log has a step down, and a step up ten seconds later."""
    with pytest.raises(NoData, match="no sync"):
        split([sync(10.0, 2, 4, 2), sync(20.0, 12, 2, 12)], 9.0, 10.0)


@given(st.lists(st.integers(0, 400), min_size=1, max_size=8, unique=True), st.integers(0, 400), st.integers(0, 400))
def test_the_parts_are_never_negative_and_sum_to_the_wait(times, crossed, wait):
    """Whatever the log holds, the reaction's part is neither longer nor shorter than the parts that it is split into."""
    syncs = [sync(time / 100, 12, 4, 12 if number == len(times) - 1 else 4) for number, time in enumerate(sorted(times))]
    begun, stepped = crossed / 100, crossed / 100 + wait / 100
    try:
        parts = split(syncs, begun, stepped)
    except NoData:
        return
    assert min(parts) >= 0
    assert sum(parts) == pytest.approx(stepped - begun)


def test_of_a_real_reaction_the_parts_sum_to_the_policys():
    """The committed record of a 10x spike: two thirds of a period until the next sync, which saw the lag and took the step."""
    record = Record(FOLDER / "records" / "plateau-lag-4500-d6cad871")
    found = decision(record)
    parts = (found.wait_s, found.older_s, found.held_s, found.write_s)
    assert sum(one.number for one in parts) == pytest.approx(reaction(record).parts[POLICY])
    assert [one.value for one in parts[:3]] == pytest.approx([0.327, 0, 0], abs=0.001)
    assert found.phase.value == pytest.approx(0.655, abs=0.001)
    # Of the pod with the first receipt: 1.2 s until it subscribed, and 0.3 s until it owned partitions.
    told = reaction(record).parts
    assert (told["subscribed"], told["partitions owned"]) == pytest.approx((1.246, 0.316), abs=0.001)
