"""The producer on a real broker: the same schedule twice."""

import json
import subprocess
import sys
import uuid
from itertools import pairwise

import pytest

from lab.kafka import event, topics
from lab.kafka.lag import LagReader
from lab.kafka.numbering import Numbering
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
