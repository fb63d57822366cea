"""The consumer's programs, each with its own client of Kafka, keep one contract on a real broker."""

import subprocess
import uuid
from urllib.request import urlopen

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from lab.host.processes import free_ports
from lab.inputs.clients import CLIENTS, JAVA
from lab.inputs.consumer import Cost
from lab.kafka import event, topics
from lab.record.ledger.ingest import RECEIPTS, Topics
from lab.record.ledger.settle import settle
from lab.wait import until

from .pods import HANG_S, Group, command, terminated

pytestmark = pytest.mark.services
PARTITIONS, EACH = 4, 600
EVENTS = {
    number: [event.encode(7, at * PARTITIONS + number, 0, bytes(232)) for at in range(EACH)] for number in range(PARTITIONS)
}
# 48 s of work for one pod: on a busy machine the others may be seconds late, and it must not be done by then.
SLOW = ("--process-ms=40", "--concurrency=2")
FIELDS = {"int": int, "long": int, "double": float, "string": str}
TYPES = {name: FIELDS[kind] for name, kind in (one.split() for one in RECEIPTS.split(", "))}


def produced(bootstrap, events=EVENTS, login=None):
    """A topic with these events by partition."""
    topic = f"events-{uuid.uuid4().hex[:8]}"
    topics.create(bootstrap, {topic: len(events)}, login)
    own = {"enable.idempotence": True, "batch.num.messages": 10, "compression.type": "zstd"}
    producer = Producer({"bootstrap.servers": bootstrap, **own, **(login or {})})
    for number, values in events.items():
        for value in values:
            producer.produce(topic, value, value[:8], number)
    assert producer.flush(HANG_S) == 0
    return topic


@pytest.fixture
def grouped(bootstrap):
    """Makes a group on a topic with these events, all by default; its consumers are ended with the test."""
    made = []

    def make(events=EVENTS, address=bootstrap, login=None):
        made.append(Group(address, produced(address, events, login), login))
        return made[-1]

    yield make
    for group in made:
        group.end()


def covered(receipts):
    """The offsets that ``receipts`` cover, by partition, in their order; each receipt is true of the events it names."""
    found = {number: [] for number in EVENTS}
    for one in receipts:
        assert {name: type(value) for name, value in one.items()} == TYPES
        assert list(one) == list(TYPES)
        values = EVENTS[one["partition"]][one["first"] : one["last"] + 1]
        assert (one["count"], one["checksum"]) == (len(values), sum(map(event.check, values)))
        assert one["start"] <= one["end"]
        found[one["partition"]] += range(one["first"], one["last"] + 1)
    return found


def metrics(port):
    """The values that a program tells, by name."""
    text = urlopen(f"http://127.0.0.1:{port}/metrics", timeout=HANG_S).read().decode()
    rows = (line.rsplit(" ", 1) for line in text.splitlines() if line and line[0] != "#")
    return {name: float(value) for name, value in rows}


@pytest.mark.parametrize("balancer", ["cooperative-sticky", "range", "consumer"])
@pytest.mark.parametrize("client", CLIENTS)
def test_members_come_and_go_and_each_message_is_processed_once(grouped, client, balancer):
    """A second member joins a group at work, and the first one drains. Every commit has its receipts, and reports add up."""
    group = grouped()
    # Only a revocation and a drain make it commit. Small fetches take turns, so each partition has been at work by then.
    flags = (*SLOW, f"--balancer={balancer}", "--commit-interval-ms=600000", "--partition-fetch-kib=4")
    first = group.start(client, "a", *flags)
    until(lambda: sum(one["count"] for one in group.receipts()) > 80, HANG_S, "a group at work")
    second = group.start(client, "b", *flags)
    group.wait_owned(a=2, b=2)
    assert terminated(first) == 0
    group.wait_owned(b=PARTITIONS)
    assert terminated(second) == 0
    committed = group.committed()
    assert sum(committed.values()) < EACH * PARTITIONS, "the signal was to come in the middle of the work"
    assert covered(group.receipts()) == {number: list(range(end)) for number, end in committed.items()}
    assert {one["pod"] for one in group.receipts()} == {"a", "b"}
    for pod in "ab":
        rows = group.said(pod)
        phases = [row["event"] for row in rows if row["event"] not in ("assigned", "revoked", "commit_failed")]
        assert phases == ["started", "subscribed", "draining", "committed", "left"]
        assert rows[0]["created"] <= rows[0]["t"]
        draining, left = (row for row in rows if row["event"] in ("draining", "left"))
        assert (draining["abandoned"], left["committed"]) == (False, True)
        assert rows[0]["t"] < draining["signalled"] <= draining["t"]
        owned = set()
        for row in group.said(pod, "assigned", "revoked"):
            assert row["partitions"] == sorted(row["partitions"])
            owned ^= set(row["partitions"])
            assert row["owned"] == len(owned)
        assert not owned


