"""A pod's life on the process node, with real processes and real signals."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from lab.errors import LabFault
from lab.host import processes
from lab.kubelet import pod as pods
from lab.kubelet.agent import end_leftovers
from lab.kubelet.process import LEAST_GRACE_S, Process

from .harness import container, node, pod, shell

DRAINS = 'trap "echo draining; exit 0" TERM; echo up; sleep 60 & wait'
DEAF = 'trap "" TERM; echo up; exec sleep 60'
SOON_S = 20.0  # on a busy machine too, and well within the 30 s of grace that a pod has of its own


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def test_a_deleted_pod_that_drains_ends_with_code_0(tmp_path: Path) -> None:
    """SIGTERM reaches the process, and one that ends within its grace is shown as Completed before the object is removed.

    Its life costs two writes of the status. What the watch tells of it afterwards changes nothing.
    """
    async with node(tmp_path) as n:
        obj = pod(shell(DRAINS))
        made = n.apply(obj)
        await n.said(made, "up")
        await n.api.until(n.api.running)
        began = time.monotonic()
        n.delete(obj, 30)
        ended = await n.ended(obj)
        assert time.monotonic() - began < SOON_S
        assert (ended["exitCode"], ended["reason"]) == (0, "Completed")
        assert ended["startedAt"] <= ended["finishedAt"]
        assert "draining" in n.text(made)
        assert "Killing" in n.api.reasons()
        assert n.api.ready() == ["True", "False"]
        n.delete(obj, 30)
        assert n.apply(obj) is made
        await asyncio.sleep(0.1)
        assert made.containers[0].pid is None
        assert [status["phase"] for status in n.api.statuses] == ["Running", "Succeeded"]
        n.vanish(obj)
        assert n.agent.pods() == []


async def test_a_delete_is_sent_again_until_the_watch_says_that_the_object_is_gone(tmp_path: Path, monkeypatch) -> None:
    """An API server that was restarted answers the first with "not found", and the object stays."""
    monkeypatch.setattr(pods, "DELETE_AGAIN_S", 0.02)
    async with node(tmp_path) as n:
        obj = pod(shell("exit 0"), policy="Never")
        n.apply(obj)
        await n.phase("Succeeded")
        n.delete(obj, 30)
        async with asyncio.timeout(SOON_S):
            while len(n.api.deleted) < 3:
                await asyncio.sleep(0.005)
        n.vanish(obj)
        sent = len(n.api.deleted)
        await asyncio.sleep(0.1)
        assert n.api.deleted == [obj["metadata"]["uid"]] * sent


@pytest.mark.parametrize("refused", [False, True])
async def test_a_container_restarts_while_its_configmap_can_not_be_read(tmp_path: Path, monkeypatch, refused: bool) -> None:
    """With what it read last: the API server hangs, or a new one does not know yet that the pod may read it."""
    monkeypatch.setattr(pods, "KNOWN_S", 0.05)
    monkeypatch.setattr("lab.kubelet.api.KEPT_S", 0.0)  # each start asks anew

    async def away(*_: object) -> dict[str, str]:
        if not refused:
            await asyncio.sleep(3600)
        raise LabFault("403")

    async with node(tmp_path) as n:
        n.api.objects[("ConfigMap", "shared")] = {"A": "b"}
        made = n.apply(pod(shell('echo "A is $A"; sleep 60', envFrom=[{"configMapRef": {"name": "shared"}}])))
        await n.said(made, "A is b")
        await n.api.until(n.api.running)
        monkeypatch.setattr(n.api, "data", away)
        os.kill(made.containers[0].pid, signal.SIGKILL)
        await n.api.until(lambda: n.api.running(restarts=1))
        await n.said(made, "A is b")


async def test_a_status_that_another_wrote_is_put_right(tmp_path: Path, monkeypatch) -> None:
    """A controller that missed the node's lease says of each pod that it is not Ready. Older news, and its own, is left."""
    monkeypatch.setattr(pods, "CORRECT_S", 0.05)
    async with node(tmp_path) as n:
        n.api.version = 7
        obj = pod(shell("sleep 60"))
        n.apply(obj)
        await n.api.until(n.api.running)
        written, shown = len(n.api.statuses), n.api.statuses[-1]
        unready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}
        for version, status in ((7, unready), (8, shown)):
            n.apply(obj | {"metadata": obj["metadata"] | {"resourceVersion": str(version)}, "status": status})
        await asyncio.sleep(0.2)
        assert len(n.api.statuses) == written
        n.apply(obj | {"metadata": obj["metadata"] | {"resourceVersion": "9"}, "status": unready})
        await n.api.until(lambda: len(n.api.statuses) > written)
        assert n.api.statuses[written:] == [shown]


