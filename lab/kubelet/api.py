"""The API server as the process node uses it: pods listed and watched, statuses, events, the Node and its Lease."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import math
import ssl
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from lab.errors import InputError, LabFault
from lab.kubelet import backoff
from lab.kubelet.environment import Kind, Source
from lab.kubelet.podspec import Json

log = logging.getLogger("lab.node")

DEADLINE_S = 30.0
WATCH_S = 240
RELATED_S, RELATED_RETRY_S = 1.0, 0.02  # the authorizer's own watch of pods is milliseconds behind the node's
KEPT_S = 1.0  # an answer that pods which start together share
CONNECTIONS = 16  # connections that a scale-up's writes share; each new one costs a TLS handshake on both sides
STRATEGIC = "application/strategic-merge-patch+json"


def read_kubeconfig(file: Path) -> tuple[str, ssl.SSLContext]:
    """The server and the TLS context of a component's kubeconfig. Raises :class:`InputError` for a file that can't be used."""
    try:
        config = yaml.safe_load(file.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        tls = ssl.create_default_context(cafile=cluster["certificate-authority"])
        tls.load_cert_chain(user["client-certificate"], user["client-key"])
        return str(cluster["server"]), tls
    except (OSError, ValueError, LookupError, TypeError, yaml.YAMLError) as error:
        allowed = "a kubeconfig that names a server, its CA, and the files of a client certificate and its key"
        raise InputError(file, "kubeconfig", " ".join(str(error).split()), allowed) from None


class ApiError(LabFault):
    """The API server refused a request, or did not answer before the deadline (status 0)."""

    def __init__(self, request: str, status: int, message: str) -> None:
        self.status = status
        super().__init__(f"{request}: {status or 'no answer'}: {message}")


class Expired(Exception):
    """A watch can't continue from its place: list again."""


@dataclass(frozen=True)
class Listed:
    """Every pod bound to the node; a pod that is not among them is gone."""

    pods: list[Json]


@dataclass(frozen=True)
class Changed:
    """A pod was bound to the node or has changed."""

    pod: Json


@dataclass(frozen=True)
class Deleted:
    """A pod's object is gone."""

    pod: Json


class Sources:
    """The data of ConfigMaps and Secrets, shared for a second: a scale-up asks once, and the next pod sees an edit."""

    def __init__(self, api: ApiServer) -> None:
        self._api = api
        self._asked: dict[tuple[str, Source], tuple[float, asyncio.Future[Mapping[str, str] | None]]] = {}

    async def get(self, namespace: str, wanted: Iterable[Source]) -> dict[Source, Mapping[str, str] | None]:
        """The data of each source, all fetched at the same time."""
        chosen = list(wanted)
        answers = await asyncio.gather(*(self._one(namespace, source) for source in chosen))
        return dict(zip(chosen, answers, strict=True))

    async def _one(self, namespace: str, source: Source) -> Mapping[str, str] | None:
        now = asyncio.get_running_loop().time()
        self._asked = {key: entry for key, entry in self._asked.items() if entry[0] > now}
        key = (namespace, source)
        if key not in self._asked:
            future = asyncio.ensure_future(self._api.data(source.kind, namespace, source.name))
            future.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody may wait for it any more
            self._asked[key] = (now + KEPT_S, future)
        try:
            return await asyncio.shield(self._asked[key][1])
        except Exception:
            self._asked.pop(key, None)  # a failure is not an answer to share
            raise


