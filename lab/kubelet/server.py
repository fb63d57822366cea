"""The node's HTTPS server, for the API server and metrics-server: logs, usage, health. A client certificate is needed."""

from __future__ import annotations

import asyncio
import contextlib
import mmap
import ssl
from collections.abc import Callable, Iterable
from pathlib import Path

from aiohttp import web

from lab.kubelet import usage
from lab.kubelet.container import Container
from lab.kubelet.pod import Pod
from lab.kubelet.podspec import HOST_IP
from lab.kubelet.status import Running

BLOCK = 64 * 1024
FOLLOW_S = 0.2
_LOG_OPTIONS = {"container", "follow", "limitBytes", "previous", "tailLines"}


def tls(certificate: Path, key: Path, client_ca: Path) -> ssl.SSLContext:
    """A server context that admits only clients whose certificate ``client_ca`` has signed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.load_verify_locations(client_ca)
    context.verify_mode = ssl.CERT_REQUIRED
    return context


class Server:
    """Serves what ``pods`` returns at the time of a request."""

    def __init__(self, pods: Callable[[], Iterable[Pod]], context: ssl.SSLContext, port: int) -> None:
        self._pods = pods
        self._context = context
        self._port = port
        app = web.Application()
        app.router.add_get("/healthz", _healthz)
        app.router.add_get("/metrics/resource", self._metrics)
        app.router.add_get("/containerLogs/{namespace}/{pod}/{container}", self._logs)
        app.router.add_route("*", "/{what:(exec|attach|run|portForward)}/{rest:.*}", _unsupported)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)

    async def start(self) -> None:
        """Listen on the loopback address."""
        await self._runner.setup()
        await web.TCPSite(self._runner, HOST_IP, self._port, ssl_context=self._context).start()

    async def stop(self) -> None:
        """Close every connection."""
        await self._runner.cleanup()

    async def _metrics(self, _: web.Request) -> web.Response:
        running = [
            (pod.namespace, pod.name, container.spec.name, container.state.started_at.timestamp(), container.state.pid)
            for pod in self._pods()
            for container in pod.containers
            if isinstance(container.state, Running)
        ]
        return web.Response(text=usage.exposition(*usage.node(), usage.measured(running)))

    def _container(self, request: web.Request) -> Container:
        wanted = request.match_info
        for pod in self._pods():
            for container in pod.containers:
                if (pod.namespace, pod.name, container.spec.name) == tuple(wanted.values()):
                    return container
        raise web.HTTPNotFound(text=f"no container {wanted['container']} of {wanted['namespace']}/{wanted['pod']} on this node")

    async def _logs(self, request: web.Request) -> web.StreamResponse:
        container, query = self._container(request), request.query
        unknown = sorted(set(query) - _LOG_OPTIONS)
        if unknown:
            raise web.HTTPBadRequest(text=f"{', '.join(unknown)}: not supported on the process node, whose logs carry no times")
        try:
            tail = int(query["tailLines"]) if "tailLines" in query else None
            limit = int(query["limitBytes"]) if "limitBytes" in query else None
        except ValueError as error:
            raise web.HTTPBadRequest(text=f"tailLines, limitBytes: {error}") from error
        previous = query.get("previous") == "true"
        file = container.previous_log if previous else container.log
        if not file.exists():
            raise web.HTTPNotFound(text=f"no {'earlier ' if previous else ''}log of container {container.spec.name}")
        response = web.StreamResponse(headers={"Content-Type": "text/plain; charset=utf-8"})
        await response.prepare(request)
        with file.open("rb") as log:
            log.seek(0 if tail is None else tail_offset(file, tail))
            while block := log.read(BLOCK if limit is None else min(BLOCK, limit)):
                limit = None if limit is None else limit - len(block)
                await response.write(block)
            ended = previous or query.get("follow") != "true"
            while not ended:
                # Files have no event that asyncio could wait for: this poll lasts only while a client follows the log.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(FOLLOW_S):
                        await container.ended.wait()
                    ended = True
                if block := log.read():
                    await response.write(block)
        await response.write_eof()
        return response


async def _healthz(_: web.Request) -> web.Response:
    return web.Response(text="ok")


async def _unsupported(request: web.Request) -> web.Response:
    return web.Response(status=501, text=f"{request.match_info['what']} is not supported on the process node; use kubectl logs")


def tail_offset(file: Path, lines: int) -> int:
    """The offset at which the last ``lines`` lines of a file begin. Only the pages that hold them are read."""
    size = file.stat().st_size
    if lines <= 0 or size == 0:  # an empty file can't be mapped
        return size
    with file.open("rb") as log, mmap.mmap(log.fileno(), size, access=mmap.ACCESS_READ) as content:
        at = size - 1  # before it is the newline of the line before the last
        for _ in range(lines):
            at = content.rfind(b"\n", 0, at)
            if at < 0:
                break
        return at + 1
