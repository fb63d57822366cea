"""Takes a consumer through its life on a tiny topic of a real broker: 1 -> 3 -> 1, a kill, the end. Nothing judges here."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import psutil
from confluent_kafka import ConsumerGroupState, KafkaException
from confluent_kafka.admin import AdminClient

from lab import clock
from lab.conformance.outputs import Outputs
from lab.conformance.seen import COMMIT, FINISH, JOIN, LEAVE, RECOVER, SHARE, TAKE_OVER, Seen, Stop, Used, Wait, demand
from lab.conformance.traffic import Pair, Traffic
from lab.errors import LabFault
from lab.host import processes
from lab.host.processes import Daemon
from lab.inputs.own_consumer import POD_NAME, login_variables
from lab.inputs.workload import Workload
from lab.kafka import topics
from lab.kafka.lag import LagReader
from lab.kubelet.environment import bare, expand
from lab.record import contract
from lab.wait import until

PARTITIONS = 6  # two for each of three members
LOOK_S = 0.05
TELL_S = 2.0  # a report comes so much after what it tells
KILL_S = ANSWER_S = 5.0
LEAST_S = 1.0  # of a stage whose turn comes late
COMMITS_S = 5.0  # apart, by Kafka's auto.commit.interval.ms: what the stages below allow for


@dataclass(frozen=True)
class Patience:
    """How long each stage may take, s, and all of them together."""

    join_s: float = 15.0  # a JVM on a busy machine, and its first rebalance
    commit_s: float = 8.0  # Kafka's auto.commit.interval.ms is 5 s
    share_s: float = 12.0
    grace_s: float = 8.0
    finish_s: float = 8.0
    take_over_s: float = 14.0  # a session timeout of 10 s, and a start; Java's own is 45 s
    all_s: float = 52.0  # with the broker's start less than a minute

    @classmethod
    def of(cls, workload: Workload) -> Self:
        """That with a consumer which starts and commits as ``workload`` declares."""
        usual = cls()
        start, commit = workload.start_s, max(0.0, workload.commit_interval_ms / 1000 - COMMITS_S)
        return cls(
            join_s=usual.join_s + start,
            commit_s=usual.commit_s + commit,
            share_s=usual.share_s + start,
            finish_s=usual.finish_s + commit,
            take_over_s=usual.take_over_s + start,
            all_s=usual.all_s + 3 * start + 3 * commit,
        )


@dataclass(frozen=True)
class Consumer:
    """How one is started: its ``command``, and the variables ``env`` beside those of the contract.

    ``$(NAME)`` in a variable stands for one of the contract's, or one before it.
    """

    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)


class Stopped(Exception):
    """A consumer ended by itself."""


class Rehearsal:
    """A rehearsal of ``consumer`` under the lab's run folder ``run``, on the broker at ``bootstrap``.

    ``name`` tells its topics from others there. ``messages`` are sent again and again; without any the lab's events are.
    ``login`` has the settings of librdkafka with which a client logs in, none where the broker does not ask for it.
    """

    def __init__(
        self,
        run: Path,
        bootstrap: str,
        name: str,
        consumer: Consumer,
        patience: Patience,
        messages: Sequence[Pair] = (),
        login: Mapping[str, str] | None = None,
    ) -> None:
        self._run, self._bootstrap, self._consumer, self._patience = run, bootstrap, consumer, patience
        self._login = dict(login or {})
        kinds = ("receipts", "reports", "dlq", "output")
        self._single = {f"{kind.upper()}_TOPIC": f"{kind}-{name}" for kind in kinds}
        self._group, self._topic, self._watched = f"enrich-{name}", f"events-{name}", f"watched-{name}"
        self._running: dict[str, Daemon] = {}
        self._logs: dict[str, Path] = {}
        self._messages = messages
        self._seen = Seen(self._group, self._topic, PARTITIONS, patience.grace_s, login=bool(login))

    def run(self) -> Seen:
        """Go through all stages, as far as the consumer comes. Raises :class:`LabFault` where the lab's own parts fail."""
        single, seen = self._single, self._seen
        wanted = dict.fromkeys([*single.values(), self._watched], 1) | {self._topic: PARTITIONS}
        topics.create(self._bootstrap, wanted | {single["OUTPUT_TOPIC"]: PARTITIONS}, self._login)
        seen.began = clock.now()
        read = single["REPORTS_TOPIC"], single["RECEIPTS_TOPIC"], self._watched
        with ExitStack() as parts:
            self._lag = LagReader(self._bootstrap, self._group, self._topic, settings=self._login)
            self._observer = self._observe()
            parts.callback(processes.stop, self._run, self._observer, KILL_S)
            self._outputs = parts.enter_context(Outputs(self._bootstrap, seen, *read, self._login))
            traffic = Traffic(self._bootstrap, self._topic, PARTITIONS, self._messages, self._login)
            self._traffic = parts.enter_context(traffic)
            parts.callback(self._kill_all)
            self._live()
            self._kill_all()
            self._send(False)
            self._outputs.settle()
            seen.over, seen.checks = clock.now(), self._traffic.checks
            seen.committed = {number: part.committed or 0 for number, part in self._lag.read().items()}
            _, seen.reports, seen.bad_report = self._outputs.told(self._logs)
            seen.last_words = next((one for one in map(_last_line, reversed(self._logs.values())) if one), "")
        return seen

    def _live(self) -> None:
        seen, patience = self._seen, self._patience
        self._end = time.monotonic() + patience.all_s
        self._send(True)
        self._start(1)
        if not self._wait(JOIN, lambda: self._shared(1), patience.join_s):
            seen.elsewhere = self._outputs.elsewhere
            seen.groups = self._other_groups()
            return
        self._tell(JOIN)
        first, alone = next(iter(self._running)), set(self._outputs.owned)
        seen.strangers = tuple(sorted(alone - self._running.keys()))
        joined = self._used(first)
        commits = self._wait(COMMIT, lambda: self._behind(0) == {}, patience.commit_s)
        self._start(2)
        if not self._wait(SHARE, lambda: self._shared(3), patience.share_s):
            return
        self._tell(SHARE)
        begun = time.monotonic()
        if not self._stop(list(self._running)[1:]):
            return  # their partitions stand still until the session timeout
        held: Collection[int] = range(PARTITIONS)
        if self._wait(LEAVE, lambda: self._shared(1), patience.grace_s, begun):
            self._tell(LEAVE)
        else:  # those of the others stand still until the session timeout
            held = [number for name in alone for number in self._outputs.owned.get(name, ())] or range(PARTITIONS)
        self._send(False)
        if commits:
            self._commit_all(FINISH, held)
        self._send(True)
        seen.demand = demand(joined, self._used(first))
        before = set(self._outputs.owned)
        seen.killed = clock.now()
        self._kill_all()
        self._start(1)
        if self._wait(TAKE_OVER, lambda: self._shared(1) and set(self._outputs.owned) != before, patience.take_over_s):
            self._send(False)
            if commits:
                self._commit_all(RECOVER)
            self._stop(list(self._running))

    def _observe(self) -> Daemon:
        flags = {"topic": self._topic, "group": self._group, "reports-topic": self._watched, "metrics-port": 0}
        flags |= {"bootstrap-servers": self._bootstrap, "interval-ms": 100}
        env = {**os.environ, "HOSTNAME": "observer", **login_variables(self._login)}
        command = [sys.executable, "-m", "lab.programs.observer", *(f"--{name}={value}" for name, value in flags.items())]
        return processes.start(self._run, f"observer-{self._topic}", command, env)

    def _start(self, count: int) -> None:
        for number in range(len(self._logs) + 1, len(self._logs) + 1 + count):
            pod = f"consumer-{number}"
            variables = {
                **{"BOOTSTRAP_SERVERS": self._bootstrap, "TOPIC": self._topic, "GROUP": self._group},
                **self._single,
                **login_variables(self._login),
                **{POD_NAME: pod, "HOSTNAME": pod, "POD_IP": f"127.77.{os.getpid() % 250}.{number}"},
            }
            for name, value in self._consumer.env.items():  # one may be made of those before it
                variables[name] = expand(value, variables)
            env = bare(os.environ.get("PATH", os.defpath), self._run) | variables
            daemon = processes.start(self._run, f"{pod}-of-{self._topic}", self._consumer.command, env)
            self._running[pod], self._logs[pod] = daemon, daemon.log

    def _used(self, pod: str) -> Used | None:
        """What the processes of ``pod`` have used; None where one has just ended."""
        try:
            leader = psutil.Process(self._running[pod].process.pid)
            tree = [leader, *leader.children(recursive=True)]
            cpu = sum(sum(one.cpu_times()[:2]) for one in tree)
            return Used(time.monotonic(), cpu, sum(one.memory_info().rss for one in tree))
        except psutil.NoSuchProcess:
            return None

    def _send(self, on: bool) -> None:
        self._outputs.traffic = on and not self._seen.waits  # until the first pause: what comes after it is a kill
        (self._traffic.start if on else self._traffic.stop)()

    def _wait(self, stage: str, condition: Callable[[], bool], limit_s: float, since: float | None = None) -> bool:
        """Wait for ``condition``, ``limit_s`` at most, and keep how long it took ``since`` (monotonic s); whether it came."""
        took: float | None = None
        begun = time.monotonic() if since is None else since
        left_s = max(LEAST_S, self._end - time.monotonic())
        cut, limit_s = left_s < limit_s, min(limit_s, left_s)
        try:
            until(condition, limit_s, stage, self._check, every_s=LOOK_S)
            took = time.monotonic() - begun
        except Stopped as stopped:
            self._seen.ended = str(stopped)
        except LabFault:
            self._observer.check()  # the deadline passed, unless it was the lab's own fault
        if took is not None or self._seen.ended or not cut:  # a stage that was cut short was not tried
            self._seen.waits[stage] = Wait(took, limit_s)
        return took is not None

    def _check(self) -> None:
        self._observer.check()
        for pod, daemon in self._running.items():
            if (code := daemon.process.poll()) is not None:
                raise Stopped(f"{pod} ended by itself with code {code}; its last line: {_last_line(daemon.log) or 'none'}")

    def _shared(self, members: int) -> bool:
        owned = self._outputs.owned
        return len(owned) == members and sorted(n for held in owned.values() for n in held) == list(range(PARTITIONS))

    def _behind(self, least: int | None = None) -> dict[int, int]:
        """How many messages of each partition are not committed; only of those committed up to ``least``, if it is given."""
        try:
            lags = self._lag.read()
        except KafkaException:
            return dict.fromkeys(range(PARTITIONS), 0)  # not known: none is done
        return {
            number: part.lag for number, part in lags.items() if part.lag and (least is None or (part.committed or 0) <= least)
        }

    def _commit_all(self, stage: str, held: Collection[int] = range(PARTITIONS)) -> None:
        """Wait until all of the partitions that are ``held`` is committed, and keep what is not."""

        def behind() -> dict[int, int]:
            return {number: lag for number, lag in self._behind().items() if number in held}

        if not self._wait(stage, lambda: behind() == {}, self._patience.finish_s):
            self._seen.left[stage] = behind()

    def _tell(self, stage: str) -> None:
        """Keep what reports say, once they say what is seen, or when that has not come in time."""
        alive = {pod: log for pod, log in self._logs.items() if pod in self._running}

        def agrees() -> bool:
            owned, count, _ = self._outputs.told(alive)
            return not count or sorted(n for held in owned.values() for n in held) == list(range(PARTITIONS))

        with suppress(LabFault):
            until(agrees, TELL_S, "its reports", every_s=LOOK_S)
        owned, count, _ = self._outputs.told(alive)
        if count:
            self._seen.told[stage] = owned

    def _stop(self, pods: Sequence[str]) -> bool:
        """Send SIGTERM to the processes of ``pods``, and SIGKILL to those that outlive their grace; whether none did."""
        chosen = {pod: self._running.pop(pod) for pod in pods}
        begun, took = time.monotonic(), dict[str, float]()
        for daemon in chosen.values():
            with suppress(ProcessLookupError):
                daemon.process.send_signal(signal.SIGTERM)

        def ended() -> bool:
            for pod, daemon in chosen.items():
                if pod not in took and daemon.process.poll() is not None:
                    took[pod] = time.monotonic() - begun
            return len(took) == len(chosen)

        with suppress(LabFault):
            until(ended, self._patience.grace_s, "an end after SIGTERM", every_s=LOOK_S)
        self._seen.stops += [Stop(took.get(pod), daemon.process.poll()) for pod, daemon in chosen.items()]
        for daemon in chosen.values():
            self._kill(daemon)
        return len(took) == len(chosen)

    def _other_groups(self) -> tuple[str, ...]:
        admin = AdminClient({"bootstrap.servers": self._bootstrap, "log_level": 2, **self._login})
        listed = admin.list_consumer_groups(request_timeout=ANSWER_S).result().valid or []
        stable = (one.group_id for one in listed if getattr(one, "state", None) == ConsumerGroupState.STABLE)
        return tuple(sorted(name for name in stable if name != self._group))

    def _kill_all(self) -> None:
        while self._running:
            self._kill(self._running.popitem()[1])

    def _kill(self, daemon: Daemon) -> None:
        """Send SIGKILL to the session of a process, as a node does, and wait until it is gone."""
        with suppress(ProcessLookupError):
            os.killpg(daemon.process.pid, signal.SIGKILL)
        daemon.process.wait(KILL_S)
        processes.forget(self._run, daemon.process.pid)


def _last_line(log: Path) -> str:
    """What the end of a process's output says, "" for nothing."""
    return contract.last_words(log.read_text(errors="replace").splitlines())