async def test_a_pod_that_is_deleted_while_its_process_starts_is_stopped_with_an_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its program may already have written something when the node does not know the process yet."""
    async with node(tmp_path) as n:
        obj, start = pod(shell(DRAINS)), Process.start

        async def deleted_meanwhile(*words: Any, **named: Any) -> Process:
            process = await start(*words, **named)
            await n.said(n.agent.pods()[0], "up")
            n.delete(obj, 30)
            return process

        monkeypatch.setattr(Process, "start", deleted_meanwhile)
        n.apply(obj)
        assert (await n.ended(obj))["exitCode"] == 0
        assert n.api.reasons() == ["Started", "Killing"]


@pytest.mark.parametrize(("graces", "least_s"), [([60, 3, 30], 3), ([0], 2)], ids=["shortened", "least"])
async def test_a_process_deaf_to_sigterm_is_killed_after_its_grace(tmp_path: Path, graces: list[int], least_s: float) -> None:
    """SIGKILL comes when the grace is over, not before. A later deletion can only shorten it, and none is shorter than 2 s."""
    async with node(tmp_path) as n:
        obj = pod(shell(DEAF))
        await n.said(n.apply(obj), "up")
        began = time.monotonic()
        for grace_s in graces:
            n.delete(obj, grace_s)
        ended = await n.ended(obj)
        assert least_s <= time.monotonic() - began < SOON_S
        assert (ended["exitCode"], ended["signal"], ended["reason"]) == (137, 9, "Error")
        assert n.api.statuses[-1]["phase"] == "Failed"


@pytest.mark.parametrize("group", [None, 0], ids=["same group", "own group"])
async def test_only_the_main_process_gets_sigterm_and_no_child_outlives_it(tmp_path: Path, group: int | None) -> None:
    """A child is not asked to end, and is killed with the session, whatever its group, once the main process has ended."""
    async with node(tmp_path) as n:
        child = f"""trap "touch {tmp_path}/asked" TERM; echo child $$$$; sleep 60 & wait"""
        parent = f"""import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, lambda *_: (time.sleep(0.3), sys.exit(0)))
subprocess.Popen(["sh", "-c", {child!r}], process_group={group})
while True: time.sleep(0.1)"""
        obj = pod(container("python", "-c", parent))
        made = n.apply(obj)
        await n.said(made, "child")
        pid = int(n.text(made).split()[1])
        assert alive(pid)
        n.delete(obj, 30)
        assert (await n.ended(obj))["exitCode"] == 0
        assert not alive(pid)
        assert not (tmp_path / "asked").exists()


async def test_a_force_deleted_pod_is_killed_and_nothing_more_is_written(tmp_path: Path) -> None:
    """When the object vanishes the process is ended within the shortest grace, with no write for an object that is gone."""
    async with node(tmp_path) as n:
        obj = pod(shell(DEAF))
        made = n.apply(obj)
        await n.said(made, "up")
        await n.api.until(n.api.running)
        pid = made.containers[0].pid
        written = len(n.api.statuses)
        n.vanish(obj)
        async with asyncio.timeout(SOON_S):
            await made.containers[0].ended.wait()
        assert not alive(pid)
        assert (len(n.api.statuses), n.api.deleted) == (written, [])


async def test_a_crashing_container_is_restarted_with_back_off(tmp_path: Path) -> None:
    """The first restart is at once, the second waits in CrashLoopBackOff, and the last run's end stays on show."""
    async with node(tmp_path, backoff_base_s=0.3) as n:
        obj = pod(shell("echo run; exit 3"))
        made = n.apply(obj)
        await n.api.until(lambda: any(entry["restartCount"] == 2 for entry in n.api.shown()))
        waits = [entry for entry in n.api.shown() if "waiting" in entry["state"]]
        assert waits[0]["restartCount"] == 1
        assert waits[0]["state"]["waiting"]["reason"] == "CrashLoopBackOff"
        assert waits[0]["state"]["waiting"]["message"] == "back-off 0.3s restarting failed container=main pod=pod"
        assert waits[0]["lastState"]["terminated"]["exitCode"] == 3
        assert {status["phase"] for status in n.api.statuses} == {"Running"}
        assert "BackOff" in n.api.reasons()
        assert (made.folder / "main.0.log").read_text() == "run\n"
        await n.api.until(lambda: "waiting" in n.api.shown()[-1]["state"])
        n.delete(obj, 30)
        assert (await n.ended(obj))["exitCode"] == 3


ONCE = "[ -e $HOME/seen ] && exit 0; touch $HOME/seen; exit 1"


