"""``python -m tests.scenarios.ride_hailing.programs.riders``: the riders' API: synchronous, and what it costs is CPU.

GET /api/quote?ride=N    200 with a price that takes ``--quote-ms`` of CPU to find

``rider_api_requests_total`` counts the requests: what the text scales this service on.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable
from typing import Any

from aiohttp import web
from prometheus_client import Counter

from lab.flags import number
from tests.scenarios.ride_hailing.programs import service

SERVICE = "rider-api"
REQUESTS = Counter("rider_api_requests_total", "Requests for a quote")


def application(quote_s: float) -> web.Application:
    """The service's route; a quote takes ``quote_s`` seconds of CPU."""

    async def quote(request: web.Request) -> web.Response:
        REQUESTS.inc()
        ride = request.query.get("ride", "")
        if not ride.isdecimal():
            return web.json_response({"error": f"ride: {ride!r} is not allowed; allowed: a whole number"}, status=422)
        digest, end = ride.encode(), time.thread_time() + quote_s
        while time.thread_time() < end:
            digest = hashlib.sha256(digest).digest()
        return web.json_response({"ride": int(ride), "price": 5 + digest[0] / 10})

    app = web.Application()
    app.router.add_get("/api/quote", quote)
    return app


def main() -> int:
    """Serve until SIGTERM; exit 2 on bad input."""
    parser = service.flags("python -m tests.scenarios.ride_hailing.programs.riders", __doc__)
    parser.flag("quote-ms", number(0, 1000), 2.0, "CPU a quote takes, ms", "0 to 1000")

    def make(options: Any) -> tuple[web.Application, Callable[[], int]]:
        return application(options.quote_ms / 1000), lambda: 0

    return service.run(parser, SERVICE, make)


if __name__ == "__main__":
    sys.exit(main())
