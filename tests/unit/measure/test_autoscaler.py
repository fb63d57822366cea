"""How an autoscaler came through a trial's faults, on records of which every row is known."""

import json
import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lab.inputs.faults import CONTROLLERS
from lab.inputs.policy import parse
from lab.inputs.scale import Scale
from lab.judge.measure import Runs
from lab.measure.autoscaler import back_s, fewest_waiting, invariants, late, outside_bounds, stranded
from lab.model.hpa_log import KEPT, RESCALED, Line
from lab.record.trial import Fault
from tests.unit.model.test_hpa_log import BEGUN, synced

from . import whole
from .built import deployment, lags, record, replicas, sample
from .test_faults import AWAY, PLANNED, SCHEDULE, under
from .test_kills import done

TO_ZERO = {
    "inputs": {"policy": whole.scaled(minReplicaCount=0), "faults": SCHEDULE},
    "transitions": replicas((0, 4, 4), (60, 0, 0)),
}


def logged(folder, partitions, times):
    """Put events of these partitions and times, ns, into the ledger of the record in ``folder``."""
    events = folder / "ledger" / "events"
    events.mkdir(parents=True)
    pd.DataFrame({"partition": partitions, "offset": range(len(times)), "ts": times}).to_parquet(events / "0.parquet")


@pytest.mark.parametrize(
    ("lag", "steps"),
    [
        ({58.5: 9, 59: 5, 59.5: 7}, 1),
        ({58.5: 9, 59: 0, 59.5: 7}, 0),
        ({58: 9}, 1),
        ({57.5: 9}, None),
        ({50: 9, 61: 9}, None),
    ],
)
def test_a_step_to_zero_is_held_against_the_lag_before_it(tmp_path, lag, steps):
    """Lag all the while strands the group; lag that was gone for a moment does not. An unknown lag is no data."""
    made = record(tmp_path, faults=(AWAY,), samples=lags(lag), **TO_ZERO)
    assert stranded(made).value == steps
    assert steps is not None or "no sample of lag" in stranded(made).why


AT_FIVE = whole.scaled(minReplicaCount=0)
AT_FIVE["spec"]["triggers"][0]["metadata"]["activationLagThreshold"] = "5"


@pytest.mark.parametrize(
    ("policy", "lag", "steps"),
    [(AT_FIVE, 3, 0), (AT_FIVE, 5, 0), (AT_FIVE, 6, 1), (whole.hpa(1, 4), 0, 0), (whole.hpa(1, 4), 1, 1)],
)
def test_a_step_to_zero_is_held_against_the_lag_that_the_policy_takes_for_none(tmp_path, policy, lag, steps):
    """A trigger of lag is active above its activation. A policy without one takes no lag for none."""
    more = TO_ZERO | {"inputs": {"policy": policy, "faults": SCHEDULE}}
    assert stranded(record(tmp_path, faults=(AWAY,), samples=lags({59: lag}), **more)).value == steps


def test_without_a_schedule_of_faults_there_is_no_data(tmp_path):
    """A trial that nothing was planned for may do as its policy says."""
    assert "no schedule of faults" in stranded(record(tmp_path)).why


def triggers(*each):
    """A policy to zero with two triggers: the first is active above no message, the second above 1,000."""
    made = whole.scaled(minReplicaCount=0)
    (one,) = made["spec"]["triggers"]
    own = zip(each, ("0", "1000"), strict=True)
    made["spec"]["triggers"] = [one | {"metadata": one["metadata"] | more | {"activationLagThreshold": n}} for more, n in own]
    return made


TOPICS = {"policy": triggers({}, {"topicFromEnv": "TOPIC_2"}), "workload": {"topics": 2}, "partitions": 6}
HALVES = {"policy": triggers({"partitionLimitation": "0-1"}, {"partitionLimitation": "2,3"})}


