"""``python -m tests.scenarios.ride_hailing.programs.matching``: finds drivers for riders, a few at a time; the others wait.

    POST /api/match {"ride_id": "ride-N", "timestamp": ms}    200 with the time waited, when a driver is found

``matching_pending_requests`` counts the requests without an answer: the queue depth of the text, and KEDA's metric. A pod finds
``--slots`` drivers at a time, each in ``--match-ms``; what it found goes on the topic as an event.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from typing import Any

from aiohttp import web
from prometheus_client import Gauge

from lab.errors import InputError
from lab.flags import whole
from tests.scenarios.ride_hailing.programs import service
from tests.scenarios.ride_hailing.programs.city import MATCH
from tests.scenarios.ride_hailing.programs.ingestion import MOST_BYTES, body
from tests.scenarios.ride_hailing.programs.message import SEQ, read
from tests.scenarios.ride_hailing.programs.publish import ACKED, FAILED, UNKNOWN, Publisher

SERVICE = "driver-matching"
_STATUS = {ACKED: 200, FAILED: 503, UNKNOWN: 504}
PENDING = Gauge("matching_pending_requests", "Match requests that have no answer yet")


def application(publisher: Publisher, slots: int, match_s: float) -> web.Application:
    """The service's route; ``slots`` matches at a time, of ``match_s`` seconds each."""
    free = asyncio.Semaphore(slots)

    async def match(request: web.Request) -> web.Response:
        with PENDING.track_inprogress():
            begun = time.monotonic()
            try:
                asked, seq = await body(request), request.headers.get(SEQ)
                read(MATCH, asked | {"waited_ms": 0}, seq)  # nobody waits in order to be refused
            except (InputError, TypeError) as error:
                return web.json_response({"error": str(error)}, status=422)
            async with free:
                await asyncio.sleep(match_s)  # the search itself
            waited = round((time.monotonic() - begun) * 1000)
            became = await publisher.publish(read(MATCH, asked | {"waited_ms": waited}, seq))
        return web.json_response({"event": became, "waited_ms": waited}, status=_STATUS[became])

    app = web.Application(client_max_size=MOST_BYTES)
    app.router.add_post("/api/match", match)
    return app


def main() -> int:
    """Serve until SIGTERM; exit 2 on bad input."""
    parser = service.flags("python -m tests.scenarios.ride_hailing.programs.matching", __doc__)
    parser.flag("slots", whole(1, 10_000), 10, "drivers looked for at a time", "1 to 10,000")
    parser.flag("match-ms", whole(1, 600_000), 500, "time to find one, ms", "1 to 600,000")

    def make(options: Any) -> tuple[web.Application, Callable[[], int]]:
        publisher = Publisher(options.bootstrap_servers, options.topic, service.who(), options.kafka_settings)
        return application(publisher, options.slots, options.match_ms / 1000), publisher.close

    return service.run(parser, SERVICE, make)


if __name__ == "__main__":
    sys.exit(main())
