"""Producer and consumer on a real broker: the same schedule twice, and a drain that leaves nothing undone."""

import json
import os
import signal
import subprocess
import sys
import uuid
from itertools import pairwise

import pytest

from lab.kafka import event, topics
from lab.kafka.lag import LagReader
from lab.kafka.numbering import Numbering
from lab.wait import until
from tests.unit.programs.consumer.messages import read_all

pytestmark = pytest.mark.services
EVENTS = 6_000
HANG_S = 120  # for what takes some seconds on a quiet machine: it only ends a test that hangs


def produce(bootstrap, *flags):
    """Run the producer at 3,000 events/s for two seconds; returns its exit code, its topic, and its reports."""
    name = uuid.uuid4().hex[:8]
    topics.create(bootstrap, {f"reports-{name}": 1})
    command = [sys.executable, "-m", "lab.programs.producer", f"--bootstrap-servers={bootstrap}", f"--topic=events-{name}"]
    command += [f"--reports-topic=reports-{name}", "--profile=steady", "--rate=3000", "--duration=2", "--entities=1000", *flags]
    ran = subprocess.run(command, timeout=HANG_S, capture_output=True, check=False)
    reports = [json.loads(one.value()) for one in read_all(bootstrap, f"reports-{name}")]
    return ran.returncode, f"events-{name}", reports


@pytest.fixture(scope="module")
def produced(bootstrap):
    """One run of the producer with seed 7: its exit code, topic, and reports, and all events."""
    code, topic, reports = produce(bootstrap, "--partitions=4", "--seed=7")
    return code, topic, reports, read_all(bootstrap, topic, range(4))


def identities(messages, numbered=lambda one: one.partition()):
    """(number of the partition, entity_id, seq) of every event in order of seq."""
    return sorted(((numbered(one), *event.decode(one.value())[:2]) for one in messages), key=lambda row: row[2])


def test_what_is_produced_is_what_was_due_and_acknowledged(produced):
    """All events of the profile, each once, at the profile's due time, acknowledged, and the tally says so."""
    code, _, reports, messages = produced
    told = {name: reports[-1][name] for name in ("event", "sent", "acked", "unknown", "failed")}
    assert told == {"event": "produced", "sent": EVENTS, "acked": EVENTS, "unknown": 0, "failed": 0}
    assert code == 0
    assert [seq for _, _, seq in identities(messages)] == list(range(EVENTS))
    assert all(one.key() == event.KEY.pack(event.decode(one.value()).entity_id) for one in messages)
    stamps = sorted(event.decode(one.value()).ts for one in messages)
    assert all(abs(later - earlier - 1e9 / 3000) < 2_000 for earlier, later in pairwise(stamps))


def test_the_same_seed_gives_the_same_events(bootstrap, produced):
    """A second run sends the same entities with the same seqs to the same partitions; another seed does not.

    On two topics an event has the number that it has on one: the client's own choice among four partitions is the lab's among
    two times two.
    """
    _, topic, _ = produce(bootstrap, "--seed=7", "--topics=2", "--topic-partitions=2", "--partitions=2")
    on = Numbering((topic, f"{topic}-2"), 2)
    again = [one for part in on.topics for one in read_all(bootstrap, part, range(on.each))]
    assert identities(again, lambda one: on.number(one.topic(), one.partition())) == identities(produced[3])
    ends = {number: part.end for number, part in LagReader(bootstrap, topic, on).read().items()}
    assert ends == {number: part.end for number, part in LagReader(bootstrap, topic, produced[1]).read().items()}
    _, other, _ = produce(bootstrap, "--seed=8", "--partitions=4")
    assert identities(read_all(bootstrap, other, range(4))) != identities(produced[3])


class Pod:
    """A consumer on a topic, in a group of its own, and what it writes."""

    def __init__(self, bootstrap, topic, *flags):
        name = uuid.uuid4().hex[:8]
        self.bootstrap, self.receipts, self.reports = bootstrap, f"receipts-{name}", f"reports-{name}"
        topics.create(bootstrap, {self.receipts: 1, self.reports: 1})
        self.lag = LagReader(bootstrap, name, topic)
        command = [sys.executable, "-m", "lab.programs.consumer", f"--bootstrap-servers={bootstrap}", f"--topic={topic}"]
        command += [f"--group={name}", f"--receipts-topic={self.receipts}", f"--reports-topic={self.reports}"]
        command += ["--metrics-port=0", *flags]
        self._process = subprocess.Popen(command, env=dict(os.environ, HOSTNAME=f"pod-{name}"), stderr=subprocess.DEVNULL)

    def drain_when(self, condition, what):
        """Send SIGTERM when ``condition`` holds, and wait for an orderly end."""
        try:
            until(condition, HANG_S, what)
            self._process.send_signal(signal.SIGTERM)
            assert self._process.wait(HANG_S) == 0
        finally:
            self._process.kill()

    def said(self):
        """What it reported, by event, in order."""
        rows = [json.loads(one.value()) for one in read_all(self.bootstrap, self.reports)]
        return {row["event"]: row for row in rows}


@pytest.mark.parametrize("balancer", ["cooperative-sticky", "range", "consumer"])
def test_a_drained_consumer_leaves_nothing_undone(bootstrap, produced, balancer):
    """SIGTERM in the middle of the work: every receipt is committed and every commit has its receipts, exactly."""
    # 40 s of work: on a busy machine the first commit may be seen seconds later, and it must not be done by then.
    flags = ["--process-ms=20", "--concurrency=3", "--commit-interval-ms=250"]
    pod = Pod(bootstrap, produced[1], f"--balancer={balancer}", *flags)
    pod.drain_when(lambda: any(part.committed for part in pod.lag.read().values()), "the consumer committed something")
    committed = {number: part.committed or 0 for number, part in pod.lag.read().items()}
    covered = dict.fromkeys(committed, 0)
    for one in read_all(bootstrap, pod.receipts):
        receipt = json.loads(one.value())
        assert receipt["first"] == covered[receipt["partition"]]
        covered[receipt["partition"]] = receipt["last"] + 1
    assert covered == committed
    assert 0 < sum(committed.values()) < EVENTS, "the signal was to come in the middle of the work"
    phases = ["started", "subscribed", "draining", "left"]
    assert [word for word in pod.said() if word in phases] == phases


@pytest.mark.parametrize("start_s", [1.5, 600])
def test_a_declared_cold_start_comes_before_the_join_and_a_signal_ends_it(bootstrap, start_s):
    """The join comes that long after the process's start; a pod that is taken before it leaves in order and never joins."""
    topic = f"events-{uuid.uuid4().hex[:8]}"
    topics.create(bootstrap, {topic: 4})
    pod = Pod(bootstrap, topic, f"--start-s={start_s}")
    pod.drain_when(lambda: ("subscribed" if start_s < 10 else "started") in pod.said(), "the consumer's report")
    rows = pod.said()
    assert rows["left"]["committed"] is True
    if start_s < 10:
        created, started, subscribed = rows["started"]["created"], rows["started"]["t"], rows["subscribed"]["t"]
        # Imports may take longer than it, and a busy machine may let the process wait.
        assert created + start_s - 0.02 <= subscribed < max(created + start_s, started) + 20
    else:
        assert "subscribed" not in rows
