"""The metric source: hands each walk its values in order, one a request, and notes what it handed out when."""

import contextlib
import json
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BESIDES = 2  # requests: one that KEDA makes at first, and one that shows that the sync before it is over


@dataclass
class Handed:
    """The values of one walk, over and over while others are still at theirs; (epoch s, value) of every answer so far."""

    values: list[int | None]
    answers: list[tuple[float, int | None]] = field(default_factory=list)

    def next(self):
        """The value of this request; the time is that before the answer leaves."""
        value = self.values[len(self.answers) % len(self.values)]
        self.answers.append((time.time(), value))
        return value


class Source:
    """Serves ``walks`` by name on loopback from a daemon thread; ``notify`` is called after every answer."""

    def __init__(self, walks, notify):
        self.handed = {name: Handed(walk.values) for name, walk in walks.items()}
        self._lock = threading.Lock()
        source = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle(self):
                with contextlib.suppress(ConnectionError):  # KEDA drops those it keeps
                    super().handle()

            def do_GET(self):
                value = source._next(self.path.removeprefix("/"))
                content = json.dumps({"value": None if value is None else value / 1000}).encode()
                self.send_response(503 if value is None else 200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)
                notify()

            def log_message(self, *args):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, name="metric-source", daemon=True).start()

    def url(self, name):
        """Where KEDA asks for the walk ``name``."""
        return f"http://127.0.0.1:{self._server.server_port}/{name}"

    def used_up(self):
        """Whether every walk has been handed all its values, and a sync has decided on the last."""
        return all(len(one.answers) >= len(one.values) + BESIDES for one in self.handed.values())

    def close(self):
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()

    def _next(self, name):
        with self._lock:
            return self.handed[name].next()
