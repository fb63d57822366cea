"""``python -m lab.programs.store``: the downstream store that all consumers of a trial share.

A pod sends the token of the trial and the seconds that a write takes by itself, in one line. It gets an empty line when the
write is done. The store works on ``store_slots`` writes at a time, and the others wait in the order in which they came. A write
begins the slower the more wait.
"""

from __future__ import annotations

import asyncio
import heapq
import hmac
import logging
import signal
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from prometheus_client import Counter, Gauge

from lab.inputs.consumer import SLACK_S
from lab.inputs.store import PORT, Settings, flags
from lab.programs.telemetry import serve

log = logging.getLogger("lab.programs.store")

LONGEST = 96  # bytes of a line
MOST_S = 86_400.0  # of a write by itself
MOST_PODS = 1_000  # connections at a time
SILENT_S = 10.0  # until a connection has asked for its first write


@dataclass(eq=False)
class Write:
    """A write that takes ``seconds`` by itself, counts from ``since`` (monotonic s), and is over at ``end``: then ``done``."""

    seconds: float
    since: float
    done: Callable[[Write], None]
    end: float = 0.0


class Schedule:
    """Which writes the slots work on, and until when; pure, in monotonic s. A full store keeps its whole capacity."""

    def __init__(self, slots: int, contention: float) -> None:
        self.slots, self._contention = slots, contention
        self.busy = 0  # writes in work
        self._free = [0.0] * slots  # since when each free slot is free: a heap
        self._waiting: deque[Write] = deque()

    @property
    def open(self) -> int:
        """Writes in work and waiting."""
        return self.busy + len(self._waiting)

    def add(self, write: Write) -> None:
        """Let ``write`` wait for its turn."""
        self._waiting.append(write)

    def begin(self, now: float) -> list[Write]:
        """Begin as many waiting writes as there are free slots; each of them has its end now."""
        begun = []
        while self._free and self._waiting:
            stretch = 1 + self._contention * max(0, self.open - self.slots) / self.slots
            write = self._waiting.popleft()
            begin = min(now, max(heapq.heappop(self._free), write.since))
            write.end = begin + write.seconds * stretch
            self.busy += 1
            begun.append(write)
        return begun

    def finish(self, write: Write) -> None:
        """Free the slot of ``write`` at its end."""
        self.busy -= 1
        heapq.heappush(self._free, write.end)

    def withdraw(self, write: Write) -> None:
        """Forget ``write``, whose pod has gone while it waited. One that is in work stays so: a store does not know."""
        if write in self._waiting:
            self._waiting.remove(write)


class Connection(asyncio.Protocol):
    """One pod, which has one write at a time."""

    def __init__(self, schedule: Schedule, start: Callable[[], None], pods: set[Connection], token: str) -> None:
        self._schedule, self._start, self._pods, self._token = schedule, start, pods, token
        self._silent: asyncio.TimerHandle | None = None  # until its first write
        self._line = b""
        self._write: Write | None = None
        self._last_end = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the way back to the pod, unless there are too many."""
        assert isinstance(transport, asyncio.Transport), "a TCP server's"
        self._transport = transport
        if len(self._pods) < MOST_PODS:
            self._pods.add(self)
            self._silent = asyncio.get_running_loop().call_later(SILENT_S, transport.abort)
        else:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        """Add the write that the pod asks for; what is none closes its connection."""
        self._line += data
        if not self._line.endswith(b"\n") and len(self._line) <= LONGEST:
            return
        if self._write is not None or (seconds := requested_seconds(self._line, self._token)) is None:
            log.warning("a line that asks for no write, or has not the token")
            self._transport.abort()
            return
        self._known()
        now = time.monotonic()
        # A pod with work to do is back at once: the way there and back is not the store's time.
        since = self._last_end if now - self._last_end <= SLACK_S else now
        self._write = Write(seconds, since, self._written)
        self._line = b""
        self._schedule.add(self._write)
        self._start()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the write of a pod that went away."""
        self._known()
        self._pods.discard(self)
        if self._write is not None:
            self._schedule.withdraw(self._write)
            self._start()

    def _known(self) -> None:
        if self._silent is not None:
            self._silent.cancel()

    def _written(self, write: Write) -> None:
        self._last_end, self._write = write.end, None
        self._transport.write(b"\n")


def requested_seconds(line: bytes, token: str) -> float | None:
    """The seconds that ``line`` asks for; None where it is no line of a pod's that has the ``token``."""
    given, _, rest = line.rpartition(b" ")
    try:
        seconds = float(rest)
    except ValueError:
        return None
    own = hmac.compare_digest(given, token.encode())
    return seconds if own and len(line) <= LONGEST and 0 <= seconds <= MOST_S else None


class Store:
    """The server."""

    def __init__(self, chosen: Settings) -> None:
        self._schedule = Schedule(chosen.store_slots, chosen.store_contention / 100)
        self._pods: set[Connection] = set()
        self._token = chosen.store_token
        Gauge("store_open_writes", "Writes in work and waiting").set_function(lambda: self._schedule.open)
        Gauge("store_busy_slots", "Writes in work").set_function(lambda: self._schedule.busy)
        Gauge("store_slots", "Writes that are worked on at a time").set(chosen.store_slots)
        self._writes = Counter("store_writes", "Writes that are done")

    def connection(self) -> Connection:
        """A pod's new connection."""
        return Connection(self._schedule, self._begin, self._pods, self._token)

    async def serve(self, address: str) -> None:
        """Serve until SIGTERM."""
        stopped, loop = asyncio.Event(), asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, stopped.set)
        server = await loop.create_server(self.connection, address, PORT)
        async with server:
            log.info("store of %d slots at %s:%d", self._schedule.slots, address, PORT)
            await stopped.wait()

    def _begin(self) -> None:
        loop = asyncio.get_running_loop()
        for write in self._schedule.begin(time.monotonic()):
            loop.call_at(write.end, self._finish, write)  # the loop's clock is the monotonic one

    def _finish(self, write: Write) -> None:
        self._schedule.finish(write)
        self._writes.inc()
        write.done(write)
        self._begin()


def main() -> int:
    """Serve until SIGTERM."""
    parser = flags()
    chosen = Settings(**vars(parser.parse_args()))
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    if not chosen.store_slots:
        parser.error("argument --store-slots: 0 is not allowed; allowed: 1 to 1,000")
    if not chosen.store_token:
        parser.error("argument --store-token: '' is not allowed; allowed: any text")
    with parser.listening(chosen.metrics_port):
        serve(chosen.pod_ip, chosen.metrics_port, lambda: True, lambda: True)
    asyncio.run(Store(chosen).serve(chosen.pod_ip))
    return 0


if __name__ == "__main__":
    sys.exit(main())
