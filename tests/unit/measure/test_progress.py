"""What commits show of a consumer that writes no receipts: how finely, when a new pod is at work, and what is left."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.charts.breakdown import reaction_breakdown
from lab.inputs import own_consumer
from lab.inputs.own_consumer import BLACK_BOX, OFF
from lab.inputs.workload import Workload
from lab.measure.delivery import COMMITTED, EXACTLY_ONCE, guarantee
from lab.measure.drain import drain, ideal_drain_s
from lab.measure.progress import first_commit, gaps_s, progress
from lab.measure.reaction.step import COMMIT, reaction
from lab.record.reports import Commit, Report
from lab.record.trial import Offsets

from . import built
from .conftest import END, LAG, REPORTS, TRANSITIONS, build, report

WORK = {"command": "true", "rung": BLACK_BOX}


def committed(t, look, offsets, ends):
    """What the observer says."""
    by_name = ({str(number): value for number, value in row.items()} for row in (offsets, ends))
    return report(t, "observer", "committed", **dict(zip(("offsets", "ends"), by_name, strict=True)), look=look)


def seen(t, pod, *partitions, look, event="assigned"):
    """What the observer saw a pod get or lose."""
    return report(t, pod, event, partitions=list(partitions), owned=len(partitions), look=look)


SEEN = [
    *(row for row in REPORTS if row["event"] not in ("started", "subscribed", "assigned")),
    seen(979, "old", 0, 1, look=1),
    committed(980, 2, {0: 10, 1: 10}, {0: 15, 1: 10}),
    seen(1006, "old", 1, look=9, event="revoked"),
    seen(1006, "new", 1, look=9),
    committed(1006.1, 9, {1: 20}, {1: 90}),  # of the one before: it was seen in the same look
    committed(1008.5, 12, {0: 60, 1: 30}, {0: 90, 1: 90}),
    committed(1010.5, 14, {0: 90, 1: 90}, {0: 90, 1: 90}),
    committed(1050.5, 99, {0: 100}, {0: 100}),
]


@pytest.fixture
def black_box(tmp_path):
    """The record of the other measures, of a consumer that tells nothing: it was looked at."""
    told = build(tmp_path / "told", TRANSITIONS, REPORTS)
    rows = sorted(SEEN, key=lambda row: row["t"])
    samples = built.lags(LAG) + [built.sample(t, "kafka_consumergroup_lag", lag, partition="0") for t, lag in LAG.items()]
    inputs = told.inputs.to_dict() | {"workload": told.inputs.workload.to_dict() | WORK}
    return built.record(
        tmp_path / "seen",
        inputs=type(told.inputs).from_dict(inputs, "a test"),
        offsets={0: Offsets(100, 100), 1: Offsets(9_900, 9_898)},
        times={"settling": 970, "driving": 975, "ended": 1130},
        transitions=TRANSITIONS,
        group_events=rows,
        samples=samples,
    )


def test_a_reaction_of_a_black_box_ends_with_the_first_commit_of_a_new_pod(black_box):
    """The parts that it does not tell are in the next; the commit of the owner before is not its own."""
    found = reaction(black_box)
    assert (found.pod, found.total_s.value) == ("new", pytest.approx(8.5))
    assert list(found.parts) == ["lag crosses", "KEDA and HPA decide", "pod created", "partitions owned", COMMIT]
    assert list(found.parts.values()) == pytest.approx([0.5, 1.5, 0.5, 3.5, 2.5])
    assert reaction_breakdown(found).to_dict()["title"]


def test_what_is_left_and_how_finely_it_is_seen(black_box):
    """A partition that had nothing left to commit says nothing of the time between commits."""
    found = progress(black_box)
    gaps = sorted([1008.5 - 980, 1010.5 - 1008.5, 1008.5 - 1006.1, 1010.5 - 1008.5])
    assert sorted(gaps_s(black_box.commits)) == pytest.approx(gaps)
    assert found.resolution_s.value == pytest.approx((gaps[1] + gaps[2]) / 2)
    assert (found.longest_s.value, found.uncommitted.value) == (pytest.approx(28.5), 2)


def test_what_needs_receipts_has_no_data_and_says_what_stands_in_its_place(black_box):
    """All is committed, or not; the best drain takes each partition's share from the log."""
    off, receipts = json.loads(json.dumps([OFF, own_consumer.RECEIPTS]))  # as words of a file
    assert guarantee(replace(black_box.inputs, workload=Workload(rung=receipts))) is EXACTLY_ONCE
    assert guarantee(replace(black_box.inputs, driver=off)) is None
    assert guarantee(replace(black_box.inputs, workload=Workload(**WORK | {"rung": own_consumer.REPORTS}))) is COMMITTED
    for driver in ("another/driver", "ridehailing/locust"):
        assert guarantee(replace(black_box.inputs, driver=driver, workload=Workload())) is EXACTLY_ONCE
    assert guarantee(black_box.inputs) is COMMITTED
    assert COMMITTED.missing(black_box).value == 2
    assert "rung: black-box" in EXACTLY_ONCE.missing(black_box).why
    assert drain(black_box).seconds.value == 40
    assert ideal_drain_s(black_box, END) == pytest.approx((LAG[END] - 1_500) / (black_box.inputs.pod_rate - 2_420 / 100))


def test_nobody_looks_at_the_labs_own_consumer(record):
    """Its receipts say more."""
    assert progress(record).why == "nobody looked at what the group commits"


COMMITS = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 9)), max_size=20)


@given(COMMITS, st.integers(0, 20))
def test_the_first_commit_is_of_the_owner_at_its_time(moves, at):
    """A pod that is given all partitions in look ``at`` has the first advance after it, and none before."""
    offsets = dict.fromkeys(range(4), 0)
    rows = []
    for look, (partition, step) in enumerate(moves):
        offsets[partition] += step
        rows.append(Commit(float(look), look, partition, offsets[partition], 999))
    given_all = Report(float(at), "new", "assigned", (0, 1, 2, 3), {"look": at})
    later = [row.t for row in rows if row.look > at]
    found = first_commit([given_all], rows, ["new"])
    assert found == (("new", later[0]) if later else None)
    assert first_commit([given_all], rows, ["other"]) is None
