"""A clock that is set, and a Kafka that answers what it is told."""

import pytest
from confluent_kafka import KafkaError, KafkaException

from lab.inputs.triggers.common import ScalerError
from lab.kafka.lag import PartitionLag
from lab.programs.lagscaler.registry import Registry
from lab.programs.lagscaler.sampler import Sampler

METADATA = {
    "bootstrapServers": "b:9092",
    "consumerGroup": "enrich",
    "topic": "orders",
    "lagThreshold": "100",
    "sustainSeconds": "30",
    "offsetResetPolicy": "earliest",
    "allowIdleConsumers": "true",
}


class Clock:
    """Monotonic and wall time, moved apart where a test steps the wall."""

    def __init__(self):
        self.now, self.step = 1000.0, 1e9

    def __call__(self):
        """Monotonic s."""
        return self.now

    def wall(self):
        """Epoch s."""
        return self.now + self.step


class Kafka:
    """Answers by (group, topic): lags by partition, or an exception; ``down`` is that of the whole cluster."""

    def __init__(self):
        self.answers, self.down, self.asked, self.starts = {}, None, [], []

    def lags(self, *lags, topic="orders"):
        """Set the lag of each partition; an error for None."""
        parts = [None if lag is None else PartitionLag(10_000 + lag, 10_000) for lag in lags]
        self.partitions(*(part or error(KafkaError.LEADER_NOT_AVAILABLE) for part in parts), topic=topic)

    def partitions(self, *parts, topic="orders"):
        """Set the answer for each partition."""
        self.answers["enrich", topic] = dict(enumerate(parts))

    def read(self, wanted, starts=()):
        """As the reader does, in batches of one topic."""
        self.asked.append(list(wanted))
        self.starts.append(list(starts))
        gone = error(KafkaError.UNKNOWN_TOPIC_OR_PART, "topic orders is not there")
        for topic in sorted({topic for _, topic in wanted}):
            if self.down:
                raise self.down
            yield {pair: self.answers.get(pair, gone) for pair in wanted if pair[1] == topic}


def error(code, text=None):
    """An error of Kafka's."""
    return KafkaException(KafkaError(code, text))


class Scaled:
    """One process without its threads: a registry, and a sampler that samples when told."""

    def __init__(self, limit=10, forget_s=900, clusters=(), sampled=lambda *_: None):
        self.clock, self.kafka, self.connected, self._sampled = Clock(), Kafka(), 0, sampled
        self.registry = Registry(limit, forget_s, self.clock, clusters)
        self.sampler = self.sampling()

    def sampling(self):
        """A sampler of this Kafka, which is connected to anew when it asks for that."""

        def connect(servers):
            self.connected += 1
            return self.kafka

        return Sampler("b:9092", self.registry, connect, self._sampled, self.clock.wall)

    def state(self, name="consumer", **changes):
        """The state of a trigger whose metadata is the usual with ``changes``."""
        return self.registry.state("shop", name, METADATA | changes)

    def in_seconds(self, **changes):
        """The state of a trigger whose threshold is an age, 5 s unless told otherwise."""
        given = {key: value for key, value in METADATA.items() if key != "lagThreshold"}
        return self.registry.state("shop", "consumer", given | {"lagSeconds": "5"} | changes)

    def after(self, seconds, times=1):
        """Let time pass, then take what is due, and do so again; returns how many triggers were due at last."""
        for _ in range(times):
            self.clock.now += seconds
            due = [state for state in self.registry.of("b:9092") if state.due(self.clock.wall())]
            if due:
                self.sampler.sample(due)
        return len(due)

    def metric(self, state):
        """What KEDA would be handed now."""
        return state.read(self.clock()).metric

    def unknown(self, state):
        """Why KEDA would be handed nothing now."""
        with pytest.raises(ScalerError) as told:
            state.read(self.clock())
        return str(told.value)

    def active(self, state):
        """Whether KEDA would be told of work now."""
        return state.is_active(self.clock())
