"""The consumer's settings: what a trial may set, and what connects the program to its cluster."""

from __future__ import annotations

import os
import re
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property

from lab.errors import InputError
from lab.flags import ANY, SEED, SWITCH, Flags, Kind, choice, number, whole
from lab.inputs import clients, store, topics
from lab.inputs import settings as declarations
from lab.inputs.failures import MOST_DELAY_MS, MOST_DELAYS, Backoff, Failures, Place
from lab.inputs.settings import Scaling, setting

SLACK_S = 0.02  # a batch that follows another one within this time is counted from its end: the pod had work all the while
LAB, STOCK = "lab", "stock"
DYNAMIC, STATIC = "dynamic", "static"
FAIL, CRASH, HANG, SPIN = POISON_MODES = ("fail", "crash", "hang", "spin")
LIVENESS_S = 120  # half of it is the program's, and half are the six failures of a probe that the manifest has
STOCK_SESSION_MS = 45_000  # librdkafka's own session timeout, and a broker's for a member of a KIP-848 group


class Balancer(StrEnum):
    """How a group's partitions are assigned to its members."""

    COOPERATIVE_STICKY = "cooperative-sticky"
    RANGE = "range"
    ROUNDROBIN = "roundrobin"
    CONSUMER = "consumer"  # KIP-848: the broker assigns

    @property
    def eager(self) -> bool:
        """Whether every member gives up every partition at each rebalance."""
        return self in (self.RANGE, self.ROUNDROBIN)

    @property
    def barrier(self) -> bool:
        """Whether a rebalance waits until all members have joined the round."""
        return self is not self.CONSUMER

    @property
    def by_topic(self) -> bool:
        """Whether each topic is shared out by itself."""
        return self is self.RANGE


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

    def total(self, seqs: Sequence[int]) -> float:
        """Processing time of the messages ``seqs``, ms; the same in every run (Knuth's multiplicative hash spreads it)."""
        spread = self.high - self.low
        if not spread:
            return self.low * len(seqs)
        return self.low * len(seqs) + spread * (sum([seq * 2_654_435_761 & 0xFFFFFFFF for seq in seqs]) / 2**32)


def cores(text: str) -> frozenset[int]:
    """The numbers of cores in ``text``, separated by commas; none in an empty one. Raises ``ValueError`` for anything else."""
    if text and not re.fullmatch(r"[0-9]+(,[0-9]+)*", text):
        raise ValueError(text)
    return frozenset(map(int, filter(None, text.split(","))))


_COST = Kind(Cost.parse, "6 or 2-10, 0.001 to 600,000")
_CORES = Kind(cores, "numbers of cores with commas, as 0,1; empty: all")
_PLACE = Kind(Place.parse, "PARTITION:OFFSET")
_DELAYS = Kind(Backoff.parse, f"1 to {MOST_DELAYS} delays of 0 to {MOST_DELAY_MS:,}, with commas")
_TIMES_RATE = Scaling("multiplied by the scale's rate", lambda value, scale: round(value * scale.rate))
_SECONDS = Scaling("divided by the scale's time", lambda value, scale: value / scale.time)
_MILLISECONDS = Scaling("divided by the scale's time", lambda value, scale: round(value / scale.time))
_BY_TIME = Scaling("divided by the scale's time", lambda value, scale: str(Backoff.parse(value).compressed(scale.time)))