@pytest.mark.parametrize("inputs", [TOPICS, HALVES], ids=["topics", "halves"])
@pytest.mark.parametrize(
    ("first", "second", "steps"), [(600, 0, 1), (0, 600, 0), (0, 1000, 0), (0, 1001, 1), (1, 1000, 1), (0, 0, 0)]
)
def test_each_trigger_is_held_against_the_lag_that_it_counts(tmp_path, inputs, first, second, steps):
    """A group is active by any of them. The first has the first half of the partitions, and the second the other."""
    last = str(inputs.get("partitions", 4) - 1)
    seen = [sample(59, "kafka_consumergroup_lag", lag, partition=number) for number, lag in (("1", first), (last, second))]
    more = TO_ZERO | {"inputs": inputs | {"faults": SCHEDULE}}
    made = record(tmp_path, faults=(AWAY,), samples=lags({59: first + second}) + seen, **more)
    assert stranded(made).value == steps


SOME = {"policy": triggers({"partitionLimitation": "0"}, {"partitionLimitation": "2,3"})}
BEYOND = TOPICS | {"policy": triggers({"partitionLimitation": "0-4"}, {"topicFromEnv": "TOPIC_2"})}


@pytest.mark.parametrize(
    ("inputs", "lag"),
    [(SOME, {"1": 1400, "2": 600}), (BEYOND, {"3": 300, "4": 300}), (BEYOND, {"3": 600}), (BEYOND, {"4": 600})],
)
def test_lag_that_no_trigger_counts_is_none(tmp_path, inputs, lag):
    """On a partition that none names, or that is of another topic."""
    seen = [sample(59, "kafka_consumergroup_lag", messages, partition=number) for number, messages in lag.items()]
    seen += [sample(59, "kafka_consumergroup_lag", 0, partition="0")]
    more = TO_ZERO | {"inputs": inputs | {"faults": SCHEDULE}}
    assert stranded(record(tmp_path, faults=(AWAY,), samples=lags({59: sum(lag.values())}) + seen, **more)).value == 0


@pytest.mark.parametrize(("lag", "steps"), [(600, None), (0, 0)])
def test_lag_of_which_nobody_knows_what_triggers_count_of_it_is_no_data(tmp_path, lag, steps):
    """Without any there is none to be counted. Two triggers on all of it are active above the lower of their activations."""
    more = TO_ZERO | {"inputs": TOPICS | {"faults": SCHEDULE}}
    found = stranded(record(tmp_path / "two", faults=(AWAY,), samples=lags({59: lag}), **more))
    assert found.value == steps
    assert steps is not None or "no sample of the lag that a trigger counts" in found.why
    both = TO_ZERO | {"inputs": {"policy": triggers({}, {}), "faults": SCHEDULE}}
    assert stranded(record(tmp_path / "both", faults=(AWAY,), samples=lags({59: lag}), **both)).value == (lag > 0)


def lasting(floor=0, **more):
    """A policy on the persistent-lag scaler, to zero unless it has another floor."""
    made = whole.scaled(minReplicaCount=floor)
    shared = {"scalerAddress": "scaler:6000", "sustainSeconds": "10", **whole.NAMES}
    made["spec"]["triggers"] = [{"type": "external", "metadata": shared | more}]
    return made


def test_a_trigger_on_persistent_lag_has_an_activation_too(tmp_path):
    """In messages; from an age on nobody knows. The lower of two activations counts."""
    messages = lasting(lagThreshold="100", activationLagThreshold="50")
    both = lasting(lagThreshold="100")
    both["spec"]["triggers"] += triggers({}, {})["spec"]["triggers"][1:]
    aged = lasting(lagSeconds="30", activationLagSeconds="5")
    policies = ((messages, 50, 0), (messages, 51, 1), (both, 600, 1), (lasting(lagSeconds="30"), 1, 1), (aged, 1, None))
    for number, (policy, lag, steps) in enumerate(policies):
        more = TO_ZERO | {"inputs": {"policy": policy, "faults": SCHEDULE}}
        assert stranded(record(tmp_path / str(number), faults=(AWAY,), samples=lags({59: lag}), **more)).value == steps


def owner(t, desired, generation=None, uid="that"):
    """A watch event of the consumer's Deployment, which tells its generation, if any."""
    row = deployment(float(t), desired, desired)
    metadata = {"uid": uid} | ({} if generation is None else {"generation": generation})
    return row | {"object": json.dumps(json.loads(row["object"]) | {"metadata": metadata})}


