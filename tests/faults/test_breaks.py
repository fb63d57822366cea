"""What breaks during a trial, and who notices: each of these shows that an assertion of experiment 2 can fail."""

import dataclasses

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import yaml

from lab import yamlfile
from lab.errors import NoData
from lab.inputs import inputs
from lab.inputs import scale as scales
from lab.inputs.events import Brokers, Delete, Pause, PauseScaling, Resume, ScaleTo
from lab.inputs.faults import (
    BROKER,
    CONSUMER,
    CONTROLLERS,
    CUT,
    DAEMONS,
    DELAY,
    DRAIN,
    EVICT,
    EXPORTER,
    FULL,
    GROUP,
    KILL,
    LAG_SCALER,
    LOSS,
    NODE,
    ROLLOUT,
    SLOW,
    STOP,
    STORE,
    STORM,
    TERMINATE,
    Injection,
    load,
)
from lab.inputs.inputs import DRAINED, REPLAYED
from lab.inputs.workload import Workload
from lab.measure.autoscaler import back_s, stranded
from lab.measure.delivery import delivery, undelivered
from lab.measure.faults import under_faults
from lab.measure.reaction.step import reaction
from lab.measure.scaling import policy_excess, scale_events
from lab.record.ledger.reconcile import reconcile
from lab.record.trial import Turn
from lab.trial import addresses, disruptions
from lab.trial.minimise import minimised
from tests.experiments.workloads import slim

pytestmark = pytest.mark.services

# At quick scale 5 s, 13 s without one of the members, 8 s with it again, and 8 s.
PHASES = {"baseline": 0, "pause": 150, "resume": 540, "more": 780}
PAUSE = {"kind": "steps", "duration": 1020, "steps": [{"at": at, "rate": 400, "phase": name} for name, at in PHASES.items()]}
# At quick scale 8 s and 12 s. Four pods have an eighth of what they can do: nothing rebalances before one of them is deleted.
STEPS = [{"at": 0, "rate": 500, "phase": "baseline"}, {"at": 240, "rate": 500, "phase": "delete"}]
STEADY = {"kind": "steps", "duration": 600, "steps": STEPS}
# At quick scale 10 s, 20 s and 30 s: all is over when the group has come back down.
SPIKE = {"kind": "step", "rate": 250, "spike_mult": 6, "baseline": 300, "spike_hold": 600, "duration": 1800}
WORKERS = ("keda-operator", "keda-adapter", CONTROLLERS, "kube-scheduler", "prometheus", "kube-state-metrics")
STRUCK = [
    *(Injection(at, CONSUMER, KILL, 0.0, 0.0) for at in (3.0, 12.0, 14.0, 33.0)),
    *(Injection(at, CONSUMER, TERMINATE, at / 1000, 0.5) for at in (17.0, 35.0)),
    Injection(13.0, CONSUMER, STOP, 8.0, 0.0),
    Injection(15.0, EXPORTER, KILL, 0.0, 0.0),
    Injection(38.0, EXPORTER, STOP, 3.0, 0.0),
    *(Injection(8.0 + n, component, KILL, 2.0, 0.0) for n, component in enumerate(WORKERS)),
    *(Injection(24.0 + n, component, STOP, 2.0, 0.0) for n, component in enumerate(WORKERS)),
]
# The spike is from 10 to 30 s, and the group scales in some 10 s later. A cut of 3 s is over before the session is.
NETWORK = [
    Injection(6.0, CONSUMER, DELAY, 3.0, 0.0),
    Injection(10.5, "keda-operator", CUT, 3.0, 0.0),
    Injection(11.0, CONSUMER, LOSS, 6.0, 0.0),
    Injection(14.0, CONSUMER, CUT, 8.0, 0.0),
    Injection(15.0, CONSUMER, KILL, 0.0, 0.5),
    Injection(25.0, CONSUMER, CUT, 3.0, 0.5),
    Injection(32.0, CONSUMER, CUT, 8.0, 0.9),
    Injection(44.0, "keda-operator", CUT, 4.0, 0.0),
]
OUTAGES = [
    Injection(6.0, CONSUMER, EVICT, 0.0, 0.0),
    Injection(10.5, CONSUMER, ROLLOUT, 5.0, 0.0),
    Injection(17.0, "etcd", KILL, 2.0, 0.0),
    Injection(23.0, "keda-webhooks", KILL, 2.0, 0.0),
    Injection(24.0, "metrics-server", KILL, 2.0, 0.0),
    Injection(28.0, "kube-apiserver", STOP, 3.0, 0.0),
    Injection(33.0, GROUP, STORM, 6.0, 0.0),
    Injection(42.0, "kube-apiserver", KILL, 2.0, 0.0),
    Injection(52.0, NODE, DRAIN, 3.0, 0.0),
]
OWN = [
    Injection(5.0, BROKER, STOP, 3.0, 0.6),
    Injection(12.0, STORE, SLOW, 3.0, 0.0),
    Injection(16.0, LAG_SCALER, KILL, 0.0, 0.0),
    Injection(18.0, STORE, STOP, 3.0, 0.0),
    Injection(20.0, BROKER, TERMINATE, 6.0, 0.0),
    Injection(36.0, STORE, KILL, 0.0, 0.0),
    Injection(40.0, LAG_SCALER, STOP, 3.0, 0.0),
    Injection(42.0, BROKER, KILL, 4.0, 0.6),
    Injection(54.0, BROKER, FULL, 3.0, 0.4),
]