@dataclass(frozen=True, kw_only=True)
class TrialSettings(store.TrialSettings, topics.TrialSettings):
    """What a trial sets of its consumers, as plain data: a field here is all that a new setting needs."""

    client: str = setting(
        clients.PYTHON, choice(*clients.CLIENTS), "the consumer's program and its Kafka client; python has librdkafka"
    )
    process_ms: str = setting("2-10", _COST, "processing time of a message: 6 or 2-10", "ms")
    concurrency: int = setting(6, whole(1, 10_000), "messages processed at the same time", scaling=_TIMES_RATE)
    burn: int = setting(0, whole(0, 100), "share of the processing time spent computing; the rest waits", "percent")
    cpus: str = setting("", _CORES, "cores that a pod may run on")
    batch_ms: int = setting(50, whole(1, 60_000), "how much work shares a write to the store", "ms")
    poll_ms: int = setting(50, whole(1, 600_000), "how much work is taken, and is in flight, at a time", "ms")
    balancer: str = setting(
        Balancer.COOPERATIVE_STICKY.value, choice(*Balancer), "how partitions are assigned to members; consumer is KIP-848"
    )
    membership: str = setting(
        DYNAMIC,
        choice(DYNAMIC, STATIC),
        "dynamic: each process is a new member; static: one of the pod's name is the same member (group.instance.id)",
    )
    commit: str = setting("manual", choice("manual", "auto"), "manual commits follow receipts")
    commit_interval_ms: int = setting(
        5000,
        whole(0, 600_000),
        "least time between commits; the default is that of Kafka's auto.commit.interval.ms",
        "ms",
        scaling=_MILLISECONDS,
    )
    drain: str = setting("on", SWITCH, "finish, commit and leave on SIGTERM, or just die")
    drain_timeout: int = setting(20, whole(0, 86_400), "longest wait for work in flight", "s")
    wake: str = setting("on", SWITCH, "wake the fetchers after an incremental rebalance; off is stock")
    client_settings: str = setting(
        LAB,
        choice(LAB, STOCK),
        "lab: a small queue and back-off, and the heartbeat, session timeout and fetch below; stock: the client's own defaults",
    )
    heartbeat_ms: int = setting(500, whole(100, 60_000), "heartbeat interval of classic members", "ms")
    session_timeout_ms: int = setting(10_000, whole(1000, 1_800_000), "session timeout of classic members", "ms")
    partition_fetch_kib: int = setting(
        64,
        whole(1, 51_200),
        "most that a client other than python fetches of a partition at a time; partitions that are gained wait behind it",
        "KiB",
    )
    auto_offset_reset: str = setting("earliest", clients.RESET, "where a new group starts", client="auto.offset.reset")
    start_s: float = setting(
        0.0,
        number(0, 3600),
        "least time from the process's start until it joins: image pull, JVM, cache",
        "s",
        scaling=_SECONDS,
    )
    partition_warmup_ms: int = setting(0, whole(0, 600_000), "work per newly assigned partition (a cache, state)", "ms")
    metadata_refresh_ms: int = setting(
        300_000,
        whole(10, 3_600_000),
        "how often the client looks for new partitions; the default is librdkafka's",
        "ms",
        client="topic.metadata.refresh.interval.ms",
    )
    fail_rate: float = setting(0.0, number(0, 1), "share of messages that fail at first, and succeed in a retry")
    poison_rate: float = setting(0.0, number(0, 1), "share of messages that never succeed")
    poison: str = setting("", _PLACE, "one message that never succeeds: 3:1000 is offset 1000 of partition 3")
    poison_mode: str = setting(
        FAIL,
        choice(*POISON_MODES),
        "what a message that never succeeds does: its attempt fails, or its consumer ends, stands still or computes for ever",
    )
    most_deaths: int = setting(
        0, whole(0, 100), "a message with which so many consumers died becomes a dead letter untried; 0: none does"
    )
    max_poll_ms: int = setting(
        300_000,
        whole(1000, 86_400_000),
        "how long a member may take no messages before it is out of the group; the default is librdkafka's",
        "ms",
        client="max.poll.interval.ms",
    )
    liveness_s: int = setting(
        LIVENESS_S, whole(12, 86_400), "how long the loop may stand until the liveness probe has the container restarted", "s"
    )
    retry_ms: str = setting("1000,2000,4000", _DELAYS, "delay before each retry", "ms", scaling=_BY_TIME)
    retry_jitter: float = setting(0.0, number(0, 1), "a delay is drawn from its length times 1 - this to 1 + this")
    dlq: str = setting(
        "on",
        SWITCH,
        "after the last retry the message is a dead letter; off: it is retried for ever, and its partition stands still",
    )
    emit: str = setting(
        "off",
        SWITCH,
        "send each processed message on, with the place that it came from, to a topic for others; then the receipt",
    )

    @cached_property
    def cost(self) -> Cost:
        """The processing time of a message."""
        return Cost.parse(self.process_ms)

    @property
    def session_s(self) -> float:
        """The time after which the group gives up a silent member, s."""
        known = self.client_settings == STOCK or self.balancer == Balancer.CONSUMER
        return (STOCK_SESSION_MS if known else self.session_timeout_ms) / 1000

    def check_together(self, where: object) -> None:
        """Raise :class:`InputError` for settings that are each allowed, but not together."""
        if self.fail_rate + self.poison_rate > 1:
            raise InputError(where, "poison_rate", self.poison_rate, f"at most 1 - fail_rate, {1 - self.fail_rate:g}")
        session_ms = STOCK_SESSION_MS if self.client_settings == STOCK else self.session_timeout_ms
        if self.max_poll_ms < session_ms:
            raise InputError(where, "max_poll_ms", self.max_poll_ms, f"at least the session timeout, {session_ms}")
        if self.client != clients.JAVA and self.auto_offset_reset not in clients.RESETS:
            allowed = f"{' or '.join(clients.RESETS)} with client {self.client}"
            raise InputError(where, "auto_offset_reset", self.auto_offset_reset, allowed)
        if self.store_slots and self.burn:
            raise InputError(where, "burn", self.burn, "0 with store_slots: a pod waits for the shared store all the while")
        if self.most_deaths and (self.dlq, self.commit) != ("on", "manual"):
            raise InputError(where, "most_deaths", self.most_deaths, "0, unless dlq is on and commit is manual")
        for name in ("heartbeat_ms", "session_timeout_ms", "partition_fetch_kib") if self.client_settings == STOCK else ():
            if (value := getattr(self, name)) != (default := getattr(TrialSettings, name)):
                raise InputError(where, name, value, f"{default}, which a stock client does not use: it has its own default")


