"""What the scenario's HTTP services share: flags, metrics and probes, saying where they listen, and an orderly end."""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from lab.flags import Flags, whole
from lab.kafka.login import kafka_flags
from lab.programs.telemetry import Reports, is_local, process_started, reporter, serve
from tests.scenarios.ride_hailing.programs.addresses import LEAVING, LISTENING, LOOK_S, bearer, token_flag

log = logging.getLogger("ride_hailing")
LINGER_S = 2 * LOOK_S  # after LEAVING, until every client has read it: a closed port would refuse those who have not
SHUTDOWN_S = 12.0  # for requests under way; aiohttp waits so long twice, and the pod's grace of 30 s must not end before


def flags(prog: str, description: str | None) -> Flags:
    """The flags every service takes; each may come from the environment."""
    parser = Flags(prog=prog, description=description)
    kafka_flags(parser)
    parser.serving(metrics_port=9090)
    parser.flag("http-port", whole(0, 65_535), 8080, "port of --pod-ip to serve on; 0 picks one", "0 to 65,535")
    parser.flag("topic", str, "events", "topic to produce to")
    parser.flag("reports-topic", str, "", "topic on which to say where it listens; empty for none")
    token_flag(parser)
    return parser


def who() -> str:
    """This pod's name."""
    return os.environ.get("HOSTNAME", f"service-{os.getpid()}")


def _guard(token: str) -> Any:
    """Answers no page of a browser, which says where it is from, or its name for the address; and no one without ``token``."""
    ((name, wanted),) = bearer(token).items()

    @web.middleware
    async def guard(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        if "Origin" in request.headers or not is_local(request.host):
            raise web.HTTPForbidden(text="another host")
        given = request.headers.get(name, "").encode(errors="surrogateescape")
        if not hmac.compare_digest(given, wanted.encode()):
            raise web.HTTPUnauthorized(text="not the token of the trial", headers={"WWW-Authenticate": "Bearer"})
        return await handler(request)

    return guard


@asynccontextmanager
async def listening(options: Any, service: str, app: web.Application) -> AsyncIterator[str]:
    """Serve ``app`` within the block; yields its URL. Others are told of it, and told when it goes."""
    app.middlewares.append(_guard(options.service_token))
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN_S)
    await runner.setup()
    site = web.TCPSite(runner, options.pod_ip, options.http_port)
    await site.start()
    server = site._server
    assert isinstance(server, asyncio.Server)
    url = f"http://{options.pod_ip}:{server.sockets[0].getsockname()[1]}"
    producer = reporter(options.bootstrap_servers, who(), options.kafka_settings)
    reports = Reports(producer, options.reports_topic, who())

    def say(event: str, **fields: object) -> None:
        if options.reports_topic:
            reports.say(event, **fields)
            producer.flush(10)

    try:
        say("started", created=process_started())
        say(LISTENING, service=service, url=url)
        log.info("%s listens on %s", service, url)
        yield url
    finally:
        say(LEAVING, service=service)
        await asyncio.sleep(LINGER_S)
        await runner.cleanup()


def run(parser: Flags, service: str, make: Callable[[Any], tuple[web.Application, Callable[[], int]]]) -> int:
    """Serve ``service`` until SIGTERM, with /metrics and probes beside it; returns the exit code, 2 on bad input.

    ``make`` is called in the event loop with the options; it returns the application, and what ends it: a function that
    returns how many events are left without an answer.
    """
    options, ready = parser.parse_args(), threading.Event()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    with parser.listening(options.metrics_port):
        serve(options.pod_ip, options.metrics_port, ready.is_set, lambda: True)

    async def serving() -> int:
        app, end = make(options)
        async with listening(options, service, app):
            stop = asyncio.Event()
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, stop.set)
            ready.set()
            await stop.wait()
            ready.clear()
        return 1 if end() else 0

    return asyncio.run(serving())