def rescaled(folder, rows, steps, **policy):
    """A record of these watch events of the owner, and of an HPA's log with these steps: when, from and to which replicas."""
    inputs = {"faults": SCHEDULE, "policy": whole.scaled(**policy)}
    made = record(folder, inputs=inputs, faults=(AWAY,), transitions=rows, samples=lags({59: 0}))
    vars(made)["hpa_lines"] = [Line(t, RESCALED, {"currentReplicas": one, "desiredReplicas": to}) for t, one, to in steps]
    return made


BOUNDS = "the replicas stay within the policy's bounds, whatever is struck"
TO_NONE = "no group is scaled to zero while there is lag"


@pytest.mark.parametrize(
    ("seen", "holds"),
    [
        ([(0, 4, 1), (60, 6, 2)], True),
        ([(0, 4, 1), (50, 4, 1), (60, 6, 2), (70, 6, 2), (80, 6, 3)], True),
        ([(0, 4, 1), (60, 6, 3)], None),
        ([(0, 4, 1), (60, 4, 3), (70, 4, 3)], None),  # back where it was
        ([(0, 4, 1), (60, 6)], True),  # it does not tell
        ([(0, 4), (60, 6, 3)], True),
        ([(0, 4, 1), (60, 4, 3, "this")], True),  # another one of its name
        ([(0, 4, 1), (60, 4, 3, "here")], True),
        ([(0, 4, 1), (100, 6, 3)], None),
        ([(0, 4, 1), (101, 0, 3)], True),  # it was taken down: the trial ended at 100
    ],
)
def test_changes_of_the_replicas_that_the_watch_missed_are_no_pass(tmp_path, seen, holds):
    """Each change makes a generation. What was missed while the API server was away may have been out of bounds, or none."""
    rows = [owner(*one) for one in seen]
    made = record(tmp_path, inputs={"faults": SCHEDULE}, faults=(AWAY,), transitions=rows, samples=lags({59: 0}))
    found = {words: one.holds for one, words in invariants([Runs([made])])}
    assert (found[BOUNDS], found[TO_NONE]) == (holds, holds)
    why = "" if holds else "the watch did not see every change of the replicas"
    assert (stranded(made).why, outside_bounds(made).why) == (why, why)


@pytest.mark.parametrize(
    ("steps", "holds"),
    [
        ([(59.0, 4, 9), (60.5, 9, 6)], True),
        ([(58.0, 3, 4), (59.0, 4, 9), (60.5, 9, 6)], True),  # after the last that was seen
        ([(59.0, 4, 9)], None),
        ([(59.0, 4, 9), (60.5, 8, 6)], None),  # one between them is not there
        ([(59.0, 4, 9), (60.5, 9, 7)], None),
        ([(59.0, 5, 9), (60.5, 9, 6)], None),
        ([(59.0, 4, 6)], None),  # one, for two
        ([(59.0, 4, 9), (60.5, 9, 5)], None),
        ([(56.1, 2, 3), (58.0, 3, 4), (59.0, 4, 9), (60.5, 9, 6)], True),
        ([(56.5, 4, 9), (60.5, 9, 6)], True),  # within a second of what the watch saw
        ([(56.0, 4, 9), (60.5, 9, 6)], None),
        ([(55.9, 4, 9), (60.5, 9, 6)], None),
        ([(59.0, 4, 9), (61.0, 9, 6)], None),
        ([(59.0, 4, 9), (61.5, 9, 6)], None),
        ([(59.0, 4, 9), (62.0, 9, 6)], None),
        ([(59.0, 4, 1), (60.5, 1, 6)], True),  # at the bounds
        ([(59.0, 4, 100), (60.5, 100, 6)], True),
        ([(59.0, 4, 101), (60.5, 101, 6)], None),
        ([(59.0, 4, 500), (60.5, 500, 6)], None),  # out of bounds
        ([(59.0, 4, 0), (60.5, 0, 6)], None),
    ],
)
def test_what_the_watch_missed_is_known_by_the_hpas_log(tmp_path, steps, holds):
    """From 4 to 6 replicas in two steps, which the log has with what they began from."""
    rows = [owner(57, 4, 1), owner(60, 6, 3)]
    made = rescaled(tmp_path, rows, steps)
    others = [Line(59.5, words, {"currentReplicas": 1, "desiredReplicas": 1}) for words in ("", KEPT, "~")]
    vars(made)["hpa_lines"] = sorted([*made.hpa_lines, *others], key=lambda line: line.t)
    assert outside_bounds(made).value == (0 if holds else None)
    assert stranded(made).value == (0 if holds else None)