class ApiServer:
    """A client with retries up to a deadline; use as an async context manager."""

    def __init__(self, server: str, tls: ssl.SSLContext) -> None:
        self._server = server
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls, limit=CONNECTIONS))

    async def __aenter__(self) -> ApiServer:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def request(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        *,
        content: str = "application/json",
        deadline_s: float = DEADLINE_S,
        again: bool = True,
    ) -> Json:
        """Send one request, ``again`` while the server is unreachable or overloaded. Raises :class:`ApiError` otherwise."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + deadline_s
        data = None if body is None else json.dumps(body)
        attempt = 0
        while True:
            try:
                timeout, headers = aiohttp.ClientTimeout(total=max(0.1, deadline - loop.time())), {"Content-Type": content}
                sent = self._session.request(method, self._server + path, data=data, headers=headers, timeout=timeout)
                async with sent as answer:
                    text = await answer.text()
                    if answer.status < 300:
                        return dict(json.loads(text))
                    status, message = answer.status, _message(text)
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                status, message = 0, str(error) or type(error).__name__
            wait_s = backoff.api_retry(attempt)
            if not again or (status != 429 and 0 < status < 500) or loop.time() + wait_s >= deadline:
                raise ApiError(f"{method} {path}", status, message)
            await asyncio.sleep(wait_s)
            attempt += 1

    async def pods(self, node: str) -> AsyncIterator[Listed | Changed | Deleted]:
        """The node's pods, listed and then watched, for ever. It waits out an outage, and lists again when a watch expires."""
        query = f"/api/v1/pods?fieldSelector=spec.nodeName%3D{node}"
        version, attempt = "", 0
        while True:
            try:
                if not version:
                    answer = await self.request("GET", query)
                    version = answer["metadata"]["resourceVersion"]
                    yield Listed([dict(pod) for pod in answer.get("items") or ()])
                async for kind, obj in self._watch(f"{query}&watch=1&allowWatchBookmarks=true&resourceVersion={version}"):
                    version, attempt = obj["metadata"]["resourceVersion"], 0
                    if kind in ("ADDED", "MODIFIED"):
                        yield Changed(obj)
                    elif kind == "DELETED":
                        yield Deleted(obj)
            except Expired:
                version = ""
            except (ApiError, aiohttp.ClientError, TimeoutError, OSError) as error:
                if attempt == 0:
                    log.warning("the watch of pods was interrupted: %s", error)
                await asyncio.sleep(backoff.api_retry(attempt))
                attempt += 1

    async def _watch(self, path: str) -> AsyncIterator[tuple[str, Json]]:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=WATCH_S + 30)
        async with self._session.get(f"{self._server}{path}&timeoutSeconds={WATCH_S}", timeout=timeout) as answer:
            if answer.status == 410:
                raise Expired
            if answer.status != 200:
                raise ApiError(f"GET {path}", answer.status, _message(await answer.text()))
            rest = b""
            async for piece in answer.content.iter_any():
                # Not readline: a pod's line may be longer than the reader's limit.
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    event = json.loads(line)
                    kind, obj = event["type"], event["object"]
                    if kind == "ERROR" and obj.get("code") == 410:
                        raise Expired
                    if kind == "ERROR":
                        raise ApiError(f"GET {path}", int(obj.get("code") or 500), str(obj.get("message")))
                    yield kind, obj

    async def data(self, kind: Kind, namespace: str, name: str) -> Mapping[str, str] | None:
        """The values of a ConfigMap or Secret, None when there is none; an early refusal is asked again for RELATED_S.

        The node authorizer lets a node read the objects that its pods refer to, once it has seen the pod itself.
        """
        plural = "configmaps" if kind == "ConfigMap" else "secrets"
        loop = asyncio.get_running_loop()
        early_until = loop.time() + RELATED_S
        while True:
            try:
                found = await self.request("GET", f"/api/v1/namespaces/{namespace}/{plural}/{name}")
                break
            except ApiError as error:
                if error.status == 404:
                    return None
                if error.status != 403 or loop.time() > early_until:
                    raise
            await asyncio.sleep(RELATED_RETRY_S)
        values: Mapping[str, str] = found.get("data") or {}
        if kind == "Secret":
            return {key: base64.b64decode(value).decode(errors="replace") for key, value in values.items()}
        return values

    async def patch_status(self, pod: Json, status: Json) -> float:
        """Publish a pod's status, once: by the next try it may be another. The uid protects a later pod of the same name.

        Returns the resourceVersion of the object with it, infinity where there is none any more.
        """
        body = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status}
        written = await self._unless_gone("PATCH", f"{_path(pod)}/status", body, STRATEGIC, again=False)
        return int(written["metadata"]["resourceVersion"]) if written else math.inf

    async def delete_pod(self, pod: Json) -> None:
        """Remove a pod's object at once, if it still is the one with this uid."""
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
        body["preconditions"] = {"uid": pod["metadata"]["uid"]}
        await self._unless_gone("DELETE", _path(pod), body)

    async def create_event(self, event: Json) -> None:
        """Create an Event. A namespace that is going away accepts none, and needs none."""
        await self._unless_gone("POST", f"/api/v1/namespaces/{event['metadata']['namespace']}/events", event, also=(403,))

    async def update_event(self, namespace: str, name: str, change: Json) -> None:
        """Change an Event's count and time."""
        await self._unless_gone("PATCH", f"/api/v1/namespaces/{namespace}/events/{name}", change, STRATEGIC)

    async def _unless_gone(
        self,
        method: str,
        path: str,
        body: Json,
        content: str = "application/json",
        also: tuple[int, ...] = (),
        again: bool = True,
    ) -> Json | None:
        try:
            return await self.request(method, path, body, content=content, again=again)
        except ApiError as error:
            if error.status not in (404, 409, *also):  # 409: another uid has the name now
                raise
            return None


def _path(pod: Json) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def _message(text: str) -> str:
    try:
        status: Any = json.loads(text)
        return str(status.get("message", text))[:500]
    except (ValueError, AttributeError):
        return text[:500]
