"""What every program in a pod tells: /metrics, /healthz and /readyz by HTTP, and reports in JSON to the recorder's topic."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from lab import clock


def serve(address: str, port: int, ready: Callable[[], bool], healthy: Callable[[], bool]) -> None:
    """Serve /metrics, /healthz and /readyz from a daemon thread."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answers = {"/healthz": healthy, "/readyz": ready}
            if self.path == "/metrics":
                self._answer(200, generate_latest(), CONTENT_TYPE_LATEST)
            elif self.path in answers:
                good = answers[self.path]()
                self._answer(200 if good else 503, b"ok\n" if good else b"no\n", "text/plain")
            else:
                self._answer(404, b"not found\n", "text/plain")

        def _answer(self, code: int, body: bytes, kind: str) -> None:
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Probes and scrapes are not worth a line each."""

    server = ThreadingHTTPServer((address, port), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="http", daemon=True).start()


def process_started() -> float:
    """When this process began, epoch seconds with the kernel's 10 ms resolution (proc(5), field ``starttime``)."""
    ticks = int(Path("/proc/self/stat").read_text().rsplit(") ", 1)[1].split()[19])
    since_boot = ticks / os.sysconf("SC_CLK_TCK")
    return clock.now() - (time.clock_gettime(time.CLOCK_BOOTTIME) - since_boot)


def reporter(bootstrap: str, who: str, settings: Mapping[str, str]) -> Producer:
    """A producer for the reports of the program ``who``; ``settings`` are those with which it logs in, if it has to."""
    return Producer({"bootstrap.servers": bootstrap, "client.id": who, "acks": "all", **settings})


class Reports:
    """Sends events of one program (named by ``who``, its pod) to the trial's reports topic, in order; none where that is ""."""

    def __init__(self, producer: Producer, topic: str, who: str) -> None:
        self._producer, self._topic, self._who = producer, topic, who

    def say(self, event: str, **fields: Any) -> None:
        """Queue one event with its wall time (s) and monotonic time (s)."""
        if self._topic:
            row = {"pod": self._who, "event": event, "t": clock.now(), "mono": time.monotonic(), **fields}
            self._producer.produce(self._topic, key=self._who, value=json.dumps(row))
            self._producer.poll(0)
