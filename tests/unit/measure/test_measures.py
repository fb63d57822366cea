"""Measures on a small record in which every stamp is known."""

import copy
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import NoData
from lab.inputs import policy
from lab.inputs.scale import Scale
from lab.inputs.workload import Workload
from lab.judge.aggregate import count_flips
from lab.judge.bounds import REACTION_S, compressed
from lab.measure.cost import busy_seconds, cost
from lab.measure.drain import drain, largest_rise
from lab.measure.overview import all_measures
from lab.measure.reaction.step import PARTS, all_divided, cold_start, reaction
from lab.measure.scaling import scale_events

from .built import pod, receipt, sealed
from .conftest import LAG, REPORTS, TRANSITIONS, build, report

PODLESS = [row for row in TRANSITIONS if row["kind"] != "Pod"]


def without(event):
    """The reports but those of ``event``."""
    return [row for row in REPORTS if row["event"] != event]


def test_the_reaction_is_the_sum_of_its_parts(record):
    """Each part is the difference of its stamps, in order, and they sum to the total."""
    found = reaction(record)
    assert tuple(found.parts) == PARTS
    # 4 x 1,500 x 1.1 = 6,600 is crossed halfway between 600 at 1000 s and 12,600 at 1001 s.
    assert list(found.parts.values()) == pytest.approx([0.5, 1.5, 0.5, 0.5, 1.0, 2.0, 0.5])
    assert (found.total_s.value, found.decided_s.value, found.divided_s.value) == pytest.approx((6.5, 2.0, 2.0 + 4.5 / 30))
    assert found.part("partitions owned").value == found.parts["partitions owned"]


@pytest.mark.parametrize(
    ("seen", "holds"), [((2.85, 4.4), True), ((2.85, 4.6), False), ((1.0, 61.0), False), ((0.0, 89.0), True)]
)
def test_a_reaction_at_quick_turns_red_where_it_does_at_real_time(record, seen, holds):
    """A wait of 2.85 s is 85.5 s, which leaves 4.5 s for a start that no scale divides. As seen all of them are below 90 s."""
    assert (all_divided(record, *seen) < compressed(REACTION_S, 30)) is holds


@given(seconds=st.tuples(*[st.floats(0, 100)] * 3), time=st.sampled_from([1, 5, 15, 30]))
def test_a_compressed_reaction_is_the_whole_over_the_scale(seconds, time):
    """Of a wait, a declared start and one that takes the time it takes: the scale divides the first two."""
    wait, declared, own = seconds
    inputs = SimpleNamespace(workload=Workload(start_s=declared))
    seen: Any = SimpleNamespace(scale=Scale("any", time, 1), inputs=inputs)
    assert all_divided(seen, wait / time, declared / time + own) == pytest.approx(sum(seconds) / time)
    inputs.workload = Workload(command="mine", start_s=declared)  # which knows nothing of a scale
    assert all_divided(seen, wait / time, declared + own) == pytest.approx(sum(seconds) / time)


@pytest.mark.parametrize("late", [{1005: 1008}, {1006: 1006.8, 1005: 1020}])
def test_a_reaction_ends_with_the_first_receipt(tmp_path, late):
    """At 1006.5, whenever the pod was Ready. What is reported after that is no part of it."""
    moved = [[row | {"t": late.get(row["t"], row["t"])} for row in rows] for rows in (TRANSITIONS, REPORTS)]
    found = reaction(build(tmp_path, *moved))
    assert found.total_s.value == pytest.approx(6.5)
    assert sum(found.parts.values()) == pytest.approx(6.5)


def test_the_first_new_pod_is_the_one_whose_receipt_is_the_first(tmp_path):
    """Of two, the one that was created later, Ready later and assigned later; a pod from before the step is no new one."""
    others = [pod(1003, "quick", "ADDED", ready=False), pod(1009, "quick"), pod(985, "old", "ADDED")]
    told = [report(1004, "quick", "started", created=1003.2), report(1004, "quick", "subscribed")]
    told += [report(1006.1, "quick", "assigned", partitions=[1], owned=1, seconds=0.1)]
    receipts = [receipt("new", 1006.2, 1006.5, 100), receipt("quick", 1006.2, 1006.3, 9, 1), receipt("old", 1001, 1001.1, 9, 2)]
    transitions = sorted([*TRANSITIONS, *others], key=lambda row: row["t"])
    whole = build(tmp_path, transitions, sorted([*REPORTS, *told], key=lambda row: row["t"]))
    pd.DataFrame([one | {"first": 0, "last": 99, "checksum": 1} for one in receipts]).to_parquet(
        whole.folder / "receipts.parquet"
    )
    found = reaction(sealed(whole.folder))
    assert (found.pod, found.total_s.value) == ("quick", pytest.approx(6.3))


def test_the_crossing_is_by_the_hpas_own_tolerance(record):
    """With a tolerance of 0.5, lag has to pass 4 x 1,500 x 1.5 = 9,000, which it does 0.7 s after the spike began."""
    content = copy.deepcopy(record.policy.content)
    content["spec"]["advanced"] = {"horizontalPodAutoscalerConfig": {"behavior": {"scaleUp": {"tolerance": "0.5"}}}}
    own = sealed(record.folder, inputs=replace(record.inputs, policy=policy.parse(content, "a test")))
    assert reaction(own).parts["lag crosses"] == pytest.approx(0.7)