@pytest.mark.parametrize("client", CLIENTS)
def test_work_that_takes_longer_than_the_drain_is_given_up(grouped, client):
    """The process ends in order, without a receipt or a commit of what it had in hand."""
    group, (port,) = grouped(), free_ports(1)
    flags = ("--process-ms=100000", "--concurrency=1", "--drain-timeout=1", f"--metrics-port={port}")
    process = group.start(client, "a", *flags)
    group.wait_owned(a=PARTITIONS)
    until(lambda: metrics(port)["inflight"] == 1, HANG_S, "a message in hand")
    assert terminated(process) == 0
    (draining,) = group.said("a", "draining")
    assert draining["abandoned"] is True
    assert group.receipts() == []
    assert set(group.committed().values()) == {0}


@pytest.mark.parametrize("client", CLIENTS)
def test_without_a_drain_it_dies_where_it_stands(grouped, client):
    """No report and no last commit: what has a receipt may be processed again."""
    group = grouped()
    process = group.start(client, "a", *SLOW, "--drain=off", "--commit-interval-ms=600000")
    until(lambda: len(group.receipts()) > 1, HANG_S, "a receipt after the first commit")
    assert terminated(process) in (-15, 143)
    assert group.said("a", "draining", "left") == []
    assert sum(group.committed().values()) < sum(map(len, covered(group.receipts()).values()))


@pytest.mark.parametrize("client", CLIENTS)
def test_a_message_takes_the_time_that_its_seq_says(grouped, client):
    """The same for every client, so that groups of two clients have the same work. Larger seqs wrap alike."""
    seqs = [1, 2**33 + 5, 2**62 + 3]
    group = grouped({0: [event.encode(7, seq, 0, bytes(232)) for seq in seqs]})
    process = group.start(client, "a", "--process-ms=1-2000", "--concurrency=1", "--batch-ms=1", "--poll-ms=1")
    until(lambda: group.committed() == {0: len(seqs)}, HANG_S, "all is committed")
    assert terminated(process) == 0
    took = {one["first"]: one["end"] - one["start"] for one in group.receipts()}
    for at, seq in enumerate(seqs):
        assert took[at] > Cost.parse("1-2000").total([seq]) / 1000 - 0.03


@pytest.mark.parametrize("client", CLIENTS)
def test_its_metrics_are_those_of_the_boards(grouped, client):
    """Each that a trial records, with the value that the receipts give."""
    group, (port,) = grouped(), free_ports(1)
    process = group.start(client, "a", f"--metrics-port={port}", "--process-ms=1", "--concurrency=10")
    until(lambda: set(group.committed().values()) == {EACH}, HANG_S, "all is committed")
    found = metrics(port)
    assert found["messages_processed_total"] == EACH * PARTITIONS
    assert found["assigned_partitions"] == PARTITIONS
    assert found["rebalances_total"] >= 1
    assert found["rebalance_duration_seconds_count"] == 1
    assert {"consume_rate", "inflight", "process_cpu_seconds_total", "process_resident_memory_bytes"} <= found.keys()
    for path in ("readyz", "healthz"):
        assert urlopen(f"http://127.0.0.1:{port}/{path}", timeout=HANG_S).status == 200
    assert terminated(process) == 0


