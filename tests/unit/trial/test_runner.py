"""How a trial ends when something around it fails: a hiccup of the broker ends none early, and what there is is kept."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException

from lab.errors import LabFault, NoData
from lab.inputs import inputs
from lab.inputs import scale as scales
from lab.inputs.duet import sides
from lab.inputs.events import Context, Grow, Kill, schedule
from lab.inputs.own_consumer import OFF
from lab.inputs.profile import Profile, Step
from lab.inputs.workload import Workload
from lab.kafka.lag import PartitionLag
from lab.record.store import opened
from lab.record.trial import Deadlines, Duet, Offsets, Turn
from lab.trial import phases, runner, traffic_start
from lab.trial.closing import Part
from lab.trial.deadlines import deadlines
from lab.trial.listen import Reports
from lab.trial.stage import Journal, Stage
from tests.unit.measure import whole

ALONE = inputs.read("step-10x", "lag", Workload(), 1, scales.load("quick"), "binary")
SEEDED = replace(ALONE, faults_from="seed 3")
HICCUP = KafkaException(KafkaError(KafkaError._TIMED_OUT))


class Broker:
    """Answers with ``lags`` after so many ``hiccups``; a negative number of them is no answer ever."""

    def __init__(self, hiccups, lags):
        self.hiccups, self.lags = hiccups, lags

    def read(self):
        """The lag."""
        if self.hiccups:
            self.hiccups -= 1
            raise HICCUP
        return {number: PartitionLag(lag + 5, 5) for number, lag in enumerate(self.lags)}


def stage(broker, folder=None, end_s=20.0):
    """A trial that is at its floor of 4, whose lag ``broker`` knows."""
    made = object.__new__(Stage)
    made.inputs = ALONE
    made.deadlines = Deadlines(1, 1, end_s, 1)
    made.journal = Journal(whole.trial(made.inputs, times={"settling": 1.0}, offsets={}, topic_ids=("9Qk",)))
    made.folder, made.lag, made.topics = folder, broker, SimpleNamespace(id=lambda: "7fL")
    made.namespace = "trial-x"
    made.load = SimpleNamespace(write=lambda _: None)
    made.transitions = SimpleNamespace(field=lambda *_: 4, pods=lambda _: [0] * 4, gaps=[], fault=None)
    made.reports = SimpleNamespace(fault=None)
    made.cluster = SimpleNamespace(check=lambda: None, controller_log=lambda: "", prometheus_url="http://127.0.0.1:9")
    made.check = lambda: None
    return made


def test_a_hiccup_of_the_broker_is_waited_out_and_counted():
    """The trial is complete; how often Kafka did not answer is in its record."""
    made = stage(Broker(1, [0, 0]))
    assert phases.drain(made) == "complete"
    assert made.journal.trial.lag_unanswered == 1


def test_a_broker_that_never_answers_reaches_the_deadline():
    """And no earlier: that ends the wait, as a finding, like a lag that never goes."""
    made = stage(Broker(-1, []), end_s=0.6)
    assert phases.drain(made).startswith("deadline: drained and back at the floor: not within 0.6 s")
    assert made.journal.trial.lag_unanswered >= 1
    assert phases.drain(stage(Broker(0, [1]), end_s=0.1)).startswith("deadline")


def test_offsets_are_asked_for_again():
    """They are what delivery is judged by; the topic's id is beside that of when it was made."""
    made = stage(Broker(1, [0, 3]))
    made.read_offsets()
    assert made.journal.trial.offsets == {0: Offsets(5, 5), 1: Offsets(8, 5)}
    assert made.journal.trial.topic_ids == ("9Qk", "7fL")


class Dying(Stage):
    """A trial under way whose API server died: its pods can't be taken down; watches and reports are there."""

    def __init__(self, cluster, journal, folder, lead=None, brokers=None):
        self.__dict__ |= stage(Broker(0, [7]), folder).__dict__
        self.journal, self.inputs, self.deadlines, self.names = journal, journal.trial.inputs, journal.trial.deadlines, {}
        journal.note(times={"settling": 1.0}, topic_ids=("9Qk",))
        row = {"t": 1.0, "kind": "Pod", "name": "a", "event": "ADDED", "object": {"metadata": {"name": "a"}}}
        (folder / "transitions.jsonl").write_text(json.dumps(row) + "\n")
        (folder / "group_events.jsonl").write_text('{"t": 2, "mono": 1, "pod": "a", "event": "started"}\n')

    def line(self):
        """Nothing to tell."""
        return ""

    def quiet(self):
        """Nothing watches."""

    def halt(self):
        """What asks the API server."""
        raise LabFault("pods of trial-x gone: not within 90 s")

    def close(self):
        """As well."""
        raise ConnectionError("refused")