@pytest.fixture(scope="module")
def broken(run):
    """Runs a short step, or another profile, with events; returns the record."""

    def record(workload, during, seed, profile="short-step", duration_s=20, policy="lag", until=DRAINED, **more):
        how = {"until": until, "during": during, **more}
        read = inputs.read(profile, policy, workload, seed, scales.load("quick"), "binary", **how)
        return run(dataclasses.replace(read, profile=dataclasses.replace(read.profile, duration=duration_s)))[0]

    return record


@pytest.fixture(scope="module")
def undrained(broken, tmp_path_factory):
    """A trial whose consumers don't drain, with one of them deleted between two commits (10 s): SIGTERM ends it as it is."""
    profile = tmp_path_factory.mktemp("profiles") / "steady.yaml"
    profile.write_text(yaml.safe_dump(STEADY))
    return broken(Workload(drain="off", commit_interval_ms=300_000), {"delete": Delete()}, seed=2, profile=profile)


def test_without_drain_a_killed_pod_doubles_work(undrained):
    """Work done and not committed is done again by another pod: the ledger names the range and both pods."""
    found = delivery(undrained)
    assert found.doubled.number > 0
    named = [item for item in undrained.reconciliation.doubled if len(item.pods) > 1]
    assert named, found.ranges
    assert found.lost.number == 0


