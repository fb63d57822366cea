"""The zygote: an interpreter that has imported what pods run, and forks a pod's process instead of starting an interpreter.

The node runs this file by its path with the Python of an image, which need not have the lab installed. Nothing here imports
the lab. The zygote has one thread and no Kafka handle: only such a process can be forked and go on in the child.

A request is one byte with three descriptors: the job in JSON, the log, and a pipe for the answer. The pod's process is a
grandchild. Its parent ends at once, so that the node, as the subreaper, becomes its parent and gets its exit status, whether
the zygote lives or not. The pipe's end says that this is done. Its lines are the pid, and then ``ready`` or what went wrong.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import runpy
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Job = dict[str, Any]  # module, command, env, cwd
READY = "ready"
ROOM, ROOM_BYTES = "ROOM", 16_384  # a variable of the zygote that makes room for those of a pod


def load(modules: Sequence[str]) -> None:
    """Import what ``python -m`` would of each module. The module itself is dropped: a pod runs it as ``__main__``."""
    for name in modules:
        module = importlib.import_module(name)
        if hasattr(module, "__path__"):
            name = f"{name}.__main__"
            importlib.import_module(name)
        del sys.modules[name]


def sources() -> dict[str, int]:
    """The files of all imported modules, and when each was last written, ns; 0 for one that is gone."""
    found = {}
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file:
            try:
                found[file] = Path(file).stat().st_mtime_ns
            except OSError:
                found[file] = 0
    return found


def serve(requests: socket.socket) -> Job | None:
    """Fork for each request. Returns in a pod's process with its job, and with None here when the node has closed its end."""
    before = sources()
    while True:
        word, descriptors, _, _ = socket.recv_fds(requests, 1, 3)
        if not word:
            return None
        job, log, answer = descriptors
        if others := len(list(Path("/proc/self/task").iterdir())) - 1:
            os.write(answer, f"0\nthe zygote has {others} other threads\n".encode())
        elif newer := before.items() - sources().items():
            os.write(answer, f"0\nthe zygote has imported what has changed since: {min(newer)[0]}\n".encode())
        elif _fork(answer):
            return _begin(job, log, answer)
        for descriptor in descriptors:
            os.close(descriptor)


def _fork(answer: int) -> bool:
    """Fork a grandchild without a parent. True in the grandchild, False here."""
    gc.freeze()  # a collection in the child would write to each object, and copy its page
    try:
        parent = os.fork()
    except OSError as error:
        os.write(answer, f"0\n{error}\n".encode())
        return False
    if parent:
        os.waitpid(parent, 0)
        return False
    try:
        pid = os.fork()
    except OSError as error:
        os.write(answer, f"0\n{error}\n".encode())
        os._exit(1)
    if pid:
        os._exit(0)
    return True


def _begin(content: int, log: int, answer: int) -> Job:
    """Make this process the pod's own, and say so. It ends with code 1 when that fails."""
    os.write(answer, f"{os.getpid()}\n".encode())
    try:
        os.setsid()
        with os.fdopen(content) as file:
            job: Job = json.load(file)
        os.chdir(job["cwd"])
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.environ.clear()
        os.environ.update(job["env"])
        _show(job["command"], job["env"])
    except OSError as error:
        os.write(answer, f"{error}\n".encode())
        os._exit(1)
    time.tzset()
    sys.orig_argv = list(job["command"])
    sys.argv = ["-m", *job["command"][3:]]
    sys.path.insert(0, str(Path.cwd()))  # where ``python -m`` looks first
    gc.enable()
    os.write(answer, f"{READY}\n".encode())
    for entry in Path("/proc/self/fd").iterdir():
        if (descriptor := int(entry.name)) > 2:
            with contextlib.suppress(OSError):  # the one that listed them
                os.close(descriptor)
    return job


def _show(command: Sequence[str], env: Mapping[str, str]) -> None:
    """Show ``command`` and ``env`` where ``/proc`` shows a process's: in the memory with which the zygote was started.

    What finds no room is left out. A last byte that is not 0 tells the kernel that a title ends at its first 0
    (fs/proc/base.c).
    """
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    begin, end, env_begin, env_end = map(int, fields[45:49])
    title = " ".join(command).encode()[: end - begin - 2].ljust(end - begin - 1, b"\0") + b"\1"
    shown = b""
    for variable in (f"{name}={value}\0".encode() for name, value in env.items()):
        if len(shown) + len(variable) < env_end - env_begin:
            shown += variable
    with Path("/proc/self/mem").open("r+b", buffering=0) as memory:
        for address, content in ((begin, title), (env_begin, shown.ljust(env_end - env_begin, b"\0"))):
            memory.seek(address)
            memory.write(content)


def main() -> None:
    """``python -P zygote.py DESCRIPTOR MODULE …``: import the modules, then serve the requests on a socket."""
    gc.disable()
    requests = socket.socket(fileno=int(sys.argv[1]))
    load(sys.argv[2:])
    job = serve(requests)
    if job is not None:
        requests.detach()  # closed with all other descriptors
        # Not below a try: the interpreter ends here as it does for python -m, with the program's exit code.
        runpy.run_module(job["module"], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
