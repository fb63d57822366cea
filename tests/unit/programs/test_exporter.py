"""The lag exporter: what a scrape tells of one topic and of several."""

import pytest

from lab.kafka.lag import PartitionLag
from lab.kafka.numbering import Numbering
from lab.programs.exporter import LagCollector
from tests.suite import refused


class Lags:
    """A group's lag: two partitions, of which the second has no commit."""

    def read(self):
        """Seven messages, and three."""
        return {0: PartitionLag(10, 3), 1: PartitionLag(3, None)}


def samples(topics):
    """What a scrape tells, by metric: (labels, value)."""
    found = {}
    for family in LagCollector(Lags(), "enrich", topics).collect():
        for one in family.samples:
            found.setdefault(one.name, []).append((one.labels, one.value))
    return found


def test_one_topic_is_told_as_kafka_exporter_does():
    """Topic and partition are Kafka's own."""
    found = samples(Numbering(("events",)))
    group = {"consumergroup": "enrich"}
    assert found["kafka_consumergroup_lag"] == [
        (group | {"topic": "events", "partition": "0"}, 7),
        (group | {"topic": "events", "partition": "1"}, 3),
    ]
    assert found["kafka_consumergroup_current_offset"] == [(group | {"topic": "events", "partition": "0"}, 3)]
    assert found["kafka_topic_partition_current_offset"][1] == ({"topic": "events", "partition": "1"}, 3)
    assert found["kafka_consumergroup_lag_sum"] == [(group | {"topic": "events"}, 10)]


def test_several_topics_have_one_sum_and_a_partition_its_number():
    """A record's curve of the group's lag is one series, and each of its partitions another."""
    found = samples(Numbering(("events", "events-2"), 1))
    assert [labels["topic"] for labels, _ in found["kafka_consumergroup_lag"]] == ["events", "events-2"]
    assert [labels["partition"] for labels, _ in found["kafka_consumergroup_lag"]] == ["0", "1"]
    assert found["kafka_consumergroup_lag_sum"] == [({"consumergroup": "enrich", "topic": "events,events-2"}, 10)]


@pytest.mark.parametrize("program", ["exporter", "consumer", "producer"])
def test_several_topics_without_their_size_are_one_clear_line(program):
    """Their partitions could not be numbered; exit code 2, before any work."""
    line = "command line: --topic-partitions: 0 is not allowed; allowed: 1 to 10,000 with --topics 2"
    assert line in refused(f"lab.programs.{program}", ["--bootstrap-servers=x", "--topics=2"], {})