@pytest.mark.parametrize("start_s", [1.5, 600])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_declared_cold_start_comes_before_the_join_and_a_signal_ends_it(grouped, client, start_s):
    """The join comes that long after the process's start; a pod that is taken before it leaves in order and never joins."""
    group = grouped()
    process = group.start(client, "a", f"--start-s={start_s}")
    until(lambda: group.said("a", "subscribed" if start_s < 10 else "started"), HANG_S, "the consumer's report")
    assert terminated(process) == 0
    rows = {row["event"]: row for row in group.said("a")}
    assert rows["left"]["committed"] is True
    if start_s < 10:
        # Imports may take longer than it, and a busy machine may let the process wait.
        created, started, subscribed = rows["started"]["created"], rows["started"]["t"], rows["subscribed"]["t"]
        assert created + start_s - 0.02 <= subscribed < max(created + start_s, started) + 20
    else:
        assert "subscribed" not in rows


@pytest.mark.parametrize("client", CLIENTS)
def test_a_static_member_stays_when_its_process_ends(grouped, client):
    """Until its session is over it is the group's, under the pod's name."""
    group = grouped()
    process = group.start(client, "a-0", "--membership=static", "--session-timeout-ms=60000")
    group.wait_owned(**{"a-0": PARTITIONS})
    assert terminated(process) == 0
    admin = AdminClient({"bootstrap.servers": group.bootstrap})
    (member,) = admin.describe_consumer_groups([group.name])[group.name].result().members
    assert (member.client_id, member.group_instance_id) == ("a-0", "a-0")


@pytest.mark.parametrize("client", CLIENTS)
def test_a_flag_that_is_not_allowed_is_named(client):
    """Exit code 2, one line."""
    ran = subprocess.run(
        [*command(client), "--bootstrap-servers=127.0.0.1:9", "--balancer=fair"], capture_output=True, text=True
    )
    assert ran.returncode == 2
    (line,) = ran.stderr.splitlines()
    assert "-balancer" in line
    assert "fair" in line


SETTINGS = ("client-settings=stock", "commit=auto", "balancer=roundrobin")


@pytest.mark.parametrize(
    ("client", "setting"),
    [(JAVA, "auto-offset-reset=by_duration:PT1H"), *((client, one) for client in CLIENTS for one in SETTINGS)],
)
def test_with_other_settings_all_is_processed_too(grouped, client, setting):
    """Among them the duration of an hour: it begins before all that there is."""
    group = grouped()
    process = group.start(client, "a", f"--{setting}", "--process-ms=1")
    until(lambda: set(group.committed().values()) == {EACH}, HANG_S, "all is committed")
    assert terminated(process) == 0
    assert covered(group.receipts()) == {number: list(range(EACH)) for number in EVENTS}


def test_clients_of_all_kinds_share_a_group_and_a_ledger(grouped, closed, spark, tmp_path):
    """With a login, by the assignor that all of them have. Spark finds each event processed once, by three pods."""
    group = grouped({number: EVENTS[number] for number in range(3)}, closed.bootstrap, closed.settings)
    flags = (*SLOW, "--balancer=range")
    started = [group.start(client, client, *flags) for client in CLIENTS]
    group.wait_owned(**dict.fromkeys(CLIENTS, 1))
    until(lambda: set(group.committed().values()) == {EACH}, HANG_S, "all is committed")
    assert [terminated(process) for process in started] == [0] * len(CLIENTS)
    of = Topics(group.topic, group.receipts_topic)
    verdict = settle(spark(), group.bootstrap, of, tmp_path, settings=group.login)
    assert verdict.exact
    assert verdict.produced == 3 * EACH
    assert {one["pod"] for one in group.receipts()} == set(CLIENTS)
