"""A trial under way: its namespace and topics, put up and taken down, the watches that record it, and its journal.

Of a duet each side is a stage with a namespace, group, receipts and reports of its own, so that its record is that of a trial.
Topics and producer are the ``lead``'s, which is the side that is put up first. The producer reports to a topic that both hear.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException
from kubernetes import client

from lab import clock, yamltext
from lab.cluster import Cluster, apply
from lab.cluster.quorum import Quorum
from lab.errors import LabFault
from lab.inputs import objects
from lab.inputs.events import Kill
from lab.inputs.own_consumer import BLACK_BOX, OFF
from lab.inputs.steps import Decree
from lab.inputs.topics import TOPIC, numbering, variables
from lab.inputs.workload import DEPLOYMENT
from lab.kafka.lag import LagReader, PartitionLag
from lab.record.trial import Fault, Offsets, Step, Trial
from lab.trial import closing, own_consumer
from lab.trial.addresses import LOGIN, located, login_objects, own_logins
from lab.trial.deadlines import deadlines
from lab.trial.listen import Listener
from lab.trial.load import Sampler
from lab.trial.network import Network
from lab.trial.pace import Pace
from lab.trial.trial_topics import TrialTopics
from lab.trial.watch import KINDS, Transitions
from lab.wait import until

if TYPE_CHECKING:
    from lab.trial.nemesis import Nemesis

log = logging.getLogger("lab.trial")

CONSUMER = own_consumer.CONSUMER  # the Deployment, or StatefulSet, that is scaled
OFFSETS_S = 20
GONE_S = 60  # until the pods of a trial are gone, over the grace that they have


def offsets(parts: Mapping[int, PartitionLag]) -> dict[int, Offsets]:
    """Log end and committed offset of each partition."""
    return {number: Offsets(part.end, part.committed) for number, part in parts.items()}


class Journal:
    """The ``trial`` so far, and the ``phase`` that it is in, in words for the live line."""

    def __init__(self, trial: Trial) -> None:
        self.trial, self.phase = trial, "preparing"
        self._noting = threading.Lock()  # a part of the record that was given up may go on in its thread

    def note(self, **known: Any) -> None:
        """Keep the values of fields of the trial."""
        with self._noting:
            self.trial = replace(self.trial, **known)

    def mark(self, phase: str) -> None:
        """Enter ``phase``, and keep its time."""
        self.phase = phase
        self.note(times=self.trial.times | {phase: clock.now()})
        log.info("%s: %s", self.trial.id, phase)

    def add_event(self, row: Mapping[str, Any]) -> None:
        """Keep what came of an event; a decree is a step too, and a kill a fault, whose time is that of its signal."""
        self.note(events=(*self.trial.events, dict(row)))
        result = row["result"]
        if row["event"] == Decree.name:
            step = Step(row["t"], result["kind"], row["before"], row["after"], result["settled"], result["observed"])
            self.note(steps=(*self.trial.steps, step))
        elif row["event"] == Kill.name:
            self.add_fault(Fault(**{"t": row["t"], "fault": "sigkill"} | result))

    def add_fault(self, fault: Fault) -> None:
        """Keep a fault; that of an injection takes the place of what was known of it before."""
        with self._noting:
            others = (one for one in self.trial.faults if one.injection is None or one.injection != fault.injection)
            self.trial = replace(self.trial, faults=(*others, fault))


class Stage:
    """A trial, or one side of a duet, under way: its namespace, topics, watches, ``journal`` and the ``folder`` of its record.

    ``brokers`` are the trial's own, None where it runs on the cluster's; ``bootstrap`` is the address of those that it runs on.
    """

    nemesis: Nemesis | None = None  # injects the trial's faults, where it has any, while its profile is driven
    network: Network | None = None  # between its consumers and the broker, where one of its faults needs that

    def __init__(
        self, cluster: Cluster, journal: Journal, folder: Path, lead: Stage | None = None, brokers: Quorum | None = None
    ) -> None:
        self.cluster, self.journal, self.folder = cluster, journal, folder
        self.inputs = inputs = journal.trial.inputs
        self.lead = lead or self
        self.stop = threading.Event()  # the other side can't go on
        run = f"{inputs.id}-{secrets.token_hex(2)}"  # an earlier run of the same trial may still be going away
        self.namespace = f"trial-{run}"
        self.brokers = brokers
        self.bootstrap = brokers.bootstrap if brokers else cluster.bootstrap
        for_pods = brokers.bootstrap if brokers else cluster.pod_bootstrap
        self.names = inputs.environment(for_pods, run)
        if lead is not None:
            self.names |= {name: lead.names[name] for name in variables(inputs.workload.topics)}
        own_topic = cluster.topic if inputs.driver == OFF else ""
        self.names |= {TOPIC: own_topic} if own_topic else {}
        own = numbering(self.names)
        self.deadlines, self.baseline = deadlines(inputs), journal.trial.baseline
        self._halted, self._pace = False, Pace()
        self.paused: dict[str, str] = {}  # container by pod
        self._overdue = set[str]()
        self._stdout: own_consumer.Stdout | None = None
        self._watches, self._quieting, self._takedown = contextlib.ExitStack(), threading.Lock(), contextlib.ExitStack()
        single = ["RECEIPTS_TOPIC", "REPORTS_TOPIC", *(["DLQ_TOPIC"] if inputs.workload.dead_letters else [])]
        made = {self.names[key]: 1 for key in single}
        if inputs.workload.emit == "on":
            made[self.names["OUTPUT_TOPIC"]] = inputs.partitions_after or inputs.partitions
        if lead is None:
            self.traffic_reports = f"traffic-{run}" if inputs.side else self.names["REPORTS_TOPIC"]
            made |= {self.traffic_reports: 1}
            made |= {} if own_topic else dict.fromkeys(own.topics, inputs.partitions // len(own.topics))
        else:
            self.traffic_reports = lead.traffic_reports
        self.topics = TrialTopics(self.bootstrap, cluster.kafka_settings, own, made, inputs.brokers)
        self.lag = LagReader(self.bootstrap, self.names["GROUP"], own, settings=cluster.kafka_settings)
        if own_topic and (found := len(self.lag.read())) != inputs.partitions:
            raise LabFault(f"topic {own_topic} has {found} partitions, and the workload says {inputs.partitions}")
        self.api = cluster.api()
        self._takedown.callback(self.api.close)
        try:
            self._put_up(for_pods)
        except BaseException:  # nobody has this stage, so nobody else takes down what there is of it
            with closing.logged():
                self._takedown.close()
            raise

    def _put_up(self, for_pods: str) -> None:
        """Make topics, namespace and logins, and begin to watch. Each is taken down in the reverse order."""
        cluster, inputs, folder = self.cluster, self.inputs, self.folder
        if self.brokers is None:  # brokers of the trial's own end with all that they keep
            self._takedown.callback(self.topics.delete)
        self.topics.create()
        self.journal.note(topic_ids=(self.topics.first_id(),))
        apply.create_namespace(self.api, self.namespace)
        self._takedown.callback(client.CoreV1Api(self.api).delete_namespace, self.namespace)
        self._takedown.callback(self.quiet)
        parts = [*objects.applied(inputs, self.names), objects.producer(inputs)]
        logins = login_objects(cluster.kafka_settings, for_pods) + own_logins(parts)
        apply.objects(self.api, logins, self.namespace)  # no inputs: no record may keep them
        kinds = tuple(dict.fromkeys((*KINDS, ("apps/v1", self.owner(CONSUMER)))))
        self.transitions = Transitions(self.api, self.namespace, folder / "transitions.jsonl", kinds)
        self._watches.callback(self.transitions.close)
        topics = dict.fromkeys((self.names["REPORTS_TOPIC"], self.traffic_reports))
        file, settings = folder / "group_events.jsonl", cluster.kafka_settings
        self.reports = Listener(self.bootstrap, topics, file, self.transitions.notify, settings)
        self._watches.callback(self.reports.close)
        if inputs.workload.own and inputs.workload.rung != BLACK_BOX:
            self._stdout = own_consumer.Stdout(self.api, self.namespace, self.reports.give, self.reports.lose)
            self._watches.callback(self._stdout.close)
        self.load = Sampler(own=cluster.processes)
        self._watches.callback(self.load.stop)

    def owner(self, name: str) -> str:
        """The kind of the object ``name`` that makes pods."""
        return self.inputs.workload.pod_owner if name == CONSUMER else DEPLOYMENT

    def field(self, name: str, *path: str) -> Any:
        """The value at ``path`` of the last state of what makes the pods of ``name``; None when any part of it is missing."""
        return self.transitions.field(self.owner(name), name, *path)

    def lags(self) -> dict[int, PartitionLag] | None:
        """The group's lag by partition; None when Kafka does not answer, which is counted: it may the next time."""
        try:
            return self.lag.read()
        except KafkaException as error:
            self.journal.note(lag_unanswered=self.journal.trial.lag_unanswered + 1)
            log.debug("%s: no lag: %s", self.inputs.id, error)
            return None

    def read_offsets(self) -> None:
        """Keep log end and committed offset of each partition, and topics' ids. Raises :class:`LabFault` after OFFSETS_S."""
        found: list[dict[int, PartitionLag]] = []

        def answered() -> bool:
            found.extend(filter(None, [self.lags()]))
            return bool(found)

        until(answered, OFFSETS_S, "the group's offsets", every_s=0.5)
        self.journal.note(offsets=offsets(found[0]))
        self.journal.note(topic_ids=(*self.journal.trial.topic_ids, self.topics.id()))

    def line(self) -> str:
        """The live line: phase, lag with its rates, replicas, and when the lag will be gone at this pace."""
        try:
            lag = str(self._pace.read(time.monotonic(), self.lag.read().values()))
        except KafkaException:
            lag = "lag unknown"
        wanted = self.field(CONSUMER, "spec", "replicas")
        ready = self.field(CONSUMER, "status", "readyReplicas")
        return f"{self.journal.phase} {self.reports.phase}: {lag}, replicas {wanted} ({ready or 0} ready)"

    def apply(self, wanted: list[dict[str, Any]]) -> None:
        """Apply objects in the trial's namespace and keep them as inputs of the record."""
        scaler, store = (
            next((pod["status"].get("podIP", "") for pod in self.transitions.pods(name)), "")
            for name in ("lag-scaler", "store")
        )
        prometheus, reference = self.cluster.pod_prometheus_url, LOGIN if self.cluster.kafka_settings else None
        placed = (located(item, self.namespace, prometheus, scaler, reference, store, self.names) for item in wanted)
        fitted = [self.cluster.fit(item) for item in placed]
        for item in fitted:
            file = self.folder / "inputs" / f"{item['kind'].lower()}-{item['metadata']['name']}.yaml"
            file.write_text(yamltext.written(item))
        apply.objects(self.api, fitted, self.namespace)

    def produce(self) -> None:
        """Start the producer, whose reports go where each side hears them; an anchored profile begins at its moment."""
        job = objects.producer(self.inputs)
        own = {"REPORTS_TOPIC": self.traffic_reports} if self.inputs.side else {}
        if self.journal.trial.anchor is not None:
            own["START_AT"] = f"{self.journal.trial.anchor.start:.6f}"
        if own:
            container = job["spec"]["template"]["spec"]["containers"][0]
            container["env"] += [{"name": name, "value": value} for name, value in own.items()]
        self.apply([job])

    def ready(self, deployment: str, replicas: int | None = None) -> bool:
        """Whether ``deployment`` has as many ready pods as it asks for, and asks for ``replicas``."""
        asked = self.field(deployment, "spec", "replicas")
        return asked == (self.field(deployment, "status", "readyReplicas") or 0) and replicas in (None, asked)

    def check(self) -> None:
        """Raise :class:`LabFault` when a component, the recorder, the producer or the other side of a duet can't go on."""
        if fault := self.transitions.fault or self.reports.fault or self.load.fault:
            raise LabFault(fault)
        if self.stop.is_set():
            raise LabFault("the other side of the duet could not go on")
        for part in (self.nemesis, self.cluster, self.brokers, self.network):
            if part is not None:
                part.check()
        self._check_own()
        if self.lead.transitions.field("Job", "producer", "status", "failed") and self.reports.last("produced") is None:
            raise LabFault("the producer ended without its tally")

    def _check_own(self) -> None:
        """Read on what a user's own consumer says. Raises :class:`LabFault` with its last line where it does not stay up."""
        if not self.inputs.workload.own:
            return
        pods = self.transitions.pods(CONSUMER)
        if self._stdout is not None:
            self._stdout.follow(pods)
        for pod in own_consumer.overdue(pods, clock.now()):
            if pod not in self._overdue:
                self._overdue.add(pod)
                line = own_consumer.last_line(self.api, self.namespace, pod)
                log.warning("%s: %s does not end at SIGTERM and will be killed; its last line: %s", self.inputs.id, pod, line)
        if (self.journal.phase == "settling" or not self.joined()) and (found := own_consumer.crash(pods)):
            pod, restarts, code = found
            line = own_consumer.last_line(self.api, self.namespace, pod, previous=True)
            why = f"{pod} ended {restarts} times, with code {code}; its last line: {line or 'none'}"
            raise LabFault(f"your consumer does not stay up: {why}")

    def joined(self) -> bool:
        """Whether any consumer has owned a partition yet."""
        return self.reports.last("assigned") is not None

    def why_not_at_work(self) -> str:
        """Why a user's own consumer has not come to work, with its last line; "" of the lab's consumer."""
        work = self.inputs.workload
        if not work.own:
            return ""
        owned, elsewhere = self.reports.owned(), self.reports.last("elsewhere")
        pods = self.transitions.pods(CONSUMER)
        if why := own_consumer.unstarted(pods):
            return why
        login = bool(self.cluster.kafka_settings)
        why = own_consumer.stranger(owned, elsewhere, work.rung, self.inputs.partitions, self.names["GROUP"], login)
        lines = (own_consumer.last_line(self.api, self.namespace, pod["metadata"]["name"]) for pod in pods)
        return f"{why}; its last line: {next(filter(None, lines), 'none')}"

    def quiet(self) -> None:
        """Stop watching. The record's files no longer grow when this returns, whoever called it first."""
        with self._quieting:
            self._watches.close()

    def halt(self) -> None:
        """Stop watching, then all that runs in the namespace. Raises :class:`LabFault` when pods are left after their grace."""
        if self._halted:
            return
        self._halted = True
        self.quiet()
        applied = [*objects.applied(self.inputs, self.names), *([objects.producer(self.inputs)] if self.lead is self else [])]
        apply.delete(self.api, applied, self.namespace)
        core = client.CoreV1Api(self.api)
        until(
            lambda: not core.list_namespaced_pod(self.namespace, _request_timeout=10).items,
            GONE_S + self.inputs.workload.grace_s,
            f"pods of {self.namespace} gone",
        )

    def close(self) -> None:
        """Take down what the trial put up, all of it whatever fails of it. The empty namespace goes by itself."""
        with self._takedown:
            self.halt()
