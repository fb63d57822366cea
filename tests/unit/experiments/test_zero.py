"""From zero and to zero, on a record in which every stamp is written by hand."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.experiments.measure.zero import DECISION, PARTS, from_zero, most_replicas, percentile, to_zero
from tests.unit.measure import built, whole

STEPS = [(0, "baseline"), (10, "arrival"), (12, "idle"), (30, "arrival"), (32, "idle"), (40, "arrival"), (42, "idle")]
EVENTS = [(0, 0, 1010.0), (0, 1, 1010.001), (1, 0, 1030.0), (1, 1, 1040.0)]
REPLICAS = built.replicas((995, 0, 0), (1010.6, 1, 0), (1012, 1, 1), (1015, 0, 0), (1031, 1, 0), (1033, 1, 1), (1038, 0, 0))
PODS = [
    built.pod(1010.7, "a", "ADDED", ready=False),
    built.pod(1016, "a", "DELETED"),
    built.pod(1031.1, "b", "ADDED", ready=False),
    built.pod(1040.5, "b", "DELETED"),
]
MEMBERS = [
    built.report(1011, "a", "started", created=1010.9),
    built.report(1011.4, "a", "subscribed"),
    built.assigned(1012, "a", 0, 1),
    built.report(1031.4, "b", "started", created=1031.3),
    built.report(1031.7, "b", "subscribed"),
    built.assigned(1032.2, "b", 0, 1),
]
FIRST = "which processed the first event of the arrival at"
RECEIPTS = [
    built.receipt("a", 1012.1, 1012.3, 2) | {"first": 0, "last": 1},
    built.receipt("b", 1032.3, 1032.4, 2, partition=1) | {"first": 0, "last": 1},
]


def record(folder, replicas=REPLICAS, members=MEMBERS, receipts=RECEIPTS):
    """Three arrivals: two that find no pod, and one while the pod of the second is leaving."""
    (folder / "ledger" / "events").mkdir(parents=True)
    rows = [(partition, offset, round(t * 1e9)) for partition, offset, t in EVENTS]
    pd.DataFrame(rows, columns=["partition", "offset", "ts"]).to_parquet(folder / "ledger" / "events" / "part.parquet")
    inputs, told = built.profile(1000, 60, *STEPS, (50, "drip"))
    chosen = {**inputs, "policy": whole.scaled(minReplicaCount=0), "scale": {"time": 30}}
    times = {"settling": 980, "driving": 995, "ended": 1070}
    tables = {"transitions": [*replicas, *PODS], "group_events": [*told, *members], "receipts": receipts}
    samples = built.lags({1009: 0, 1010.5: 2, 1029: 1, 1031: 5})
    return built.record(folder, inputs=chosen, times=times, samples=samples, **tables)


def test_an_arrival_is_followed_from_its_first_event_to_the_receipt(tmp_path):
    """Each part as written; they sum to the event's age at its receipt.

    A pod that is leaving may take the event: three arrivals, two from zero, and at most one message waited before them.
    """
    found = from_zero(record(tmp_path))
    first, second = found.parts
    assert (found.from_zero.value, found.lag_before.value) == (2, 1)
    assert list(first) == list(PARTS)
    assert list(first.values()) == pytest.approx([0.6, 0.1, 0.2, 0.5, 0.6, 0.3])
    assert list(second.values()) == pytest.approx([1.0, 0.1, 0.2, 0.4, 0.5, 0.2])
    assert (found.p50.value, found.p95.value) == pytest.approx((2.3, 2.4))
    assert found.least_start.value == pytest.approx(0.2)
    assert (found.part(DECISION, 50).value, found.part(DECISION, 95).value) == pytest.approx((0.6, 1.0))


@pytest.mark.parametrize(
    ("lacking", "why"),
    [
        ({"members": MEMBERS[:3]}, f"b, {FIRST} 1030.000, lacks a stamp"),
        ({"members": [*MEMBERS[:2], *MEMBERS[3:]]}, f"a, {FIRST} 1010.000, lacks a stamp"),
        ({"receipts": RECEIPTS[:1]}, "the first event of the arrival at 1030.000 was never processed"),
        ({"replicas": built.replicas((995, 1, 1))}, "none of 3 arrivals found no pod"),
    ],
)
def test_what_is_missing_is_no_data_and_named(tmp_path, lacking, why):
    """No arrival is left out in silence: that would be the slowest one."""
    found = from_zero(record(tmp_path, **lacking))
    assert (found.p95.value, found.p95.why, found.part(DECISION, 50).why) == (None, why, why)


def test_the_last_way_to_zero_is_counted_by_its_steps(tmp_path):
    """From six by one, then five at once; the way before does not count. A group that stays has none."""
    up = built.replicas((995, 0, 0), (1000, 1, 0), (1002, 0, 0), (1010, 1, 0), (1011, 6, 0), (1015, 5, 6), (1017.5, 0, 5))
    found = to_zero(record(tmp_path, replicas=up))
    names = ("most", "steps", "largest_step", "last_step", "length")
    assert [getattr(found, name).value for name in names] == [6, 2, 5, 5, 2.5]
    stays = record(tmp_path / "stays", replicas=built.replicas((995, 2, 2), (1010, 1, 2)))
    assert to_zero(stays).steps.why == "the group never went to zero"


@pytest.mark.parametrize(
    ("replicas", "most"), [(((995, 0, 0),), 0), (((995, 3, 3), (1052, 1, 3)), 3), (((995, 0, 0), (1051, 1, 0)), 1)]
)
def test_most_replicas_in_a_phase_count_from_its_begin(tmp_path, replicas, most):
    """What was asked for when it began, and what came while it lasted."""
    found = record(tmp_path, replicas=built.replicas(*replicas, (1061, 9, 9)))
    assert most_replicas(found, "drip").value == most
    assert most_replicas(found, "surge").why == "the profile has no phase surge"


@given(st.lists(st.integers(0, 50), min_size=1, max_size=40), st.integers(1, 100))
def test_a_percentile_is_the_least_value_that_so_many_do_not_exceed(values, percent):
    """Nearest rank, by counting."""
    enough = [one for one in sorted(values) if sum(other <= one for other in values) >= len(values) * percent / 100]
    assert percentile(values, percent) == enough[0]
