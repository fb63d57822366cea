"""Probes against real servers on a pod's own loopback address."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.host.processes import free_ports
from lab.kubelet import process
from lab.kubelet.probe import Tally

from .harness import node, pod, shell

PORT, SILENT = free_ports(2)  # not fixed: another run of the suite may use the same pod addresses
SERVES = {"ports": [{"name": "health", "containerPort": PORT}]}


class Answers:
    """An HTTP server whose status a test sets, and the requests it has had."""

    def __init__(self) -> None:
        self.status = 200
        self.requests: list[str] = []

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request; a connection that only opens and closes is none."""
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            self.requests.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(f"HTTP/1.1 {self.status} x\r\nContent-Length: 0\r\n\r\n".encode())
        writer.close()


@asynccontextmanager
async def serving(ip: str) -> AsyncIterator[Answers]:
    """An HTTP server on ``ip``; the first pod of a node has 127.77.0.1."""
    answers = Answers()
    async with await asyncio.start_server(answers.handle, ip, PORT):
        yield answers


def probe(**more: Any) -> dict[str, Any]:
    """An HTTP probe of the named port every second."""
    return {
        "httpGet": {"port": "health", "path": "/ready", "httpHeaders": [{"name": "Host", "value": "me"}]},
        "periodSeconds": 1,
        **more,
    }


async def test_readiness_follows_the_server(tmp_path: Path) -> None:
    """A pod is ready while its server answers below 400, unready after the threshold of failures, and ready again."""
    async with node(tmp_path) as n, serving("127.77.0.1") as server:
        n.apply(pod(shell("sleep 60", readinessProbe=probe(failureThreshold=1), **SERVES)))
        await n.api.until(lambda: n.api.ready()[-1:] == ["True"])
        server.status = 503
        await n.api.until(lambda: n.api.ready()[-1:] == ["False"])
        server.status = 302
        await n.api.until(lambda: n.api.ready()[-1:] == ["True"])
        assert n.api.ready()[-3:] == ["True", "False", "True"]
        assert "Readiness probe failed: HTTP probe failed with statuscode: 503" in [event["message"] for event in n.api.events]
        assert server.requests[0].startswith("GET /ready HTTP/1.1\r\n")
        assert server.requests[0].count("Host: me\r\n") == server.requests[0].count("Host:") == 1


async def test_readiness_is_still_probed_while_the_pod_drains_and_liveness_is_not(tmp_path: Path) -> None:
    """As with a kubelet, deletion alone makes no pod unready; a failing probe during the drain does, and ends nothing."""
    async with node(tmp_path) as n, serving("127.77.0.1") as server:
        drained = tmp_path / "drained"
        script = f'trap "while [ ! -e {drained} ]; do sleep 0.05; done; exit 0" TERM; echo up; sleep 60 & wait'
        probes = {"readinessProbe": probe(failureThreshold=1)}
        probes |= {"livenessProbe": probe(failureThreshold=1, terminationGracePeriodSeconds=1)}
        obj = pod(shell(script, **probes, **SERVES))
        await n.said(n.apply(obj), "up")
        await n.api.until(lambda: n.api.ready()[-1:] == ["True"])
        server.status = 500
        n.delete(obj, 30)
        await n.api.until(lambda: n.api.ready()[-1:] == ["False"])
        await asyncio.sleep(1.1)  # a liveness probe that was still asked would have failed by now
        assert n.api.running()
        drained.touch()
        assert (await n.ended(obj))["exitCode"] == 0
        assert not [event for event in n.api.events if "liveness" in event["message"].lower()]


async def test_a_failing_liveness_probe_restarts_the_container(tmp_path: Path) -> None:
    """After its threshold the process is asked to end, killed after the probe's grace, and started again."""
    async with node(tmp_path) as n:
        deaf = tmp_path / "deaf"  # a probe that failed before the trap is set would end the process by SIGTERM
        failing = {"exec": {"command": ["sh", "-c", f"[ ! -e {deaf} ]"]}, "periodSeconds": 1}
        failing |= {"failureThreshold": 1, "terminationGracePeriodSeconds": 1}
        n.apply(pod(shell(f'trap "" TERM; touch {deaf}; exec sleep 60', livenessProbe=failing)))
        await n.api.until(lambda: n.api.running(restarts=1))
        assert n.api.shown()[-1]["lastState"]["terminated"]["exitCode"] == 137
        said = [event["message"] for event in n.api.events]
        assert "Container main failed liveness probe, will be restarted" in said


async def test_an_exec_probe_that_hangs_is_killed_and_fails(tmp_path: Path) -> None:
    """A probe's command that overruns its timeout is killed with its children, leaves no pid file, and counts as a failure."""
    async with node(tmp_path) as n:
        hangs = {"exec": {"command": ["sh", "-c", "sleep 61 & wait"]}, "timeoutSeconds": 1, "failureThreshold": 1}
        n.apply(pod(shell("sleep 60", readinessProbe=hangs)))
        await n.api.until(lambda: "Unhealthy" in n.api.reasons())
        assert "Readiness probe failed: no answer within 1 s" in [event["message"] for event in n.api.events]
        assert len(list((tmp_path / "pids").iterdir())) == 1


async def test_a_cancelled_exec_probe_stays_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cancellation that meets the command's end in the same moment is not lost, or the probe would outlive its container."""

    output = asyncio.get_running_loop().create_future()
    child = SimpleNamespace(pid=2**30, returncode=1, communicate=lambda: asyncio.shield(output), wait=AsyncMock(return_value=1))
    monkeypatch.setattr(asyncio, "create_subprocess_exec", AsyncMock(return_value=child))
    task = asyncio.create_task(process.run_to_end(("x",), env={}, cwd="/", timeout_s=5, run=tmp_path, name="x"))
    await asyncio.sleep(0.01)
    output.set_result((b"", None))
    await asyncio.sleep(0)
    assert task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("listening", [True, False])
async def test_a_tcp_probe_asks_only_for_a_connection(tmp_path: Path, listening: bool) -> None:
    """A socket that accepts makes the pod ready; with a port without one it runs, and is not ready."""
    async with node(tmp_path) as n, serving("127.77.0.1"):
        port = PORT if listening else SILENT
        n.apply(pod(shell("sleep 60", readinessProbe={"tcpSocket": {"port": port}, "periodSeconds": 1})))
        await n.api.until(lambda: n.api.ready()[-1:] == ["True"] if listening else "Unhealthy" in n.api.reasons())
        assert n.api.ready()[-1] == str(listening)
        assert n.api.shown()[-1]["started"] is True


@given(st.lists(st.booleans(), max_size=40), st.integers(1, 4), st.integers(1, 4))
def test_a_verdict_needs_its_threshold_in_a_row(results: list[bool], successes: int, failures: int) -> None:
    """A verdict falls exactly when the last results, as many as the threshold, were all the same."""
    tally = Tally(successes, failures)
    for index, result in enumerate(results):
        needed = successes if result else failures
        recent = results[max(0, index + 1 - needed) : index + 1]
        expected = result if len(recent) == needed and set(recent) == {result} else None
        assert tally.observe(result) is expected
