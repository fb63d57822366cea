"""Probes: one check of a pod's server, socket or command, and the count that turns checks into a verdict."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from lab.kubelet import process
from lab.kubelet.podspec import Exec, HttpGet, Probe

LINE_KEPT = 80


class Tally:
    """Counts results in a row; a verdict falls when a threshold is reached. Pure."""

    def __init__(self, successes: int, failures: int) -> None:
        self._needed = {True: successes, False: failures}
        self._last: bool | None = None
        self._run = 0

    def observe(self, success: bool) -> bool | None:
        """The verdict after this result, or None while its threshold is not reached."""
        self._run = self._run + 1 if success is self._last else 1
        self._last = success
        return success if self._run >= self._needed[success] else None


def request(action: HttpGet, host: str) -> bytes:
    """The request of an HTTP probe; the probe's own headers win over the kubelet's."""
    headers = {"Host": f"{host}:{action.port}", "User-Agent": "kube-probe/process-node", "Accept": "*/*"}
    given = {name.title() for name, _ in action.headers}
    lines = [f"{name}: {value}" for name, value in headers.items() if name not in given]
    lines += [f"{name}: {value}" for name, value in action.headers]
    return "\r\n".join((f"GET {action.path} HTTP/1.1", *lines, "Connection: close", "", "")).encode("latin-1")


class Prober:
    """Carries out checks, each on a new connection, so that it notices a server that no longer accepts."""

    def __init__(self, run: Path) -> None:
        self._run = run
        self._tls = ssl.create_default_context()
        self._tls.check_hostname = False  # as a kubelet, which verifies no certificate of a probed server
        self._tls.verify_mode = ssl.CERT_NONE

    async def check(self, probe: Probe, ip: str, env: Mapping[str, str], cwd: str | Path) -> str:
        """Check once; returns an empty string for success, otherwise the reason."""
        action = probe.action
        try:
            if isinstance(action, Exec):
                code, output = await process.run_to_end(action.command, env, cwd, probe.timeout_s, self._run, "pod/probe")
                return "" if code == 0 else f"command ended with code {code}: {output}"
            async with asyncio.timeout(probe.timeout_s):
                if isinstance(action, HttpGet):
                    return await self._get(action, action.host or ip)
                _, writer = await asyncio.open_connection(action.host or ip, action.port)
                writer.transport.abort()
                return ""
        except TimeoutError:
            return f"no answer within {probe.timeout_s:g} s"
        except (OSError, ValueError, EOFError) as error:
            return str(error) or type(error).__name__

    async def _get(self, action: HttpGet, host: str) -> str:
        # By hand, because only the status matters: an HTTP client costs twice the CPU, for every pod every second.
        reader, writer = await asyncio.open_connection(host, action.port, ssl=self._tls if action.scheme == "https" else None)
        try:
            writer.write(request(action, host))
            line = await reader.readline()
            version, _, rest = line.decode("latin-1").partition(" ")
            if not version.startswith("HTTP/") or not rest[:3].isdigit():
                return f"not an HTTP answer: {line[:LINE_KEPT]!r}"
            return "" if 200 <= int(rest[:3]) < 400 else f"HTTP probe failed with statuscode: {rest[:3]}"
        finally:
            writer.transport.abort()


async def watch(probe: Probe, check: Callable[[], Awaitable[str]], heard: Callable[[bool | None, str], None]) -> None:
    """Check at the probe's period for ever; ``heard`` gets each verdict (None: unchanged) and the reason."""
    loop = asyncio.get_running_loop()
    tally = Tally(probe.successes, probe.failures)
    await asyncio.sleep(probe.initial_delay_s)
    due = loop.time()
    while True:
        wrong = await check()
        heard(tally.observe(not wrong), wrong)
        due = max(due + probe.period_s, loop.time())  # a check that overran its period delays the next, never doubles it
        await asyncio.sleep(due - loop.time())
