"""What every program in a pod tells: /metrics, /healthz and /readyz by HTTP, and reports in JSON to the recorder's topic."""

from __future__ import annotations

import ipaddress
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from confluent_kafka import Producer
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest

from lab import clock

MOST_REQUESTS = 64  # at a time; a probe and a scrape are two
SILENT_S = 10.0  # until a client has said what it wants


def serve(
    address: str,
    port: int,
    ready: Callable[[], bool],
    healthy: Callable[[], bool],
    registry: CollectorRegistry = REGISTRY,
) -> int:
    """Serve /metrics, /healthz and /readyz from a daemon thread; returns the port."""

    class Handler(BaseHTTPRequestHandler):
        timeout = SILENT_S

        def do_GET(self) -> None:
            answers = {"/healthz": healthy, "/readyz": ready}
            if not is_local(self.headers.get("Host", "")):
                self._answer(403, b"another host\n", "text/plain")
            elif self.path == "/metrics":
                self._metrics()
            elif self.path in answers:
                good = answers[self.path]()
                self._answer(200 if good else 503, b"ok\n" if good else b"no\n", "text/plain")
            else:
                self._answer(404, b"not found\n", "text/plain")

        def _metrics(self) -> None:
            try:
                body = generate_latest(registry)
            except Exception as error:
                self._answer(500, f"{error}\n".encode(), "text/plain")
            else:
                self._answer(200, body, CONTENT_TYPE_LATEST)

        def _answer(self, code: int, body: bytes, kind: str) -> None:
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Probes and scrapes are not worth a line each."""

    server = _Server((address, port), Handler)
    threading.Thread(target=server.serve_forever, name="http", daemon=True).start()
    return int(server.server_address[1])


class _Server(ThreadingHTTPServer):
    """Closes a connection that is one too many at once."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._free = threading.BoundedSemaphore(MOST_REQUESTS)
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()


def is_local(host: str) -> bool:
    """Whether a request's Host is an address, or a name of this machine or of a cluster. Pure.

    A page in a browser may give its own name this program's address, and read what that answers; its Host is then that name.
    """
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    with suppress(ValueError):
        return bool(ipaddress.ip_address(name))
    return "." not in name or name.endswith((".svc", ".cluster.local"))


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
