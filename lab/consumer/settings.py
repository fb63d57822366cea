"""What a consumer is told: flags, each of which may come from the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lab.consumer.failures import Failures, Place
from lab.consumer.retries import Backoff
from lab.flags import Flags, choice, number, whole

BALANCERS = ("cooperative-sticky", "range", "consumer")


@dataclass(frozen=True)
class Cost:
    """Processing time of one message, ms: drawn uniformly from [low, high] by the message's seq."""

    low: float
    high: float

    @property
    def mean(self) -> float:
        """Mean processing time, ms."""
        return (self.low + self.high) / 2

    @staticmethod
    def parse(text: str) -> Cost:
        """From ``6`` or ``2-10``. Raises ``ValueError`` outside 0.001 to 600,000 ms or when reversed."""
        low, _, high = text.partition("-")
        cost = Cost(float(low), float(high or low))
        if not 0.001 <= cost.low <= cost.high <= 600_000:
            raise ValueError(text)
        return cost

    def of(self, seq: int) -> float:
        """Processing time of message ``seq``, ms; the same in every run (Knuth's multiplicative hash spreads it)."""
        return self.low + (self.high - self.low) * ((seq * 2_654_435_761 & 0xFFFFFFFF) / 2**32)


@dataclass(frozen=True)
class Settings:
    """A consumer's settings; times in the unit their name ends with."""

    bootstrap_servers: str
    kafka_settings: Mapping[str, str] = field(repr=False)
    topic: str
    group: str
    receipts_topic: str
    reports_topic: str
    process_ms: Cost
    concurrency: int
    burn_percent: int
    batch_ms: int
    poll_ms: int
    balancer: str
    commit: str
    commit_interval_ms: int
    drain: bool
    drain_timeout_s: float
    wake: bool
    heartbeat_ms: int
    session_timeout_ms: int
    offset_reset: str
    partition_warmup_ms: int
    metadata_refresh_ms: int
    failures: Failures
    backoff: Backoff
    dead_letters: bool
    dlq_topic: str
    join: bool
    pod_ip: str
    metrics_port: int
    client_id: str

    @property
    def batch_size(self) -> int:
        """Messages that take ``batch_ms`` at the pod's rate: they share their receipts."""
        return self._taking(self.batch_ms)

    @property
    def poll_size(self) -> int:
        """Messages that take ``poll_ms`` at the pod's rate: they are in flight together, and committed together."""
        return max(self.batch_size, self._taking(self.poll_ms))

    def _taking(self, milliseconds: int) -> int:
        return max(1, round(milliseconds * self.concurrency / self.process_ms.mean))


