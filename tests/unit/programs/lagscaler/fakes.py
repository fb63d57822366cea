"""A clock that is set, and a Kafka that answers what it is told."""

from confluent_kafka import KafkaError, KafkaException

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
        self.answers["enrich", topic] = {
            number: PartitionLag(10_000 + lag, 10_000) if lag is not None else error(KafkaError.LEADER_NOT_AVAILABLE)
            for number, lag in enumerate(lags)
        }

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

    def __init__(self, limit=10, forget_s=900, clusters=()):
        self.clock, self.kafka = Clock(), Kafka()
        self.registry = Registry(limit, forget_s, self.clock, clusters)
        self.sampler = Sampler("b:9092", self.registry, lambda _: self.kafka, lambda *_: None, self.clock.wall)

    def state(self, name="consumer", **changes):
        """The state of a trigger whose metadata is the usual with ``changes``."""
        return self.registry.state("shop", name, METADATA | changes)

    def after(self, seconds):
        """Let time pass, then take what is due; returns how many triggers that was."""
        self.clock.now += seconds
        due = [state for state in self.registry.of("b:9092") if state.due(self.clock.wall())]
        if due:
            self.sampler.sample(due)
        return len(due)

    def metric(self, state):
        """What KEDA would be handed now."""
        return state.read(self.clock()).metric