def test_a_line_of_the_log_stands_for_one_change(tmp_path):
    """From 4 to 9 and back the watch saw, and of two further changes it saw nothing but that there were two."""
    rows = [owner(56.0, 4, 1), owner(56.3, 9, 2), owner(56.7, 4, 3), owner(60, 4, 5), owner(60.5, 4, 7)]
    own, others, last = [(56.25, 4, 9), (56.65, 9, 4)], [(58.0, 4, 5), (59.2, 5, 4)], [(60.1, 4, 5), (60.3, 5, 4)]
    for number, (steps, holds) in enumerate(((own, None), (own + others, None), (own + others + last, 0))):
        assert outside_bounds(rescaled(tmp_path / str(number), rows, steps)).value == holds
    assert outside_bounds(rescaled(tmp_path / "seen", rows[:4], own)).value is None  # both lines are of what the watch saw


def test_a_line_that_one_missed_change_took_is_gone_for_the_next(tmp_path):
    """Two changes are missed until 60, and two later. With a line of the first the last line would lead on."""
    seen, steps = [owner(58, 4, 1), owner(60, 4, 3), owner(60.2, 4, 5)], [(59.4, 4, 5), (59.8, 5, 4), (60.3, 5, 4)]
    assert outside_bounds(rescaled(tmp_path / "first", seen, steps)).value is None
    seen = [owner(58, 4, 1), owner(60, 6, 3), owner(60.1, 5, 4), owner(60.4, 7, 6)]
    steps, last = [(59.4, 4, 5), (59.8, 5, 6), (60.05, 6, 5)], (60.3, 6, 7)
    assert outside_bounds(rescaled(tmp_path / "second", seen, [*steps, last])).value is None
    assert outside_bounds(rescaled(tmp_path / "whole", seen, [*steps, (60.2, 5, 6), last])).value == 0


def test_an_owner_without_a_generation_takes_no_line_of_the_log(tmp_path):
    """Nobody knows how often it was changed."""
    rows = [owner(59, 4), owner(59.2, 9), owner(59.3, 9), owner(59.5, 4, 1), owner(60, 4, 3)]
    assert outside_bounds(rescaled(tmp_path, rows, [(59.6, 4, 9), (59.8, 9, 4)])).value == 0


def test_a_group_that_begins_with_no_replica_is_within_its_bounds(tmp_path):
    """The count that a missed change began from is none that it led to."""
    made = rescaled(tmp_path, [owner(57, 0, 1), owner(60, 6, 3)], [(59.0, 0, 9), (60.5, 9, 6)], minReplicaCount=0)
    assert outside_bounds(made).value == 0


def test_what_the_watch_missed_hides_no_breach(tmp_path):
    """That which it saw: a step to none with lag, below the floor."""
    inputs = {"faults": SCHEDULE, "policy": whole.scaled(minReplicaCount=1)}
    rows = [owner(0, 4, 1), owner(60, 0, 3)]
    made = record(tmp_path, inputs=inputs, faults=(AWAY,), transitions=rows, samples=lags({59: 5}))
    assert (stranded(made).value, outside_bounds(made).value) == (1, 1)


