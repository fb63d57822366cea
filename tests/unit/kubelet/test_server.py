"""The process node's two sides to the network: its HTTPS server, and its client of the API server."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from lab.cluster.certs import Authority
from lab.host.processes import free_ports
from lab.kubelet.api import ApiError, ApiServer, Changed, Deleted, Listed
from lab.kubelet.server import Server, tls

from .harness import DEADLINE_S, Json, Node, node, pod, shell
from .test_lifecycle import SOON_S


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CA with a server's and a client's certificate, and a stranger's of another CA."""
    folder = tmp_path_factory.mktemp("certificates")
    authority = Authority(folder)
    authority.issue("server", "node", hosts=["127.0.0.1"])
    authority.issue("client", "client")
    Authority(folder / "other").issue("stranger", "client")
    return folder


@asynccontextmanager
async def served(n: Node, certificates: Path) -> AsyncIterator[tuple[str, dict[str, ssl.SSLContext]]]:
    """The address of the node's server, and the TLS contexts of three clients."""
    context = tls(certificates / "server.crt", certificates / "server.key", certificates / "ca.crt")
    port = free_ports(1)[0]
    server = Server(n.agent.pods, context, port)
    await server.start()
    clients = {name: ssl.create_default_context(cafile=certificates / "ca.crt") for name in ("client", "stranger", "nobody")}
    for name, held in (("client", certificates), ("stranger", certificates / "other")):
        clients[name].load_cert_chain(held / f"{name}.crt", held / f"{name}.key")
    try:
        yield f"https://127.0.0.1:{port}", clients
    finally:
        await server.stop()


async def get(url: str, context: ssl.SSLContext) -> tuple[int, str]:
    """One GET on a connection of its own."""
    async with aiohttp.ClientSession() as session, session.get(url, ssl=context) as answer:
        return answer.status, await answer.text()


async def test_a_client_without_the_right_certificate_is_turned_away(tmp_path: Path, certificates: Path) -> None:
    """Only a certificate that the client CA has signed gets an answer."""
    async with node(tmp_path) as n, served(n, certificates) as (url, clients):
        assert await get(f"{url}/healthz", clients["client"]) == (200, "ok")
        for name in ("nobody", "stranger"):
            with pytest.raises((aiohttp.ClientError, ssl.SSLError, ConnectionError)):
                await get(f"{url}/healthz", clients[name])


async def test_logs_are_served_whole_by_tail_and_of_the_run_before(tmp_path: Path, certificates: Path) -> None:
    """tailLines, limitBytes and previous do as kubectl asks; an option that can't be honoured and an unknown pod are errors."""
    async with node(tmp_path) as n, served(n, certificates) as (url, clients):
        flag = tmp_path / "flag"
        script = f"[ -e {flag} ] || {{ touch {flag}; echo first; exit 1; }}; echo one; echo two; echo three; sleep 60"
        made = n.apply(pod(shell(script)))
        await n.said(made, "three")
        logs = f"{url}/containerLogs/ns/pod/main"
        client = clients["client"]
        assert await get(logs, client) == (200, "one\ntwo\nthree\n")
        assert await get(f"{logs}?tailLines=2", client) == (200, "two\nthree\n")
        assert await get(f"{logs}?limitBytes=5", client) == (200, "one\nt")
        assert await get(f"{logs}?previous=true", client) == (200, "first\n")
        assert (await get(f"{logs}?sinceSeconds=5", client))[0] == 400
        assert (await get(f"{logs}?tailLines=x", client))[0] == 400
        assert (await get(f"{url}/containerLogs/ns/other/main", client))[0] == 404
        assert (await get(f"{url}/exec/ns/pod/main", client))[0] == 501


async def test_a_followed_log_ends_with_its_container(tmp_path: Path, certificates: Path) -> None:
    """What is written while a client follows arrives, to the last line, and then the answer ends."""
    async with node(tmp_path) as n, served(n, certificates) as (url, clients):
        obj = pod(shell('trap "echo bye; exit 0" TERM; echo up; sleep 60 & wait'))
        await n.said(n.apply(obj), "up")
        following = asyncio.create_task(get(f"{url}/containerLogs/ns/pod/main?follow=true", clients["client"]))
        await asyncio.sleep(0.3)
        n.delete(obj, 30)
        assert await asyncio.wait_for(following, SOON_S) == (200, "up\nbye\n")


