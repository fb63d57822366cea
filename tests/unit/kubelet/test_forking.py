"""Pods that are forked from a zygote: as an executed pod in everything that a program can see, and in how it ends."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import psutil
import pytest

from lab import paths
from lab.host import identity, processes
from lab.kubelet.forking import Zygote
from lab.kubelet.pod import Pod

from .harness import DEADLINE_S, IMAGES, Node, container, node, pod
from .test_lifecycle import alive

FOLDER = IMAGES.folders["elastic-lab"]
WORK = """
import atexit, gc, json, os, resource, signal, subprocess, sys, threading, time

def facts():
    status = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
    numbers = [one for one in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{one}")]
    return {
        "leads": os.getpid() == os.getsid(0) == os.getpgid(0),
        "environment": dict(os.environ),
        "shown": dict(one.split("=", 1) for one in open("/proc/self/environ").read().split("\\0") if one),
        "limits": {name: resource.getrlimit(getattr(resource, name)) for name in dir(resource) if name.startswith("RLIMIT_")},
        "handlers": {one.name: str(signal.getsignal(one)) for one in signal.Signals},
        "masks": {name: status[name] for name in ("SigBlk", "SigIgn", "SigCgt")},
        "files": {one: os.readlink(f"/proc/self/fd/{one}") for one in numbers},
        "cwd": os.getcwd(), "umask": os.umask(0o22), "nice": os.nice(0), "path": sys.path, "executable": sys.executable,
        "argv": sys.argv, "command": sys.orig_argv, "name": __name__, "threads": threading.active_count(),
        "main": sys.modules["__main__"].__dict__ is globals(), "collects": gc.isenabled(), "zone": time.tzname,
        "buffers": [sys.stdout.line_buffering, sys.stderr.line_buffering],
    }

def drain(*_):
    print("draining", flush=True)
    sys.exit(5)

if __name__ == "__main__":
    task = sys.argv[1]
    if task == "facts":
        print(json.dumps(facts()))
    elif task == "exit":
        atexit.register(print, "bye")
        sys.exit(int(sys.argv[2]))
    elif task == "raise":
        raise RuntimeError("oh no")
    elif task == "kill":
        os.kill(os.getpid(), int(sys.argv[2]))
    elif task == "child":
        print("child", subprocess.Popen(["sh", "-c", "sleep 60 & wait"]).pid, flush=True)
    elif task == "drain":
        signal.signal(signal.SIGTERM, drain)
        print("up", os.environ.get("ELASTIC_LAB_RUN"), flush=True)
    if task in ("child", "drain", "wait"):
        print("up", flush=True)
        while True:
            signal.pause()
"""


@pytest.fixture
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the program that the pods run."""
    folder = tmp_path_factory.mktemp("programs")
    (folder / "work.py").write_text(WORK)
    return folder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run folder."""
    return tmp_path


def zygote(run: Path, work: Path, *modules: str) -> Zygote:
    """A zygote that has imported ``modules``, or ``work``, from the folder ``work``."""
    return Zygote(run, FOLDER, modules or ("work",), {"PYTHONPATH": str(work)})


def forking(run: Path, work: Path) -> AbstractAsyncContextManager[Node]:
    """A node with a zygote."""
    return node(run, zygote=zygote(run, work))


def python(work: Path, *words: str, module: str = "work", **env: str) -> Any:
    """A container that runs ``module``, with the variable by which it finds it."""
    variables = [{"name": name, "value": value} for name, value in {"PYTHONPATH": str(work), **env}.items()]
    return container("python", "-m", module, *words, env=variables)


def none_executed(n: Node) -> bool:
    """Whether no pod had to be executed."""
    return "ForkFailed" not in n.api.reasons()


async def up(n: Node, made: Pod) -> None:
    """Wait until the pod's program says that it is up, and the node knows its process."""
    await n.said(made, "up")
    async with asyncio.timeout(DEADLINE_S):
        while made.containers[0].pid is None:
            await asyncio.sleep(0.005)


def own_children() -> set[int]:
    """The children of the process of the tests: in a whole session these are also the components of a cluster."""
    return {one.pid for one in psutil.Process().children()}


async def end_of(n: Node, obj: Any) -> dict[str, Any]:
    """The state in which the container of a pod that is not restarted ended, once it did."""
    await n.phase("Succeeded", "Failed")
    shown: dict[str, Any] = n.api.shown()[-1]["state"]["terminated"]
    n.vanish(obj)
    return shown


async def facts(run: Path, work: Path, made: Zygote | None) -> dict[str, Any]:
    """All that the program sees of itself, with the pod's own folder called by one name."""
    async with node(run, zygote=made) as n:
        obj = pod(python(work, "facts", "a b", COLOUR="blue", TZ="Asia/Tokyo"), policy="Never")
        here = n.apply(obj)
        assert (await end_of(n, obj))["exitCode"] == 0
        assert none_executed(n)
        found: dict[str, Any] = json.loads(n.text(here).replace(str(here.folder), "/pod"))
        return found


async def test_a_forked_program_sees_what_an_executed_one_sees(run: Path, work: Path) -> None:
    """Session, group, environment, limits, signals, descriptors, folder, arguments, import path: all of it is the same."""
    forked = await facts(run, work, Zygote(run, FOLDER, ["work"], {"PYTHONPATH": str(work), "ITS_OWN": "x"}))
    assert forked == await facts(run, work, None)
    assert forked["leads"]
    assert forked["shown"] == forked["environment"]
    assert (forked["environment"]["COLOUR"], forked["environment"][identity.VARIABLE]) == ("blue", str(run))
    assert forked["files"] == {"0": "/dev/null", "1": "/pod/main.log", "2": "/pod/main.log"}
    assert forked["zone"] == ["JST", "JST"]


async def test_a_forked_process_is_shown_with_its_own_command_and_its_own_start(run: Path, work: Path) -> None:
    """``ps`` names the pod's program, the kernel's start is that of the fork, and the mark is where the sweep looks for it."""
    async with forking(run, work) as n:
        began = identity.identify(n.zygote.pid).ticks
        await asyncio.sleep(0.05)
        made = n.apply(pod(python(work, "drain", LONG="x" * 20_000)))
        await up(n, made)
        pid = made.containers[0].pid
        assert psutil.Process(pid).cmdline() == ["python", "-m", "work", "drain"]
        assert psutil.Process(pid).ppid() == os.getpid()
        assert identity.identify(pid).ticks > began
        assert pid in identity.marked()[run]
        assert str(run) in n.text(made)
        shown = psutil.Process(pid).environ()
        assert (shown["HOSTNAME"], shown[identity.VARIABLE]) == ("pod", str(run))
        assert "LONG" not in shown
        assert [process.pid for process in processes.remembered(run, "pod/")] == [pid]


ENDS = {
    ("exit", "3"): (3, None, "bye"),
    ("raise",): (1, None, "RuntimeError: oh no"),
    ("kill", "9"): (137, 9, ""),
    ("kill", "15"): (143, 15, ""),
    ("exit", "0"): (0, None, "bye"),
}


async def test_a_forked_process_ends_with_its_own_code(run: Path, work: Path) -> None:
    """The interpreter ends as usual: what is registered for the exit runs, and the buffers reach the log."""
    async with forking(run, work) as n:
        for words, (code, number, said) in ENDS.items():
            obj = pod(python(work, *words), policy="Never", metadata={"name": words[-1]})
            n.api.statuses.clear()
            made = n.apply(obj)
            shown = await end_of(n, obj)
            assert (shown["exitCode"], shown.get("signal")) == (code, number)
            assert said in n.text(made)
        assert none_executed(n)


async def test_what_a_forked_pod_has_started_is_ended_with_it_and_leaves_no_zombie(run: Path, work: Path) -> None:
    """Its orphans are the node's children, since that is who adopts them."""
    before = own_children()
    async with forking(run, work) as n:
        obj = pod(python(work, "child"))
        made = n.apply(obj)
        await up(n, made)
        family = psutil.Process(made.containers[0].pid).children(recursive=True)
        assert family
        n.delete(obj, 30)
        await n.removed(obj)
        async with asyncio.timeout(DEADLINE_S):  # the node waits for them when the kernel says that they have ended
            while [one for one in family if one.is_running()]:
                await asyncio.sleep(0.005)
        assert own_children() - before == {n.zygote.pid}


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGSTOP], ids=["dead", "does not answer"])
async def test_a_lost_zygote_costs_no_running_pod_anything_and_new_pods_are_executed(run, work, monkeypatch, sent) -> None:
    """A running pod goes on, and its exit code arrives; the next pod says why it was executed.

    A zygote that does not answer is killed, so that no late answer makes a second process of one pod.
    """
    monkeypatch.setattr("lab.kubelet.forking.PATIENCE_S", 0.3)
    async with forking(run, work) as n:
        obj = pod(python(work, "drain"), metadata={"name": "old", "uid": "old"})
        old = n.apply(obj)
        await up(n, old)
        os.kill(n.zygote.pid, sent)
        new = n.apply(pod(python(work, "drain"), metadata={"name": "new", "uid": "new"}))
        await up(n, new)
        assert "the zygote" in next(event["message"] for event in n.api.events if event["reason"] == "ForkFailed")
        assert not alive(n.zygote.pid)
        assert alive(old.containers[0].pid)
        n.delete(obj, 30)
        assert (await n.ended(obj))["exitCode"] == 5