@pytest.mark.parametrize(
    ("policy", "script", "phase", "code", "restarts"),
    [
        ("Never", "exit 0", "Succeeded", 0, 0),
        ("Never", "exit 4", "Failed", 4, 0),
        ("OnFailure", "exit 0", "Succeeded", 0, 0),
        ("OnFailure", ONCE, "Succeeded", 0, 1),
    ],
)
async def test_a_pod_that_ends_for_good_stays_until_it_is_deleted(tmp_path, policy, script, phase, code, restarts) -> None:
    """OnFailure runs a failed container again, and leaves one that has succeeded; the object is removed only on deletion."""
    async with node(tmp_path) as n:
        obj = pod(shell(script), policy=policy)
        n.apply(obj)
        await n.phase(phase)
        assert n.api.shown()[-1]["state"]["terminated"]["exitCode"] == code
        assert n.api.shown()[-1]["restartCount"] == restarts
        assert n.api.deleted == []
        n.delete(obj, 0)
        await n.removed(obj)


async def test_a_pod_of_two_containers_is_ready_and_over_only_with_both(tmp_path: Path) -> None:
    """Every container must be ready for the pod to be, and one failed container makes the finished pod Failed.

    The second has no handler of SIGTERM: death by signal n shows as code 128 + n.
    """
    async with node(tmp_path) as n:
        never = {"exec": {"command": ["false"]}, "periodSeconds": 1}
        obj = pod(shell(DRAINS), shell("sleep 60", name="side", readinessProbe=never))
        await n.said(n.apply(obj), "up")
        await n.api.until(lambda: n.api.running() and "running" in n.api.shown("side")[-1]["state"])
        ready = next(entry for entry in n.api.statuses[-1]["conditions"] if entry["type"] == "Ready")
        assert (ready["status"], ready["message"]) == ("False", "containers with unready status: [side]")
        n.delete(obj, 30)
        last = await n.removed(obj)
        ends = [entry["state"]["terminated"] for entry in last["containerStatuses"]]
        assert [(end["exitCode"], end.get("signal")) for end in ends] == [(0, None), (143, 15)]
        assert last["phase"] == "Failed"


async def test_a_command_that_is_not_there_is_a_start_error(tmp_path: Path) -> None:
    """A command that can't be executed shows as StartError with code 128, as a container runtime shows it."""
    async with node(tmp_path) as n:
        n.apply(pod(container("no-such-command"), policy="Never"))
        await n.phase("Failed")
        ended = n.api.shown()[-1]["state"]["terminated"]
        assert (ended["exitCode"], ended["reason"]) == (128, "StartError")
        assert "no-such-command" in ended["message"]


@pytest.mark.parametrize("outage", ["down", "hangs"])
async def test_an_outage_does_not_hold_up_the_nodes_end(tmp_path: Path, outage: str) -> None:
    """With an API that refuses or never answers, the node still ends every process and returns.

    A short outage delays a status; it does not lose it.
    """
    async with node(tmp_path) as n:
        n.api.down = True
        draining, running = pod(shell(DRAINS)), pod(shell(DRAINS), metadata={"name": "other", "uid": "other"})
        pods = [n.apply(draining), n.apply(running)]
        for made in pods:
            await n.said(made, "up")
        assert n.api.statuses == []
        n.api.down = False
        await n.api.until(n.api.running)
        setattr(n.api, outage, True)
        n.delete(draining, 30)
        async with asyncio.timeout(SOON_S):
            await pods[0].containers[0].ended.wait()
        await asyncio.sleep(0.1)  # its last status is being written now
        began = time.monotonic()
        await n.agent.stop()
        assert time.monotonic() - began < LEAST_GRACE_S + 4  # a second less than it waits for one that does not end


async def test_a_pod_of_an_earlier_node_process_counts_as_restarted(tmp_path: Path) -> None:
    """A container shown as running when the node starts is lost: it runs again with its count raised and its loss on show."""
    async with node(tmp_path) as n:
        obj = pod(shell(DRAINS))
        before = {"name": "main", "restartCount": 4, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
        obj["status"] |= {"phase": "Running", "podIP": "127.77.9.9", "containerStatuses": [before]}
        made = n.apply(obj)
        await n.api.until(n.api.running)
        shown: dict[str, Any] = n.api.shown()[-1]
        assert (made.ip, shown["restartCount"]) == ("127.77.9.9", 5)
        assert shown["lastState"]["terminated"]["reason"] == "ContainerStatusUnknown"


def test_processes_left_by_a_killed_node_are_ended(tmp_path: Path) -> None:
    """The next node ends the pods' processes that the pid files name, and no other of the same run."""
    mine = processes.start(tmp_path, "pod-like", ["sleep", "60"])
    (tmp_path / "logs" / "pod" / "web").mkdir(parents=True)
    left = processes.start(tmp_path, "pod/web/main", ["sleep", "60"])
    try:
        assert end_leftovers(tmp_path) == 1
        assert not alive(left.process.pid)
        assert mine.process.poll() is None
    finally:
        processes.stop(tmp_path, mine, 1)
    assert list((tmp_path / "pids").iterdir()) == []