def test_where_another_trigger_decided_first_no_part_is_lags(record):
    """Lag never crosses a lagThreshold of a million: alone no reaction; beside arrivals all of the wait is for a decision."""
    content = copy.deepcopy(record.policy.content)
    content["spec"]["triggers"][0]["metadata"]["lagThreshold"] = "1000000"
    alone = sealed(record.folder, inputs=replace(record.inputs, policy=policy.parse(content, "a test")))
    assert "lag never crossed" in reaction(alone).total_s.why
    query = {"serverAddress": "http://prometheus.monitoring:9090", "query": "sum(rate(arrivals[2s]))", "threshold": "70"}
    content["spec"]["triggers"].append({"type": "prometheus", "metadata": query})
    beside = sealed(record.folder, inputs=replace(record.inputs, policy=policy.parse(content, "a test")))
    assert [reaction(beside).parts[part] for part in PARTS[:3]] == pytest.approx([0, 2.0, 0.5])


@pytest.mark.parametrize(
    ("measured", "change", "why"),
    [
        (lambda one: reaction(one).total_s, {"transitions": TRANSITIONS[:1]}, "never asked for more replicas"),
        (lambda one: reaction(one).part("subscribed"), {"transitions": TRANSITIONS[:1]}, "never asked for more replicas"),
        (lambda one: reaction(one).total_s, {"reports": without("assigned")}, "no stamp of: partitions owned"),
        (lambda one: reaction(one).total_s, {"transitions": PODLESS}, "since the step up at 00:16:42 has a receipt"),
        (lambda one: cold_start(one).start, {"reports": without("subscribed")}, "no pod created after the baseline"),
        (lambda one: drain(one).seconds, {"lag": {t: max(value, 2_000) for t, value in LAG.items()}}, "never came back"),
    ],
)
def test_what_did_not_happen_is_no_data(tmp_path, measured, change, why):
    """A group that never scaled, a pod that never worked, and a lag that never came back to one lagThreshold."""
    found = measured(build(tmp_path, **{"transitions": TRANSITIONS, "reports": REPORTS} | change))
    assert found.value is None
    assert why in found.why


def test_the_drain_ends_at_one_lag_threshold(record):
    """From the spike's end to the first sample at or below 1,500; one step up, one down, no flip, back at the floor."""
    found = drain(record)
    assert (found.peak_lag.value, found.peak_after_s.value) == (150_000, 20)
    assert found.seconds.value == 40
    assert found.largest_rise.value == 900
    counts = {"scale_ups": 1, "scale_downs": 1, "flips": 0}
    assert scale_events(record).to_dict() == counts | {
        "above_floor_at_baseline": 0,
        "above_floor_at_end": 0,
        "most_replicas": 24,
    }


def test_a_cold_start_is_the_median_pods(tmp_path):
    """Created at 1002.5, subscribed at 1003.9, first partition at 1006, first receipt at 1006.5."""
    told = [*REPORTS, report(1003.9, "new", "subscribed")]
    found = cold_start(build(tmp_path, TRANSITIONS, told))
    assert (found.pods.value, found.start.value, found.join.value, found.total.value, found.slowest.value) == pytest.approx(
        (1, 1.4, 2.1, 4.0, 4.0)
    )


def test_replicas_at_a_time_are_those_of_the_change_before_it(record):
    """Wanted and Ready; before the first that was seen there is no data."""
    found = [(record.wanted_at(t), record.ready_at(t)) for t in (980, 1001.9, 1002, 1065, 2000)]
    assert found == [(4, 4), (4, 4), (24, 4), (4, 24), (4, 4)]
    with pytest.raises(NoData, match=r"first seen 10\.0 s later"):
        record.wanted_at(970)


def test_cost_is_the_life_of_every_pod(record):
    """One pod seen from 1002.5 to the end at 1130, busy for 0.3 s."""
    found = cost(record)
    assert found.pod_minutes.value == pytest.approx(127.5 / 60)
    assert found.idle_ratio.value == pytest.approx(1 - 0.3 / 127.5)


def test_a_pod_that_is_behind_throughout_is_not_idle():
    """Batches of 100 ms with 12 ms between them, for its receipts and its next fetch; after the last one it is idle."""
    batches = [{"pod": "a", "partition": 0, "start": n * 0.112, "end": n * 0.112 + 0.1} for n in range(100)]
    batches += [one | {"partition": 1} for one in batches]  # a batch may have a receipt for each of several partitions
    last = batches[99]["end"]
    assert busy_seconds(pd.DataFrame(batches), 0.0, 20.0) == pytest.approx(last)


def test_a_pod_that_waits_for_work_is_idle():
    """A pause of more than 20 ms is one; another pod's batch does not fill it; what is outside of the span does not count."""
    rows = [("a", 0.0, 1.0), ("b", 1.01, 1.5), ("a", 1.05, 2.0), ("a", 9.0, 12.0)]
    batches = pd.DataFrame(rows, columns=["pod", "start", "end"])
    assert busy_seconds(batches, 0.5, 10.0) == pytest.approx(0.5 + 0.49 + 0.95 + 1.0)


def test_a_missing_table_is_no_data(record):
    """A record without a reconciliation says so in measures.json and passes nothing."""
    found = all_measures(record)
    assert found["delivery"] == {"no data": f"{record.folder.name} has no reconciliation.json"}
    assert found["reaction"]["pod"] == "new"


@given(st.lists(st.integers(1, 24), max_size=30))
def test_flips_are_valleys(levels):
    """As many flips as there are valleys in the curve."""
    curve = [level for level, before in zip(levels, [None, *levels], strict=False) if level != before]
    valleys = sum(1 for a, b, c in zip(curve, curve[1:], curve[2:], strict=False) if a > b < c)
    assert count_flips(later > earlier for earlier, later in pairwise(levels) if earlier != later) == valleys


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=50))
def test_the_largest_rise_is_the_worst_step_back(values):
    """The most any later value exceeds an earlier one; 0 for a fall."""
    worst = max(later - earlier for i, earlier in enumerate(values) for later in values[i:])
    assert largest_rise(pd.Series(values)) == worst