@pytest.mark.parametrize(
    ("helper", "changes", "words"),
    [
        ("import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()", False, "1 other threads"),
        ("", True, "has changed since"),
        ("import no_such_module", False, "the zygote (has ended|takes no request)"),  # as it is asked before its end or after
    ],
    ids=["a thread", "a newer file", "no import"],
)
async def test_a_zygote_that_is_not_sound_forks_nothing(run: Path, work: Path, helper: str, changes: bool, words: str) -> None:
    """A thread would be missing in the child, and imports would be old: the event says so, and the pod is executed."""
    (work / "helper.py").write_text(helper)
    (work / "other.py").write_text("import work\nif __name__ != '__main__':\n    import helper")
    async with node(run, zygote=zygote(run, work, "work", "other")) as n:
        if changes:
            first = pod(python(work, "wait"), metadata={"name": "first", "uid": "first"})
            await up(n, n.apply(first))
            assert none_executed(n)
            later = (work / "helper.py").stat().st_mtime + 5
            os.utime(work / "helper.py", (later, later))
        n.apply(pod(python(work, "exit", "4"), policy="Never"))
        await n.api.until(lambda: "ForkFailed" in n.api.reasons())
        assert re.search(words, next(event["message"] for event in n.api.events if event["reason"] == "ForkFailed"))
        await n.api.until(lambda: any("terminated" in one["state"] for one in n.api.shown()))
        assert next(one for one in n.api.shown() if "terminated" in one["state"])["state"]["terminated"]["exitCode"] == 4


async def test_a_folder_that_is_not_there_is_a_start_error_as_for_an_executed_pod(run: Path, work: Path) -> None:
    """Nothing runs then."""
    before = own_children()
    async with forking(run, work) as n:
        wrong = python(work, "wait") | {"workingDir": str(work / "nowhere")}
        obj = pod(wrong, policy="Never")
        n.apply(obj)
        shown = await end_of(n, obj)
        assert (shown["exitCode"], shown["reason"]) == (128, "StartError")
        assert "No such file" in shown["message"]
        assert own_children() - before == {n.zygote.pid}


async def test_the_labs_consumer_can_be_forked(run: Path) -> None:
    """Its imports start no thread, librdkafka's among them, and its main module may be imported before it is run."""
    async with node(run, zygote=zygote(run, paths.PROJECT, "lab.programs.consumer")) as n:
        obj = pod(python(paths.PROJECT, module="lab.programs.consumer"), policy="Never")
        made = n.apply(obj)
        assert (await end_of(n, obj))["exitCode"] == 2
        assert n.text(made) == "python -m lab.programs.consumer: the following arguments are required: --bootstrap-servers\n"
        assert none_executed(n)