@pytest.mark.parametrize(
    ("produced", "receipts", "steps"),
    [
        ([50, 51], [(0, 0, 55), (1, 1, 70)], 1),  # the second waited through the step
        ([50, 51], [(0, 0, 55)], 1),  # and so does one that is never processed
        ([50, 51], [(0, 1, 59.9)], 0),  # done a moment before
        ([50, 59], [(0, 0, 55), (1, 1, 70)], 0),  # nothing waited until 59
        ([50, 58.5], [(0, 0, 59), (1, 1, 70)], 1),  # one or the other did, at each moment
        ([50, 60], [(0, 0, 60)], 1),  # the second came as the first was done
        ([50], [(0, 0, 60)], 0),  # done at that moment
        ([40, 51], [(0, 0, 45), (1, 1, 70)], 1),  # nothing waited until 51, which was long before
    ],
)
def test_a_step_to_zero_is_held_against_what_the_log_and_the_receipts_say(tmp_path, produced, receipts, steps):
    """Where the exporter was away, and where it says otherwise."""
    own = [done("a", 0, *one) for one in receipts]
    for number, samples in enumerate((lags({40: 5}), lags({59: 5 * (not steps)}))):
        made = record(tmp_path / str(number), faults=(AWAY,), samples=samples, receipts=own, **TO_ZERO)
        log = np.zeros(len(produced), int), np.arange(len(produced)), (np.array(produced) * 1e9).astype(int)
        vars(made)["event_parts"] = lambda *_, log=log: iter([log])
        assert stranded(made).value == steps


LENGTHS = st.integers(0, 12) | st.just(math.inf)
SPAN = st.tuples(st.integers(0, 30), LENGTHS).map(lambda one: (one[0], sum(one)))


@example([[(50, 59), (51, 59.5), (52, 70), (53, math.inf)]], [60])
@given(st.lists(st.lists(SPAN, max_size=6), max_size=3), st.lists(st.integers(0, 30), max_size=3))
def test_the_fewest_that_waited_are_those_of_the_quietest_moment(parts, times):
    """Whatever part an event is in: counted at each half second of two, as nothing begins or ends between."""
    every = [one for part in parts for one in part]
    moments = np.arange(-2.0, 0.1, 0.5)
    expected = [min(sum(at <= t + ago < over for at, over in every) for ago in moments) for t in times]
    lives = [(np.array([at for at, _ in part]), np.array([over for _, over in part])) for part in parts]
    assert fewest_waiting(lives, times) == expected


def decided(syncs, *faults, floor=1, end=None):
    """A record of these syncs and faults, of a controller whose window down is 10 s; driven from BEGUN until the last sync."""
    found: Any = SimpleNamespace(trial=SimpleNamespace(faults=faults), inputs=SimpleNamespace(faults=SCHEDULE))
    found.scale, found.policy = Scale("quick", 30, 1), SimpleNamespace(min_replicas=floor)
    found.driven, found.end, found.hpa_syncs = BEGUN, syncs[-1].at if end is None else end, syncs
    return found


def test_an_hpa_is_back_once_its_decisions_are_the_models():
    """For good. A sync that failed is no decision, and syncs count from when all had time to come back."""
    away = replace(AWAY, t=BEGUN + 1, until=BEGUN + 2.2)
    syncs = [one for one in synced(*[200] * 300) if not 1 < one.at - BEGUN < 4]
    assert (back_s(decided(syncs, away)).value, late(decided(syncs, away)).value) == (pytest.approx(1.8), 0)
    wrong = [replace(one, desired=one.desired + (2 < one.at - BEGUN < 20)) for one in syncs]
    found = back_s(decided(wrong, away)).value
    assert found == pytest.approx(17.8)
    assert late(decided(wrong, away)).value == pytest.approx((found - 15) / 0.5)
    assert "decided nothing" in back_s(decided(syncs[:2], away)).why
    once = [replace(one, desired=one.desired + (18 < one.at - BEGUN < 20)) for one in syncs]
    assert back_s(decided(once, away)).value == pytest.approx(17.8)
    assert "otherwise than the model" in back_s(decided([replace(one, desired=9) for one in syncs], away)).why
    assert back_s(decided(syncs, replace(away, until=BEGUN + 4))).value == 0.5  # a sync at its end was before it
    soon = [replace(one, at=one.at - BEGUN + 1) for one in syncs]
    assert back_s(decided(soon, replace(away, t=2.0, until=2.2))).value == pytest.approx(2.8)


