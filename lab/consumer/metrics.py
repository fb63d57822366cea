"""The consumer's /metrics, /healthz and /readyz."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import CONTENT_TYPE_LATEST, Counter, Gauge, Histogram, generate_latest

RATE_WINDOW_S = 1.0


class Metrics:
    """The metrics of one consumer; names are those of the interface contract, with Prometheus's own beside them."""

    def __init__(self) -> None:
        self._recent: deque[tuple[float, int]] = deque()
        self._lock = threading.Lock()
        self.processed = Counter("messages_processed", "Messages whose receipt is durable")
        self.inflight = Gauge("inflight", "Messages taken and not yet processed")
        self.assigned = Gauge("assigned_partitions", "Partitions this member owns")
        self.rebalances = Counter("rebalances", "Rebalances this member took part in")
        self.rebalance_duration = Histogram(
            "rebalance_duration_seconds",
            "From a rebalance's first callback to its assignment",
            buckets=(0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 10, 30),
        )
        self.failed = Counter("messages_failed", "Attempts at a message that failed")
        self.recovered = Counter("messages_recovered", "Messages that failed and succeeded in a retry")
        self.dead_lettered = Counter("messages_dead_lettered", "Messages given up, durable in the dead-letter topic")
        self.retrying = Gauge("retrying_partitions", "Partitions that stand still while their head is retried")
        self.commits = Counter("commits", "Offset commits", ["outcome"])
        self.batch_duration = Histogram("batch_duration_seconds", "From fetch to durable receipt")
        Gauge("consume_rate", "Messages/s processed over the last second").set_function(self.rate)

    def done(self, count: int, seconds: float) -> None:
        """Count a processed batch."""
        self.processed.inc(count)
        self.batch_duration.observe(seconds)
        with self._lock:
            self._recent.append((time.monotonic(), count))
            self._forget()

    def rate(self) -> float:
        """Messages/s over the last second."""
        with self._lock:
            self._forget()
            return sum(count for _, count in self._recent) / RATE_WINDOW_S

    def _forget(self) -> None:
        horizon = time.monotonic() - RATE_WINDOW_S
        while self._recent and self._recent[0][0] < horizon:
            self._recent.popleft()


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
