"""Groups of the consumer's programs on a real broker, one process a pod, and what they leave."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Mapping
from typing import Any

from lab.components import clients
from lab.inputs.clients import PYTHON, program
from lab.kafka import topics
from lab.kafka.lag import LagReader
from lab.wait import until

from .messages import read_all

HANG_S = 120  # for what takes some seconds on a quiet machine: it only ends a test that hangs


def command(client: str) -> list[str]:
    """The command of the program of ``client``, which is built first."""
    clients.ensure(client)
    return [sys.executable, "-m", "lab.programs.consumer"] if client == PYTHON else [str(clients.folder() / program(client))]


class Group:
    """A group of its own on ``topic``, with topics for its receipts and reports."""

    def __init__(self, bootstrap: str, topic: str, login: Mapping[str, str] | None = None) -> None:
        name = uuid.uuid4().hex[:8]
        self.bootstrap, self.topic, self.name, self.login = bootstrap, topic, name, dict(login or {})
        self.receipts_topic, self.reports_topic = f"receipts-{name}", f"reports-{name}"
        topics.create(bootstrap, {self.receipts_topic: 1, self.reports_topic: 1}, self.login)
        self._lag = LagReader(bootstrap, name, topic, settings=self.login)
        self._started: list[subprocess.Popen[bytes]] = []

    def start(self, client: str, pod: str, *flags: str) -> subprocess.Popen[bytes]:
        """Start a consumer called ``pod``."""
        given = {"bootstrap-servers": self.bootstrap, "group": self.name, "topic": self.topic, "metrics-port": 0}
        given |= {"receipts-topic": self.receipts_topic, "reports-topic": self.reports_topic, "commit-interval-ms": 250}
        environment = {**os.environ, "HOSTNAME": pod, **({"KAFKA_SETTINGS": json.dumps(self.login)} if self.login else {})}
        words = [*command(client), *(f"--{name}={value}" for name, value in given.items()), *flags]
        self._started.append(subprocess.Popen(words, env=environment))
        return self._started[-1]

    def end(self) -> None:
        """Kill what still runs."""
        for process in self._started:
            process.kill()
            process.wait()

    def committed(self) -> dict[int, int]:
        """Committed offsets by partition."""
        return {number: part.committed or 0 for number, part in self._lag.read().items()}

    def receipts(self) -> list[dict[str, Any]]:
        """The receipts in the order in which they were written."""
        return [json.loads(one.value() or b"") for one in read_all(self.bootstrap, self.receipts_topic, **self.login)]

    def said(self, pod: str, *events: str) -> list[dict[str, Any]]:
        """What ``pod`` reported, in order: all, or these ``events``."""
        rows = [json.loads(one.value() or b"") for one in read_all(self.bootstrap, self.reports_topic, **self.login)]
        return [row for row in rows if row["pod"] == pod and (not events or row["event"] in events)]

    def owned(self, pod: str) -> int:
        """How many partitions ``pod`` said last that it owns."""
        return next((row["owned"] for row in reversed(self.said(pod)) if "owned" in row), 0)

    def wait_owned(self, **pods: int) -> None:
        """Until each of ``pods`` owns so many partitions."""
        until(lambda: all(self.owned(pod) == count for pod, count in pods.items()), HANG_S, f"partitions owned: {pods}")


def terminated(process: subprocess.Popen[bytes]) -> int:
    """The exit code of ``process``, which is sent SIGTERM."""
    process.send_signal(signal.SIGTERM)
    return process.wait(HANG_S)
