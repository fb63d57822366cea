"""``elastic-lab estimate``: it prints what a trial needs, before it runs, and refuses one that this machine can't carry."""

from __future__ import annotations

import os
import shutil
import sys
from argparse import Namespace
from dataclasses import asdict
from pathlib import Path

from lab import paths, project
from lab.commands.text import as_json, table
from lab.errors import BAD_INPUT, HELD
from lab.flags import NAME, SEED, Flags
from lab.foresee.estimate import Estimate, carried, check_pods, estimate, shortage, starting
from lab.foresee.usage import MIB, SPARE
from lab.host.machine import available_bytes
from lab.inputs import inputs
from lab.inputs import scale as scales
from lab.inputs import workload as workloads
from lab.inputs.clients import DEMANDS
from lab.inputs.inputs import Inputs
from lab.inputs.manifests import COMMITTED
from lab.inputs.workload import PARTITIONS, Workload
from lab.number_format import duration
from lab.trial.user_files import UserFiles

GB = 1e9


def add_flags(parser: Flags) -> None:
    """Add the flags of the command."""
    parser.flag("scaledobject", str, "lag", "the policy: a YAML file, or the name of a committed one")
    parser.flag("name", str, "", "the ScaledObject of this name, or NAMESPACE/NAME, where several are in the file")
    parser.flag("profile", str, "step-10x", "the traffic: a YAML file, or the name of one in profiles/")
    parser.flag("workload", Path, None, "what pods do (kind: Workload); the default workload without it", optional=True)
    text = "a name in profiles/scales.yaml; by default what a session would take: the most compressed that keeps times and lags"
    parser.flag("scale", str, None, text, optional=True)
    parser.flag("seed", SEED, 1, "decides the keys, and so each partition's share")
    parser.flag("results", Path, Path("results"), "where the record would go")
    parser.add_argument("--json", action="store_true", help="print JSON in place of a table")


def run(options: Namespace) -> int:
    """Print the estimate. Returns the exit code: a trial that does not fit is bad input, and a line says why."""
    workload, partitions = workloads.load(options.workload) if options.workload else (Workload(), PARTITIONS)
    asked = (options.scaledobject, options.profile)
    policy, profile = (Path(text) if Path(text).suffix in project.FILES else text for text in asked)
    traffic = profile if isinstance(profile, Path) else COMMITTED.profile(profile)
    theirs = UserFiles(policy if isinstance(policy, Path) else None, traffic, options.workload, options.name)
    scale = scales.load(options.scale) if options.scale else theirs.scale()
    given = inputs.read(profile, policy, workload, options.seed, scale, "binary", partitions=partitions, named=options.name)
    needed = estimate(given)
    cores, memory = os.cpu_count() or 1, available_bytes()
    disk = {f"of {folder}": shutil.disk_usage(folder).free for folder in (_there(paths.state_dir()), _there(options.results))}
    print(as_json(asdict(needed)) if options.json else _text(given, needed, cores, memory, min(disk.values())))
    if line := shortage(needed, cores, memory, disk):
        print(f"{NAME}: {given.id} does not fit this machine: {line}", file=sys.stderr)
        return BAD_INPUT
    check_pods([given], cores, memory)
    return HELD


def _there(folder: Path) -> Path:
    """``folder``, or the nearest above it that exists."""
    return next(one for one in (folder.absolute(), *folder.absolute().parents) if one.is_dir())


def _text(given: Inputs, needed: Estimate, cores: int, memory: int, disk: int) -> str:
    lag = "not simulated" if needed.peak_lag is None else f"{needed.peak_lag:,.0f} messages"
    client = given.workload.client
    most = carried(DEMANDS[client], cores, memory)
    drain = "no data" if needed.drain_s is None else duration(needed.drain_s)
    rows = [
        ("", "needed", "there is"),
        ("events", f"{needed.events:,}", ""),
        ("peak backlog, simulated", lag, ""),
        ("drain, simulated", drain, ""),
        ("wall clock with the ledger", duration(needed.wall_s), ""),
        ("disk", f"{needed.disk_bytes / GB:.1f} GB", f"{disk / GB:.1f} GB"),
        ("  topics, kept until the ledger is settled", f"{needed.log_bytes / GB:.1f} GB", ""),
        ("  record", f"{needed.record_bytes / GB:.1f} GB", ""),
        ("  the ledger meanwhile", f"{needed.scratch_bytes / GB:.1f} GB", ""),
        ("memory", f"{needed.memory_bytes / MIB:,.0f} MiB", f"{memory / MIB:,.0f} MiB"),
        (f"cores at {needed.peak_rate:,.0f} events/s", f"{needed.cores:.2f}", f"{cores}"),
        (f"pods at work, client {client}", f"{given.policy.max_replicas}", f"{most.at_work}"),
        ("pods that start together", f"{starting(given)}", f"{most.together}"),
    ]
    lines = [f"{given.id} at scale {given.scale}", "", table(rows, numbers=[1, 2])]
    if SPARE * cores < needed.cores <= cores:
        lines += ["", f"more than {SPARE:g} of the cores: what is measured may be the queue for them"]
    return "\n".join(lines)