@pytest.mark.parametrize(
    ("chosen", "error", "ended"),
    [
        ([SEEDED], LabFault("kube-apiserver ended with code 137: killed"), "fault: kube-apiserver ended"),
        (sides(ALONE, ALONE), KeyboardInterrupt(), "interrupted"),
    ],
)
def test_partial_records_are_left_and_the_first_error_raised(chosen, error, ended, tmp_path, monkeypatch):
    """Every part is tried; those that can't be had are named, and the record is sealed. The sides of a duet name each other."""

    def spark():
        raise LabFault("Spark did not start: no Java")

    def drive(*_):
        raise error

    monkeypatch.setattr(runner, "Stage", Dying)
    monkeypatch.setattr("lab.host.machine.describe", lambda: whole.MACHINE)
    monkeypatch.setattr(runner, "drive", drive)
    with pytest.raises(type(error)):
        runner.run(SimpleNamespace(versions={}, provide=lambda work: {}), chosen, tmp_path, spark, Turn(1, 2, 1, 1))
    for one, other in zip(chosen, chosen[::-1], strict=True):
        record = opened(tmp_path / "records" / one.id)
        assert record.trial.ended.startswith(ended)
        assert record.end > 0
        assert record.trial.faults_from == one.faults_from
        assert (record.trial.deadlines, record.trial.turn) == (deadlines(one), Turn(1, 2, 1, 1))
        assert record.trial.duet == (Duet(other.id, one is chosen[0]) if one.side else None)
        assert set(record.trial.missing) == {"samples", "rest", "ledger"}
        assert len(record.transitions) == len(record.group_events) == 1
        assert record.offsets[0] == Offsets(12, 5)
        assert record.trial.topic_ids == ("9Qk", "7fL")
        with pytest.raises(NoData, match=r"no reconciliation.json: "):
            _ = record.reconciliation


def test_a_record_is_sealed_once_nothing_writes_into_it(tmp_path, monkeypatch):
    """Also where Ctrl-C came before its pods were taken down. That stays Ctrl-C, whatever fails of the takedown."""
    done = []

    def interrupt(_):
        raise KeyboardInterrupt

    def close():
        done.append("closed")
        raise LabFault("pods of trial-x gone: not within 90 s")

    under_way = SimpleNamespace(quiet=lambda: done.append("quiet"), close=close)
    side = SimpleNamespace(folder=tmp_path, journal=Journal(whole.trial(ALONE)), stage=under_way, missing={})
    side.write, side.seal = lambda: None, lambda: done.append("sealed")
    monkeypatch.setattr(runner, "parts", lambda *_: [Part("samples", interrupt, 5)])
    with pytest.raises(KeyboardInterrupt):
        runner._close([side], ["complete"], None)
    assert done == ["quiet", "sealed", "closed"]


@pytest.fixture
def someones(monkeypatch):
    """Someone's cluster, whose topic has 12 partitions, and what is done there."""
    done = []

    def delete():
        done.append("topics deleted")
        raise LabFault("no broker")

    core = SimpleNamespace(delete_namespace=lambda _: done.append("namespace deleted"))
    made = SimpleNamespace(create=lambda: done.append("topics"), first_id=lambda: "9Qk", delete=delete)
    for name, what in {
        "lab.trial.stage.TrialTopics": lambda *_: made,
        "lab.trial.stage.LagReader": lambda *_, **__: SimpleNamespace(read=lambda: range(12)),
        "lab.trial.stage.Transitions": lambda *_: SimpleNamespace(close=lambda: done.append("watch ended"), notify=None),
        "lab.cluster.apply.create_namespace": lambda *_: done.append("namespace"),
        "lab.cluster.apply.objects": lambda *_: None,
        "kubernetes.client.CoreV1Api": lambda _: core,
    }.items():
        monkeypatch.setattr(name, what)
    cluster = SimpleNamespace(bootstrap="b:1", pod_bootstrap="b:1", topic="orders", kafka_settings={})
    cluster.api = lambda: SimpleNamespace(close=lambda: done.append("closed"))
    return cluster, done


