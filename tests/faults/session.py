"""``python -m tests.faults.session PHASE FOLDER``: a session of the lab that says where it is, for a test to end it there.

It logs to stdout. PHASE says how far it goes: ``building``, ``up``, ``driving``, ``closing``, ``judging``, ``kept``, ``full
disk`` or ``full record``. Its files lie in FOLDER.
"""

from __future__ import annotations

import dataclasses
import logging
import resource
import socket
import sys
from pathlib import Path
from typing import Any
from unittest import mock

from lab.__main__ import main as command
from lab.cluster import binary
from lab.commands import judge
from lab.components import build
from lab.errors import LabFault
from lab.host import processes
from lab.inputs import inputs, scale
from lab.inputs.workload import Workload
from lab.record.ledger import session
from lab.record.store import Record
from lab.trial import runner

KIB = 1024


def say(line: str) -> None:
    """One line that the test waits for."""
    print(line, flush=True)


def trial(cluster: binary.Binary, folder: Path, until: str) -> None:
    """The shortest trial there is, with its ledger."""
    profile = folder / "moment.yaml"
    profile.write_text("{kind: steady, rate: 300, duration: 30}")  # 1 s at quick scale
    chosen = inputs.read(profile, "lag", Workload(), 1, scale.load("quick"), "binary", until=until)

    def spark():
        made = session.spark()
        say("closing")
        return made

    runner.run(cluster, [chosen], folder, spark)


def fill_disk() -> None:
    """Let no file of this process, and of those that it starts from now on, get longer than 64 KiB."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 * KIB, resource.RLIM_INFINITY))


def judge_records(folder: Path) -> None:
    """Judge the records in ``folder``, and say when one is being judged."""
    compute = judge.judge

    def judged(record: Record, *given: Any) -> judge.Judged:
        say("judging")
        return compute(record, *given)

    with mock.patch.object(judge, "judge", judged):
        command(["judge", str(folder)])


def take_a_port() -> socket.socket:
    """Let the first port that a cluster chooses be one that is taken by the time it is bound."""
    choose, taken = processes.free_ports, socket.create_server(("127.0.0.1", 0))

    def chosen(count: int) -> list[int]:
        ports = choose(count)
        if count > 2:  # not the broker's
            processes.free_ports = choose
            ports[0] = taken.getsockname()[1]
        return ports

    processes.free_ports = chosen
    return taken


def main(phase: str, folder: Path) -> None:
    """Go as far as ``phase``, then wait for stdin to close and end in order."""
    logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s")
    if phase == "building":
        build.ensure([dataclasses.replace(build.COMPONENTS[0], ldflags=f"-X main.never={folder.name}")])
    if phase == "full disk":
        binary.prepare()
        fill_disk()
    with take_a_port() if phase == "kept" else open("/dev/null"):  # noqa: PTH123 - nothing to close
        try:
            cluster = binary.up(scale.load("quick"))
        except LabFault as fault:
            say(f"fault: {fault}")
            sys.exit(1)
    say(f"up {cluster.run}")
    if phase == "full record":
        fill_disk()
    if phase in ("driving", "closing", "judging", "full record"):
        try:
            trial(cluster, folder, inputs.REPLAYED if phase in ("closing", "judging") else inputs.DRAINED)
        except LabFault as fault:
            say(f"fault: {fault}")
    if phase == "judging":
        judge_records(folder / "records")
    if phase == "kept":
        cluster.keep()
        return
    sys.stdin.read()
    say("going down")
    cluster.down()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
