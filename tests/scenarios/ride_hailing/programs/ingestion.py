"""``python -m tests.scenarios.ride_hailing.programs.ingestion``: takes the city's events over HTTP and puts them on the topic.

POST /api/events/{driver-location|trip-complete|surge-update}    202 once the broker has it, acks=all
                                                                 401 without the trial's token, which is not counted
                                                                 422 and one line for a field that can't be used, 413 for
                                                                 a body of more than 4,096 bytes
                                                                 503 it is certainly not on the topic
                                                                 504 nobody knows: to be counted apart, not sent again
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from aiohttp import web
from prometheus_client import Counter

from lab.errors import InputError
from tests.scenarios.ride_hailing.programs import service
from tests.scenarios.ride_hailing.programs.city import WEIGHTS
from tests.scenarios.ride_hailing.programs.message import SEQ, read
from tests.scenarios.ride_hailing.programs.publish import ACKED, FAILED, UNKNOWN, Publisher

SERVICE = "ingestion"
MOST_BYTES = 4096  # of a body
_STATUS = {ACKED: 202, FAILED: 503, UNKNOWN: 504}
REFUSED = "refused"
EVENTS = Counter("ingestion_events", "Events by kind and what became of them", ["kind", "outcome"])


def application(publisher: Publisher) -> web.Application:
    """The service's routes."""

    async def take(request: web.Request) -> web.Response:
        kind = request.match_info["kind"]
        try:
            if kind not in WEIGHTS:
                raise InputError("/api/events", "kind", kind, f"one of {', '.join(WEIGHTS)}")
            message = read(kind, await body(request), request.headers.get(SEQ))
        except InputError as error:
            EVENTS.labels(kind if kind in WEIGHTS else "other", REFUSED).inc()
            return web.json_response({"error": str(error)}, status=404 if kind not in WEIGHTS else 422)
        except web.HTTPRequestEntityTooLarge:
            EVENTS.labels(kind, REFUSED).inc()
            raise
        became = await publisher.publish(message)
        EVENTS.labels(kind, became).inc()
        return web.json_response({"event": became}, status=_STATUS[became])

    app = web.Application(client_max_size=MOST_BYTES)
    app.router.add_post("/api/events/{kind}", take)
    return app


async def body(request: web.Request) -> Any:
    """The JSON of a request. Raises :class:`InputError` for what is none: no text, no JSON, or nested too deep."""
    try:
        return json.loads(await request.text())
    except (ValueError, LookupError, RecursionError) as error:
        raise InputError(request.path, "(body)", str(error), "a JSON object") from None


def main() -> int:
    """Serve until SIGTERM; exit 2 on bad input."""
    parser = service.flags("python -m tests.scenarios.ride_hailing.programs.ingestion", __doc__)

    def make(options: Any) -> tuple[web.Application, Callable[[], int]]:
        publisher = Publisher(options.bootstrap_servers, options.topic, service.who(), options.kafka_settings)
        return application(publisher), publisher.close

    return service.run(parser, SERVICE, make)


if __name__ == "__main__":
    sys.exit(main())
