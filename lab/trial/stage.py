"""What a trial needs to run, put up, asked and taken down: its namespace, its topics, and the watches that record it.

Of a duet each side is a stage with a namespace, group, receipts and reports of its own, so that its record is that of a trial.
Topic and producer are the ``lead``'s, which is the side that is put up first. The producer reports to a topic that both hear.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from pathlib import Path
from typing import Any

import yaml
from confluent_kafka import KafkaException
from kubernetes import client

from lab import clock
from lab.cluster import Cluster, apply
from lab.errors import LabFault
from lab.kafka import topics
from lab.kafka.lag import LagReader, PartitionLag
from lab.model.baseline import baseline
from lab.record.trial import Offsets
from lab.spec.events import SIGKILL, Kill
from lab.spec.inputs import Inputs
from lab.spec.steps import Decree
from lab.trial import login
from lab.trial.deadlines import deadlines
from lab.trial.listen import Listener
from lab.trial.load import Sampler
from lab.trial.located import located
from lab.trial.pace import Pace
from lab.trial.watch import Transitions
from lab.wait import until

log = logging.getLogger("lab.trial")

CONSUMER = "consumer"  # the Deployment that is scaled
OFFSETS_S = 20
GONE_S = 60  # until the pods of a trial are gone, over the grace that they have


class Stage:
    """A trial, or one side of a duet, under way: its namespace, topics, watches and record folder."""

    def __init__(self, cluster: Cluster, inputs: Inputs, folder: Path, lead: Stage | None = None) -> None:
        self.cluster, self.inputs, self.folder = cluster, inputs, folder
        self.lead = lead or self
        self.stop = threading.Event()  # the other side can't go on
        run = f"{inputs.id}-{secrets.token_hex(2)}"  # an earlier run of the same trial may still be going away
        self.namespace = f"trial-{run}"
        self.names = inputs.environment(cluster.pod_bootstrap, run)
        self.phase = "preparing"
        self.deadlines = deadlines(inputs)
        self.baseline = baseline(inputs.policy, inputs.partitions)
        self.lag_unanswered = 0  # how often Kafka did not answer when it was asked for the lag
        self._halted = False
        self._pace = Pace()
        self.times: dict[str, float] = {}
        self.ledger_s: float | None = None  # how long settling the ledger took
        self.offsets: dict[int, Offsets] = {}
        self.events: list[dict[str, Any]] = []  # what happened, by lab.trial.events
        self.paused: dict[str, int] = {}  # process by pod
        self.api = cluster.api()
        single = ["RECEIPTS_TOPIC", "REPORTS_TOPIC", *(["DLQ_TOPIC"] if inputs.workload.dead_letters else [])]
        made = {self.names[key]: 1 for key in single}
        if lead is None:
            self._grown = threading.Lock()
            self.partitions = inputs.partitions
            self.traffic_reports = f"traffic-{run}" if inputs.side else self.names["REPORTS_TOPIC"]
            made |= {self.traffic_reports: 1, self.names["TOPIC"]: inputs.partitions}
        else:
            self.names["TOPIC"], self.traffic_reports = lead.names["TOPIC"], lead.traffic_reports
        self._topics = list(made)
        topics.create(cluster.bootstrap, made, cluster.kafka_settings)
        self.topic_ids = [self._topic_id()]
        self.lag = LagReader(cluster.bootstrap, self.names["GROUP"], self.names["TOPIC"], settings=cluster.kafka_settings)
        apply.objects(
            self.api,
            [
                {
                    "apiVersion": "v1",
                    "kind": "Namespace",
                    "metadata": {"name": self.namespace, "labels": {"created-by": "elastic-lab"}},
                }
            ],
        )
        self._login = login.objects(cluster.kafka_settings, cluster.pod_bootstrap)
        apply.objects(self.api, self._login, self.namespace)  # no inputs: no record may keep them
        self.transitions = Transitions(self.api, self.namespace, folder / "transitions.jsonl")
        self.reports = Listener(
            cluster.bootstrap,
            dict.fromkeys((self.names["REPORTS_TOPIC"], self.traffic_reports)),
            folder / "group_events.jsonl",
            self.transitions.notify,
            cluster.kafka_settings,
        )
        self.load = Sampler(own=inputs.runtime == "binary")  # processes in containers are no children of this one

    def mark(self, phase: str) -> None:
        """Enter ``phase``: shown in the live line, and its time is kept."""
        self.phase = phase
        self.times[phase] = clock.now()
        log.info("%s: %s", self.inputs.id, phase)

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The decreed steps among the events, as trial.json has had them since before there was a list of events."""
        rows = [row for row in self.events if row["event"] == Decree.name]
        return [
            {"t": row["t"], "kind": row["result"]["kind"], "before": row["before"], "after": row["after"]}
            | {"settled": row["result"]["settled"], "until": row["result"]["observed"]}
            for row in rows
        ]

    @property
    def faults(self) -> list[dict[str, Any]]:
        """The kills among the events, as trial.json has had them since before there was a list of events."""
        return [{"t": row["t"], "fault": SIGKILL} | row["result"] for row in self.events if row["event"] == Kill.name]

    def lags(self) -> dict[int, PartitionLag] | None:
        """The group's lag by partition; None when Kafka does not answer, which is counted: it may the next time."""
        try:
            return self.lag.read()
        except KafkaException as error:
            self.lag_unanswered += 1
            log.debug("%s: no lag: %s", self.inputs.id, error)
            return None

    def read_offsets(self) -> None:
        """Keep log end and committed offset of each partition, and the topic's id.

        Raises :class:`LabFault` after OFFSETS_S without an answer.
        """
        found: list[dict[int, PartitionLag]] = []

        def answered() -> bool:
            found.extend(filter(None, [self.lags()]))
            return bool(found)

        until(answered, OFFSETS_S, "the group's offsets", every_s=0.5)
        self.offsets = {number: Offsets(part.end, part.committed) for number, part in found[0].items()}
        self.topic_ids.append(self._topic_id())

    def _topic_id(self) -> str:
        return topics.identity(self.cluster.bootstrap, self.names["TOPIC"], self.cluster.kafka_settings)

    def line(self) -> str:
        """The live line: phase, lag with its rates, replicas, and when the lag will be gone at this pace."""
        field = self.transitions.field
        try:
            lag = str(self._pace.read(time.monotonic(), self.lag.read().values()))
        except KafkaException:
            lag = "lag unknown"
        wanted = field("Deployment", CONSUMER, "spec", "replicas")
        ready = field("Deployment", CONSUMER, "status", "readyReplicas")
        return f"{self.phase} {self.reports.phase}: {lag}, replicas {wanted} ({ready or 0} ready)"

    def apply(self, wanted: list[dict[str, Any]]) -> None:
        """Apply objects in the trial's namespace and keep them as inputs of the record."""
        scaler = next((pod["status"].get("podIP", "") for pod in self.transitions.pods("lag-scaler")), "")
        prometheus, reference = self.cluster.pod_prometheus_url, login.NAME if self._login else None
        placed = (located(item, self.namespace, prometheus, scaler, reference) for item in wanted)
        fitted = [self.cluster.fit(item) for item in placed]
        for item in fitted:
            file = self.folder / "inputs" / f"{item['kind'].lower()}-{item['metadata']['name']}.yaml"
            file.write_text(yaml.safe_dump(item, sort_keys=False))
        apply.objects(self.api, fitted, self.namespace)

    def produce(self) -> None:
        """Start the producer, whose reports go where each side hears them."""
        job = self.inputs.producer()
        if self.inputs.side:
            container = job["spec"]["template"]["spec"]["containers"][0]
            container["env"].append({"name": "REPORTS_TOPIC", "value": self.traffic_reports})
        self.apply([job])

    def grow(self, partitions: int) -> None:
        """Give the topic ``partitions`` partitions in all, once. Raises :class:`LabFault` when Kafka refuses."""
        lead = self.lead
        with lead._grown:
            if partitions > lead.partitions:
                topics.grow(self.cluster.bootstrap, self.names["TOPIC"], partitions, self.cluster.kafka_settings)
                lead.partitions = partitions

    def ready(self, deployment: str, replicas: int | None = None) -> bool:
        """Whether ``deployment`` has as many ready pods as it asks for, and asks for ``replicas``."""
        field = self.transitions.field
        asked = field("Deployment", deployment, "spec", "replicas")
        return asked == (field("Deployment", deployment, "status", "readyReplicas") or 0) and replicas in (None, asked)

    def check(self) -> None:
        """Raise :class:`LabFault` when the trial can't go on: a component died, the producer did without a word, or the other
        side of a duet can't.
        """
        if self.stop.is_set():
            raise LabFault("the other side of the duet could not go on")
        self.cluster.check()
        if self.lead.transitions.field("Job", "producer", "status", "failed") and self.reports.last("produced") is None:
            raise LabFault("the producer ended without its tally")

    def halt(self) -> None:
        """Stop watching, then everything that runs in the namespace; returns when no pod of it is left.

        So the ledger sees a store that no one writes to any more, and has the cores to itself. A component that died does not
        end the wait: the others may still take the pods down. Raises :class:`LabFault` when they are not gone in time.
        """
        if self._halted:
            return
        self._halted = True
        self.load.stop()
        self.transitions.close()
        self.reports.close()
        applied = [*self.inputs.manifests(self.names), *([self.inputs.producer()] if self.lead is self else [])]
        apply.delete(self.api, applied, self.namespace)
        core = client.CoreV1Api(self.api)
        until(
            lambda: not core.list_namespaced_pod(self.namespace, _request_timeout=10).items,
            GONE_S + self.inputs.workload.grace_s,
            f"pods of {self.namespace} gone",
        )

    def close(self) -> None:
        """Take down what the trial put up. The empty namespace goes by itself."""
        self.halt()
        client.CoreV1Api(self.api).delete_namespace(self.namespace)
        topics.delete(self.cluster.bootstrap, self._topics, self.cluster.kafka_settings)
        self.api.close()