@dataclass(frozen=True, kw_only=True)
class Settings(TrialSettings, topics.Settings):
    """All that a consumer is given; ``client_id`` is the pod's own name, as two members must never share one."""

    bootstrap_servers: str
    kafka_settings: Mapping[str, str] = field(repr=False)
    pod_ip: str
    metrics_port: int
    client_id: str
    group: str = setting("enrich", ANY, "consumer group")
    receipts_topic: str = setting("receipts", ANY, "topic that stands for the downstream store")
    reports_topic: str = setting("reports", ANY, "topic for the recorder's group events")
    dlq_topic: str = setting("dead-letters", ANY, "topic for dead letters")
    output_topic: str = setting("output", ANY, "topic for what the group emits")
    seed: int = setting(1, SEED, "decides which messages fail")
    store_address: str = setting("", ANY, "host:port of the shared store, with store_slots")
    store_token: str = setting("", ANY, "what each write to it begins with")
    join: str = setting("on", SWITCH, "off: start like any consumer, but stay out of the group")

    @property
    def batch_size(self) -> int:
        """Messages that take ``batch_ms`` at the pod's rate: they share their receipts."""
        return self._taking(self.batch_ms)

    @property
    def poll_size(self) -> int:
        """Messages that take ``poll_ms`` at the pod's rate: they are in flight together, and committed together."""
        return max(self.batch_size, self._taking(self.poll_ms))

    @property
    def backoff(self) -> Backoff:
        """The delays between the attempts at a message."""
        return replace(Backoff.parse(self.retry_ms), jitter=self.retry_jitter)

    @property
    def failures(self) -> Failures:
        """What fails."""
        place = Place.parse(self.poison)
        return Failures(self.seed, self.fail_rate, self.poison_rate, place, len(self.backoff.delays_ms))

    def _taking(self, milliseconds: int) -> int:
        return max(1, round(milliseconds * self.concurrency / self.cost.mean))


def flags() -> Flags:
    """The consumer's flags."""
    return declarations.program(Settings, "consumer", __doc__, 9090)


def settings(options: Namespace) -> Settings:
    """The settings in parsed flags. Raises :class:`InputError` for two that are not allowed together."""
    made = Settings(**vars(options), client_id=os.environ.get("HOSTNAME", f"consumer-{os.getpid()}"))
    made.check_together("command line")
    return made
