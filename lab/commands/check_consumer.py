"""``elastic-lab check-consumer``: whether your own consumer keeps the contract, rung by rung, on a real broker."""

from __future__ import annotations

import shlex
import sys
import time
from argparse import Namespace
from pathlib import Path

from lab import yamlfile
from lab.conformance import traffic
from lab.conformance.findings import BREACHED, HELD, NO_DATA, NOTE, findings, fulfilled
from lab.conformance.rehearsal import Consumer, Patience, Rehearsal
from lab.conformance.seen import Seen
from lab.conformance.traffic import Pair
from lab.errors import BREACHED as NOT_FULFILLED
from lab.errors import HELD as FULFILLED
from lab.flags import Flags
from lab.inputs import own_consumer, scale, workload
from lab.inputs.own_consumer import RUNGS
from lab.inputs.workload import Workload

MARKS = {HELD: "✔", BREACHED: "✘", NO_DATA: "?", NOTE: "·"}


def add_flags(parser: Flags) -> None:
    """Add the flags of the command."""
    parser.flag("workload", Path, None, "the Workload file with the command of your consumer", "a file")
    text = "samples of your own messages, a line of JSON each; the lab's events of 256 bytes without it"
    parser.flag("messages", Path, None, text, optional=True)


def run(options: Namespace) -> int:
    """Rehearse and print. Returns 0 where the rung that the file names is fulfilled, 1 where it is not."""
    read = yamlfile.document(options.workload)
    chosen = workload.parse(read).workload
    consumer = started_by(chosen, options.workload)
    samples = traffic.load(options.messages) if options.messages else ()
    print(f"{options.workload}: {shlex.join(consumer.command)}", flush=True)
    begun = time.monotonic()
    found = findings(rehearse(consumer, samples))
    for rung in RUNGS:
        print(f"\n{rung}")
        for one in found:
            if one.rung == rung:
                print(f"  {MARKS[one.verdict]} {one.what}: {one.verdict}: {one.text}")
    best = fulfilled(found)
    enough = best in RUNGS and RUNGS.index(best) >= RUNGS.index(chosen.rung)
    print(f"\nit fulfils: {best or 'no rung'}; its file says rung: {chosen.rung} ({time.monotonic() - begun:.0f} s)")
    return FULFILLED if enough else NOT_FULFILLED


def started_by(chosen: Workload, where: object) -> Consumer:
    """How the consumer of a workload is started on this machine. Raises :class:`InputError` where it can't be."""
    if not chosen.own:
        command = (sys.executable, "-m", "lab.programs.consumer")
        return Consumer(command, chosen.environment(scale.load(scale.REAL)) | {"METRICS_PORT": "0"})
    return Consumer(own_consumer.program(chosen.command, where), own_consumer.variables(chosen.env))


def rehearse(consumer: Consumer, samples: tuple[Pair, ...]) -> Seen:
    """Start a broker, rehearse the consumer on it, and end all of it. Raises :class:`LabFault`."""
    from lab.cluster import broker
    from lab.host import processes, runs

    started, folder, guard = runs.start(broker.start)
    try:
        return Rehearsal(folder, started.bootstrap, "check", consumer, Patience(), samples).run()
    finally:
        processes.clear(folder)
        processes.dismiss(guard)