def test_a_dropped_receipt_is_named_as_lost(undrained, spark):
    """Taking one receipt out of the store leaves its range lost, named with the pods beside the gap.

    The receipt is not the last of its partition: beyond the last receipt an event is unseen, and not lost.
    """
    events = sorted(undrained.folder.glob("ledger/events/*.parquet"))
    receipts = undrained.receipts
    doubled = {item.partition for item in undrained.reconciliation.doubled}
    clean = receipts[~receipts["partition"].isin(doubled)].sort_values(["partition", "first"])
    clean = clean[clean.duplicated("partition", keep="last")]
    dropped = clean.iloc[len(clean) // 2]
    verdict = reconcile(spark(), events, receipts.drop(index=dropped.name))
    assert verdict.lost_messages == dropped["count"]
    (gap,) = verdict.lost
    assert (gap.partition, gap.first, gap.last) == (dropped["partition"], dropped["first"], dropped["last"])
    assert gap.pods


def test_a_record_keeps_nothing_of_the_login(undrained, cluster):
    """Neither in a file nor in a column of text; the ScaledObject as applied names what points to it."""
    password = cluster.kafka_settings["sasl.password"]
    files = [file for file in undrained.folder.rglob("*") if file.is_file()]
    assert [file for file in files if password.encode() in file.read_bytes()] == []
    tables = {file: pq.read_table(file) for file in files if file.suffix == ".parquet"}
    for file, table in tables.items():
        for name, column in zip(table.column_names, table.columns, strict=True):
            if pa.types.is_string(column.type):
                assert not pc.any(pc.match_substring(column, password)).as_py(), f"{file.name}: {name}"
    assert any(pa.types.is_string(kind) for table in tables.values() for kind in table.schema.types)
    (applied,) = (file for file in files if file.name.startswith("scaledobject-"))
    (trigger,) = yamlfile.read(applied)["spec"]["triggers"]
    assert trigger["authenticationRef"] == {"name": addresses.LOGIN}


@pytest.mark.nightly
def test_a_paused_keda_is_no_reaction_and_no_hang(broken):
    """The trial ends, the reaction has no data, and no data is not a pass."""
    record = broken(Workload(), {"baseline": PauseScaling()}, seed=3, until=REPLAYED)
    assert record.trial.ended != "running"
    assert scale_events(record).scale_ups.number == 0
    with pytest.raises(NoData, match="never asked for more replicas"):
        float(reaction(record).total_s)
    assert record.offsets


def test_a_paused_member_loses_its_partitions_and_comes_back(broken, tmp_path):
    """After the session timeout others work on them; resumed it is a member like any other, and no message is lost."""
    profile = tmp_path / "pause.yaml"
    profile.write_text(yaml.safe_dump(PAUSE))
    during = {"pause": Pause(), "resume": Resume(), "more": ScaleTo(6)}
    record = broken(Workload(session_timeout_ms=6000), during, seed=4, profile=profile, duration_s=34)
    paused, resumed, scaled = record.trial.events
    assert [row["event"] for row in record.trial.events] == ["pause", "resume", "scale_to"]
    assert all(row["due"] <= row["t"] <= row["until"] for row in record.trial.events)
    victim = paused["result"]["pod"]
    assert resumed["result"] == {"pods": [victim]}
    receipts = record.receipts
    meanwhile = (receipts["start"] > paused["until"] + 0.5) & (receipts["end"] < resumed["t"])
    theirs = set(receipts[(receipts["pod"] == victim) & (receipts["end"] < paused["t"])]["partition"])
    assert len(theirs) == paused["result"]["owned"]
    assert receipts[meanwhile & (receipts["pod"] == victim)].empty
    assert theirs <= set(receipts[meanwhile]["partition"])
    assert delivery(record).lost.value == 0
    wanted = record.replicas
    assert 6 in set(wanted[wanted["t"] >= scaled["t"] - 1]["desired"])


@pytest.mark.nightly
def test_a_group_comes_through_every_kind_of_fault(broken, tmp_path):
    """Each strikes and is taken back: no message is lost, each copy is explained, and the HPA decides as its model does."""
    profile = tmp_path / "spike.yaml"
    profile.write_text(yaml.safe_dump(SPIKE))
    record = broken(slim(session_timeout_ms=6000), {}, 5, profile, 60, policy="lag-4500", faults=STRUCK)
    assert (record.trial.ended, record.trial.missing) == ("complete", {})
    assert all(one.until for one in record.trial.faults if one.fault != KILL or one.component in DAEMONS)
    found = under_faults(record)
    assert (found.injected.value, found.omitted.value) == (len(STRUCK), 0)
    assert (found.lost.value, found.unseen.value, found.unknown.value, found.unexplained.value) == (0, 0, 0, 0)
    assert undelivered(record).value == 0
    assert (policy_excess(record).outside_bounds.value, stranded(record).value) == (0, 0)
    assert back_s(record).number > 0


@pytest.mark.nightly
def test_the_one_fault_that_loses_messages_is_found(run, tmp_path):
    """Commits run ahead of the work, so a consumer that is killed in a batch loses it. Of four faults that one is left."""
    profile = tmp_path / "steady.yaml"
    profile.write_text(yaml.safe_dump({"kind": "steady", "rate": 200, "duration": 600}))  # 20 s at quick
    culprit = Injection(8.0, CONSUMER, KILL, 0.0, 0.5)
    beside = [
        Injection(3.0, EXPORTER, KILL, 0.0, 0.0),
        *(Injection(at, "kube-scheduler", STOP, 2.0, 0.0) for at in (5.0, 12.0)),
    ]
    work = slim(commit="auto", commit_interval_ms=1000, poll_ms=1000, session_timeout_ms=6000)
    chosen = inputs.read(profile, "three-pods", work, 6, scales.load("quick"), "binary", faults=[*beside, culprit])

    def breaches(record):
        return ["lost"] if delivery(record).lost.number else []

    minimised(lambda sides, turn: run(*sides), breaches, tmp_path, 12)([chosen], Turn(1, 1, 1, 1))
    assert load(tmp_path / f"faults-{chosen.id}.json") == (culprit,)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("faults", "policy", "work", "brokers"),
    [
        pytest.param(OUTAGES, "lag-4500", {}, None, id="control-plane"),
        pytest.param(NETWORK, "lag-4500", {}, None, id="network"),
        pytest.param(OWN, "lasting-4500", {"store_slots": 24}, Brokers(), id="brokers-and-store"),
    ],
)
def test_a_group_comes_through_outages(broken, tmp_path, faults, policy, work, brokers):
    """Of what it runs on. The trial goes to its end, no message is lost, and each copy is explained."""
    profile = tmp_path / "spike.yaml"
    profile.write_text(yaml.safe_dump(SPIKE))
    record = broken(slim(session_timeout_ms=6000, **work), {}, 6, profile, 60, policy=policy, faults=faults, brokers=brokers)
    assert (record.trial.ended, record.trial.missing) == ("complete", {})
    skipped = [one.skipped for one in record.trial.faults if one.skipped]
    assert set(skipped) <= {disruptions.UNREADY}  # a busy machine's brokers need longer
    assert {one.component for one in record.trial.faults if not one.skipped} == {one.component for one in faults}
    found = under_faults(record)
    assert (found.injected.value, found.omitted.value) == (len(faults) - len(skipped), len(skipped))
    assert (found.lost.value, found.unseen.value, found.unknown.value, found.unexplained.value) == (0, 0, 0, 0)
    assert undelivered(record).value == 0
    assert (policy_excess(record).outside_bounds.value, stranded(record).value) == (0, 0)
    assert back_s(record).number > 0