@pytest.mark.parametrize(
    ("component", "readiness", "back"),
    [
        ("lag-scaler", [(-9, True), (1.5, False), (20, True)], 6),  # the kubelet let it wait
        ("lag-scaler", [(1.5, False), (2, True), (3, False), (20, True)], 23.8),  # it was Ready, and ended of itself
        ("lag-scaler", [(17.5, False), (20, True)], 23.8),  # too late to be the fault's
        ("lag-scaler", [(-9, False), (0, True)], 23.8),
        ("lag-scaler", [(1.5, False)], None),  # it never was again
        ("lag-exporter", [(1.5, False), (20, True)], 23.8),  # no trigger has its value from it
        ("keda-operator", [(1.5, False), (20, True)], 23.8),  # it is no pod
    ],
)
def test_an_hpa_may_wait_for_a_pod_that_was_struck_until_it_is_ready(component, readiness, back):
    """It decides from 26 s on, by the lag scaler, and the pod was stopped from 1 to 2.2 s."""
    stopped = replace(AWAY, fault="sigstop", component=component, t=BEGUN + 1, until=BEGUN + 2.2)
    found = decided([one for one in synced(*[200] * 300) if not 1 < one.at - BEGUN < 26], stopped)
    pod = SimpleNamespace(readiness=tuple((BEGUN + at, ready) for at, ready in readiness))
    found.pods_of = lambda app: {"x": pod} if app == component else {}
    found.policy = parse(lasting(floor=1, lagThreshold="100"), "x")
    assert back_s(found).value == (None if back is None else pytest.approx(back))


def test_an_hpa_that_decides_nothing_for_long_is_not_back():
    """Longer than the 15 s that a component has, and a sync. A policy that goes to zero has times without any."""
    away = replace(AWAY, t=BEGUN + 1, until=BEGUN + 2.2)
    syncs = synced(*[200] * 300)
    until_2_5 = [one for one in syncs if one.at - BEGUN < 3]
    assert back_s(decided(until_2_5, away, end=BEGUN + 2.5 + 15.5)).value == pytest.approx(0.3)
    assert back_s(decided(until_2_5, away, end=BEGUN + 2.5 + 16)).value is None
    paused = [one for one in syncs if not 10 <= one.at - BEGUN < 26]
    assert back_s(decided(paused, away)).value == pytest.approx(23.8)
    assert back_s(decided(paused, away, floor=0)).value == pytest.approx(0.3)


def test_a_controller_that_was_killed_begins_anew():
    """It has forgotten that it scaled up by 4 a second ago, and scales up again, as the model does without that memory."""
    before, anew = synced(2400), [replace(one, at=one.at + 3, scaled_at=BEGUN + 3) for one in synced(2400, replicas=6)]
    killed_then = Fault(BEGUN + 1, "sigkill", component=CONTROLLERS, until=BEGUN + 2, injection=PLANNED[2])
    assert back_s(decided(before + anew, killed_then)).value == pytest.approx(1)
    assert back_s(decided(before + anew, replace(killed_then, component="keda-operator"))).value is None
    assert back_s(decided(before + anew, replace(killed_then, fault="sigstop"))).value is None
    assert back_s(decided(before + anew, replace(killed_then, t=BEGUN - 1, until=BEGUN))).value == pytest.approx(3)


def test_what_must_hold_of_the_replicas_is_said_of_each_trial(tmp_path):
    """Three claims of the replicas, of which each holds in a trial that its faults did nothing to."""
    samples = [sample(90, "kafka_consumergroup_lag", 0, partition="0")]
    made = under(tmp_path, [done("a", 0, 0, 99, 99.0)], transitions=replicas((0, 4, 4)), samples=samples)
    logged(tmp_path, 0, np.repeat(50, 100) * 10**9)
    vars(made)["hpa_syncs"] = [replace(one, at=one.at - BEGUN + 141) for one in synced(200, 200, 200, 200)]
    found = [one for one, _ in invariants([Runs([made])])]
    assert [(one.operator, one.bound, one.quantity.value) for one in found] == [("==", 0, 0)] * 2 + [("<=", 3, 0)]