def flags() -> Flags:
    """The consumer's flags."""
    parser = Flags(prog="python -m lab.consumer", description=__doc__)
    parser.everywhere(metrics_port=9090)
    parser.flag("topic", str, "events", "topic to consume")
    parser.flag("group", str, "enrich", "consumer group")
    parser.flag("receipts-topic", str, "receipts", "topic that stands for the downstream store")
    parser.flag("reports-topic", str, "reports", "topic for the recorder's group events")
    parser.flag(
        "process-ms", Cost.parse, Cost(2, 10), "processing time of a message, ms: 6 or 2-10", "6 or 2-10, 0.001 to 600,000"
    )
    parser.flag("concurrency", whole(1, 10_000), 6, "messages processed at the same time", "1 to 10,000")
    parser.flag("burn", whole(0, 100), 0, "percent of the processing time spent computing; the rest waits", "0 to 100")
    parser.flag("batch-ms", whole(1, 60_000), 50, "how much work shares a write to the store, ms", "1 to 60,000")
    parser.flag("poll-ms", whole(1, 600_000), 50, "how much work is taken, and is in flight, at a time, ms", "1 to 600,000")
    parser.flag("balancer", choice(*BALANCERS), BALANCERS[0], "|".join(BALANCERS), f"one of {', '.join(BALANCERS)}")
    parser.flag("commit", choice("manual", "auto"), "manual", "manual commits follow receipts", "manual or auto")
    parser.flag("commit-interval-ms", whole(0, 600_000), 250, "least time between commits, ms", "0 to 600,000")
    parser.flag("drain", choice("on", "off"), "on", "finish, commit and leave on SIGTERM, or just die", "on or off")
    parser.flag("drain-timeout", whole(0, 86_400), 20, "longest wait for work in flight, s", "0 to 86,400")
    parser.flag(
        "wake", choice("on", "off"), "on", "wake the fetchers after an incremental rebalance; off is stock", "on or off"
    )
    parser.flag("heartbeat-ms", whole(100, 60_000), 500, "heartbeat interval of classic members, ms", "100 to 60,000")
    parser.flag(
        "session-timeout-ms", whole(1000, 1_800_000), 10_000, "session timeout of classic members, ms", "1,000 to 1,800,000"
    )
    parser.flag("auto-offset-reset", choice("earliest", "latest"), "earliest", "where a new group starts", "earliest or latest")
    parser.flag(
        "partition-warmup-ms", whole(0, 600_000), 0, "work per newly assigned partition (a cache, state), ms", "0 to 600,000"
    )
    parser.flag(
        "metadata-refresh-ms",
        whole(10, 3_600_000),
        300_000,
        "how often partitions are looked for, ms; the default is librdkafka's",
        "10 to 3,600,000",
    )
    parser.flag("seed", whole(0, 2**63 - 1), 1, "decides which messages fail", "a whole number from 0")
    parser.flag("fail-rate", number(0, 1), 0.0, "share of messages that fail at first, and succeed in a retry", "0 to 1")
    parser.flag("poison-rate", number(0, 1), 0.0, "share of messages that never succeed", "0 to 1")
    parser.flag(
        "poison", Place.parse, "", "one message that never succeeds: 3:1000 is offset 1000 of partition 3", "PARTITION:OFFSET"
    )
    parser.flag(
        "retry-ms",
        Backoff.parse,
        "1000,2000,4000",
        "delay before each retry, ms",
        "1 to 20 delays of 0 to 600,000, with commas",
    )
    parser.flag("retry-jitter", number(0, 1), 0.0, "a delay is drawn from its length times 1 - this to 1 + this", "0 to 1")
    parser.flag(
        "dlq",
        choice("on", "off"),
        "on",
        "after the last retry the message is a dead letter; off: it is retried for ever, and its partition stands still",
        "on or off",
    )
    parser.flag("dlq-topic", str, "dead-letters", "topic for dead letters")
    parser.flag("join", choice("on", "off"), "on", "off: start like any consumer, but stay out of the group", "on or off")
    return parser


def settings(options: Any) -> Settings:
    """The settings in parsed flags; the client.id is the pod's own name, as two members must never share one."""
    return Settings(
        bootstrap_servers=options.bootstrap_servers,
        kafka_settings=options.kafka_settings,
        topic=options.topic,
        group=options.group,
        receipts_topic=options.receipts_topic,
        reports_topic=options.reports_topic,
        process_ms=options.process_ms,
        concurrency=options.concurrency,
        burn_percent=options.burn,
        batch_ms=options.batch_ms,
        poll_ms=options.poll_ms,
        balancer=options.balancer,
        commit=options.commit,
        commit_interval_ms=options.commit_interval_ms,
        drain=options.drain == "on",
        drain_timeout_s=float(options.drain_timeout),
        wake=options.wake == "on",
        heartbeat_ms=options.heartbeat_ms,
        session_timeout_ms=options.session_timeout_ms,
        offset_reset=options.auto_offset_reset,
        partition_warmup_ms=options.partition_warmup_ms,
        metadata_refresh_ms=options.metadata_refresh_ms,
        failures=Failures(
            options.seed, options.fail_rate, options.poison_rate, options.poison, len(options.retry_ms.delays_ms)
        ),
        backoff=replace(options.retry_ms, jitter=options.retry_jitter),
        dead_letters=options.dlq == "on",
        dlq_topic=options.dlq_topic,
        join=options.join == "on",
        pod_ip=options.pod_ip,
        metrics_port=options.metrics_port,
        client_id=os.environ.get("HOSTNAME", f"consumer-{os.getpid()}"),
    )