async def test_usage_counts_a_containers_children(tmp_path: Path, certificates: Path) -> None:
    """/metrics/resource shows the CPU of the whole process tree, and memory that is there."""
    async with node(tmp_path) as n, served(n, certificates) as (url, clients):
        made = n.apply(pod(shell("(i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; echo spun; sleep 60) & wait")))
        await n.said(made, "spun")
        _, text = await get(f"{url}/metrics/resource", clients["client"])
        samples = {line.split()[0]: float(line.split()[1]) for line in text.splitlines() if not line.startswith("#")}
        labels = '{container="main",namespace="ns",pod="pod"}'
        assert samples[f"container_cpu_usage_seconds_total{labels}"] >= 0.02
        assert samples[f"container_memory_working_set_bytes{labels}"] > 2**18
        assert samples["node_cpu_usage_seconds_total"] > 0
        assert abs(samples[f"container_start_time_seconds{labels}"] - datetime.now(UTC).timestamp()) < 60


class FakeApi:
    """Answers as scripted: lists and watches of pods in order, then watches that stay silent."""

    def __init__(self, lists: list[Json], watches: list[tuple[int, list[Json]]]) -> None:
        self.lists, self.watches, self.asked = lists, watches, list[str]()
        self.failures = 0

    async def pods(self, request: web.Request) -> web.StreamResponse:
        """One list or one watch."""
        self.asked.append(request.query.get("resourceVersion", "list") if request.query.get("watch") else "list")
        assert request.query["fieldSelector"] == "spec.nodeName=node-1"
        if not request.query.get("watch"):
            return web.json_response(self.lists.pop(0))
        status, events = self.watches.pop(0) if self.watches else (200, [])
        if status != 200:
            return web.json_response({"message": "no"}, status=status)
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"".join(json.dumps(event).encode() + b"\n" for event in events))
        if not events:
            await asyncio.sleep(30)
        return response

    async def config_map(self, request: web.Request) -> web.Response:
        """Fails as often as told, then answers."""
        self.failures -= 1
        status = 503 if self.failures >= 0 else 404 if request.match_info["name"] == "none" else 200
        return web.json_response({"message": "busy", "data": {"A": "b"}}, status=status)


@asynccontextmanager
async def client(fake: FakeApi) -> AsyncIterator[ApiServer]:
    """A client of a fake API server."""
    app = web.Application()
    app.router.add_get("/api/v1/pods", fake.pods)
    app.router.add_get("/api/v1/namespaces/ns/configmaps/{name}", fake.config_map)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    port = free_ports(1)[0]
    await web.TCPSite(runner, "127.0.0.1", port).start()
    async with ApiServer(f"http://127.0.0.1:{port}", ssl.create_default_context()) as api:
        yield api
    await runner.cleanup()


def meta(name: str, version: str) -> Json:
    """A pod with no more than a name and a version."""
    return {"metadata": {"name": name, "resourceVersion": version}}


async def test_a_watch_goes_on_where_it_was_and_lists_again_when_it_expired() -> None:
    """An ended or failed watch resumes at the last version, bookmarks included; both forms of 410 list anew."""
    gone = {"type": "ERROR", "object": {"code": 410, "message": "too old"}}
    fake = FakeApi(
        lists=[{"metadata": {"resourceVersion": str(version)}, "items": []} for version in (10, 20, 30)],
        watches=[
            (200, [{"type": "ADDED", "object": meta("a" * 200_000, "11")}, {"type": "BOOKMARK", "object": meta("", "12")}]),
            (500, []),
            (200, [{"type": "DELETED", "object": meta("a", "13")}, gone]),
            (410, []),
        ],
    )
    seen = []
    async with client(fake) as api, asyncio.timeout(DEADLINE_S):
        async for change in api.pods("node-1"):
            seen.append(change)
            if len(seen) == 5:
                break
    kinds = [Listed, Changed, Deleted, Listed, Listed]
    assert [type(change) for change in seen] == kinds
    assert fake.asked == ["list", "10", "12", "12", "list", "20", "list"]


async def test_a_request_is_repeated_while_the_server_is_busy_but_not_for_ever() -> None:
    """503 is tried again until the deadline; 404 is an answer."""
    fake = FakeApi([], [])
    async with client(fake) as api:
        fake.failures = 2
        assert await api.data("ConfigMap", "ns", "there") == {"A": "b"}
        assert await api.data("ConfigMap", "ns", "none") is None
        fake.failures = 1000
        with pytest.raises(ApiError, match="503: busy"):
            await api.request("GET", "/api/v1/namespaces/ns/configmaps/there", deadline_s=3.0)