@pytest.mark.parametrize("error", [LabFault("no login"), KeyboardInterrupt()])
def test_what_is_half_put_up_is_taken_down(someones, tmp_path, monkeypatch, error):
    """All of it, whatever fails of that; the first error is raised."""

    def listener(*_):
        raise error

    monkeypatch.setattr("lab.trial.stage.Listener", listener)
    cluster, done = someones
    with pytest.raises(type(error)) as raised:
        Stage(cluster, Journal(whole.trial(ALONE)), tmp_path)
    assert raised.value is error
    assert done == ["topics", "namespace", "watch ended", "namespace deleted", "topics deleted", "closed"]


def test_a_topic_that_does_not_fit_is_refused_before_anything_is_made(someones, tmp_path):
    """It is the user's own, and its partitions are counted first."""
    cluster, done = someones
    with pytest.raises(LabFault, match="topic orders has 12 partitions, and the workload says 24"):
        Stage(cluster, Journal(whole.trial(replace(ALONE, driver=OFF))), tmp_path)
    assert done == []


class Told(Reports):
    """A producer's reports, of which each wait hears one more."""

    def __init__(self, phases):
        super().__init__()
        rows = [{"event": "phase", "phase": phase, "at": 10.0 * n} for n, phase in enumerate(phases)]
        settled = [{"event": "assigned", "pod": str(number), "owned": 6} for number in range(4)]
        self.coming = [*settled, {"event": "profile"}, *rows, {"event": "produced"}]

    def wait(self, condition, *_):
        """Hear reports until the condition holds."""
        while not condition():
            self.add(self.coming.pop(0))


@pytest.mark.parametrize("names", [("baseline", "repartition", "sigkill"), ("baseline", "sigkill", "repartition")])
def test_each_event_happens_when_its_phase_begins(names, monkeypatch):
    """Whichever phase comes first: none waits for another's."""
    steps = tuple(Step(10 * number, 1, phase) for number, phase in enumerate(names))
    profile = Profile(steps, 30)
    chosen = replace(ALONE, until="replayed")
    during = schedule({"sigkill": Kill(), "repartition": Grow(48)}, profile, Context("binary", chosen.policy, 24))
    told = Told(names)
    made, order, happened = stage(Broker(0, [0])), [], {}
    made.inputs, made.reports, made.names = replace(chosen, profile=profile, during=during), told, {}
    made.transitions, made.baseline = SimpleNamespace(wait=told.wait), SimpleNamespace(replicas=4, why="")
    made.apply, made.ready, made.produce = lambda _: None, lambda *_: True, lambda: order.append("traffic")
    monkeypatch.setattr(traffic_start, "await_sync_point", lambda _: order.append("point of the sync"))
    monkeypatch.setattr(phases, "is_active", lambda _: True)
    monkeypatch.setattr(phases, "happen", lambda _, phase, event: happened.update({event: told.phase}))
    assert phases.drive([made]) == ["complete"]
    assert happened == {Kill(): "sigkill", Grow(48): "repartition"}
    assert order == ["point of the sync", "traffic"]
    assert told.last("produced")


@pytest.mark.parametrize(
    ("policy", "slots", "batches"),
    [
        ("lag-4500", 0, [["trial", "lag-exporter", "consumer", "consumer"]]),
        ("lasting-4500", 12, [["trial", "lag-exporter", "store"], ["consumer", "lag-scaler"], ["consumer"]]),
    ],
)
def test_what_is_asked_is_there_before_what_asks_it(policy, slots, batches):
    """The objects keep their order: a ScaledObject comes after its Deployment, and that after the store."""
    chosen = inputs.read("plateau", policy, Workload(store_slots=slots), 1, scales.load("quick"), "binary")
    applied, waits = [], []
    made = SimpleNamespace(
        inputs=chosen,
        names=chosen.environment("127.0.0.1:9092", "x"),
        deadlines=Deadlines(1, 1, 1, 1),
        apply=lambda items: applied.append([item["metadata"]["name"] for item in items]),
        ready=lambda name: True,
        check=None,
        transitions=SimpleNamespace(wait=lambda done, deadline_s, what, check: waits.append(what)),
    )
    beside = phases.put_up(made)
    assert (applied, waits) == (batches, [f"the {batch[-1]} ready" for batch in batches[:-1]])
    assert beside == [name for batch in batches for name in batch if name in ("lag-exporter", "store", "lag-scaler")]
