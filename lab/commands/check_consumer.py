"""``elastic-lab check-consumer``: whether your own consumer keeps the contract, rung by rung, on a real broker."""

from __future__ import annotations

import os
import shlex
import sys
import time
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path

from lab import yamlfile
from lab.conformance import traffic
from lab.conformance.findings import BREACHED, HELD, NO_DATA, NOTE, findings, fulfilled
from lab.conformance.rehearsal import Consumer, Patience, Rehearsal
from lab.conformance.seen import Seen
from lab.conformance.traffic import Pair
from lab.errors import BREACHED as NOT_FULFILLED
from lab.errors import HELD as FULFILLED
from lab.errors import InputError
from lab.flags import Flags
from lab.foresee.estimate import capacity
from lab.foresee.usage import MIB
from lab.host import machine
from lab.inputs import own_consumer, scale, workload
from lab.inputs.clients import Demand
from lab.inputs.own_consumer import RUNGS
from lab.inputs.workload import Workload
from lab.kafka import login

MARKS = {HELD: "✔", BREACHED: "✘", NO_DATA: "?", NOTE: "·"}


def add_flags(parser: Flags) -> None:
    """Add the flags of the command."""
    parser.flag("workload", Path, None, "the Workload file with the command of your consumer", "a file")
    text = "samples of your own messages, a line of JSON each; the lab's events of 256 bytes without it"
    parser.flag("messages", Path, None, text, optional=True)
    text = "Kafka takes your consumer as it is: as on kind; on the binary runtime it asks for the login in $KAFKA_SETTINGS"
    parser.add_argument("--no-login", action="store_true", help=text)


def run(options: Namespace) -> int:
    """Rehearse and print. Returns 0 where the rung that the file names is fulfilled, 1 where it is not."""
    read = yamlfile.document(options.workload)
    chosen = workload.parse(read).workload
    if chosen.topics > 1:
        raise InputError(read.where, "topics", chosen.topics, "1: the check has one topic, and a trial has them all")
    consumer = started_by(chosen, options.workload)
    samples = traffic.load(options.messages) if options.messages else ()
    print(f"{options.workload}: {shlex.join(consumer.command)}", flush=True)
    begun = time.monotonic()
    seen = rehearse(consumer, samples, {} if options.no_login else login.new(), Patience.of(chosen))
    found = findings(seen)
    for rung in RUNGS:
        print(f"\n{rung}")
        for one in found:
            if one.rung == rung:
                print(f"  {MARKS[one.verdict]} {one.what}: {one.verdict}: {one.text}")
    if seen.demand:
        print(f"\n{cost(seen.demand, os.cpu_count() or 1, machine.total_bytes())}")
    best = fulfilled(found)
    enough = best in RUNGS and RUNGS.index(best) >= RUNGS.index(chosen.rung)
    print(f"\nit fulfils: {best or 'no rung'}; its file says rung: {chosen.rung} ({time.monotonic() - begun:.0f} s)")
    return FULFILLED if enough else NOT_FULFILLED


def cost(demand: Demand, cores: int, memory: int) -> str:
    """What a pod of it takes, and how many of them a machine carries, in words."""
    start, work, held = demand.start_cpu_s, demand.at_work * 1000, demand.at_most / MIB
    takes = f"a pod takes {start:.1f} s of CPU until it has joined, and then {work:.0f} millicores and {held:,.0f} MiB here"
    return f"{takes}; as far as that goes {capacity(demand, cores, memory)}"


def started_by(chosen: Workload, where: object) -> Consumer:
    """How the consumer of a workload is started on this machine. Raises :class:`InputError` where it can't be."""
    given = chosen.environment(scale.load(scale.REAL))
    if not chosen.own:
        return Consumer((sys.executable, "-m", "lab.programs.consumer"), given | {"METRICS_PORT": "0"})
    return Consumer(own_consumer.program(chosen.command, where), given | own_consumer.variables(chosen.env))


def rehearse(consumer: Consumer, samples: tuple[Pair, ...], asked: Mapping[str, str], patience: Patience) -> Seen:
    """Rehearse the consumer on a broker of its own, which takes the login ``asked``. Raises :class:`LabFault`."""
    from lab.cluster import broker
    from lab.host import processes, runs

    started, folder, guard = runs.start(lambda run: broker.start(run, asked))
    try:
        return Rehearsal(folder, started.bootstrap, "check", consumer, patience, samples, asked).run()
    finally:
        processes.clear(folder)
        processes.dismiss(guard)
