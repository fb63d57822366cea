"""ConfigMaps and Secrets for environments: fetched once for pods that start together."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Protocol

from lab.kubelet.environment import Kind, Source

KEPT_S = 1.0


class Reader(Protocol):
    """Reads the data of a ConfigMap or Secret."""

    async def data(self, kind: Kind, namespace: str, name: str) -> Mapping[str, str] | None:
        """The values by key, None when there is no such object."""


class Sources:
    """A reader whose answers are shared for a second: a scale-up asks once, and the next pod sees an edit."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
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
            future = asyncio.ensure_future(self._reader.data(source.kind, namespace, source.name))
            self._asked[key] = (now + KEPT_S, future)
        try:
            return await asyncio.shield(self._asked[key][1])
        except Exception:
            self._asked.pop(key, None)  # a failure is not an answer to share
            raise
