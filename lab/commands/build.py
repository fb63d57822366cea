"""``elastic-lab build``: the components of a cluster, made here or taken from a file."""

from __future__ import annotations

import logging
import sys
from argparse import Namespace
from pathlib import Path

from lab.cluster import binary
from lab.components import bundle, clients
from lab.flags import Flags
from lab.inputs.clients import CLIENTS


def add_flags(parser: Flags) -> None:
    """Add the flags of the command."""
    where = "ready-made components, with #sha256=... behind it (default: what the lab pins for this platform, if it does)"
    parser.add_argument("--from", dest="origin", metavar="URL|FILE", help=where)
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--export", type=Path, metavar="FILE", help="build, then write everything into one file")
    way.add_argument("--import", dest="bundle", type=Path, metavar="FILE", help="take everything from such a file")


def run(options: Namespace) -> int:
    """Take or build the missing components; write a bundle of them if it is asked for. Returns the exit code."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    if options.bundle is not None:
        taken = bundle.read(options.bundle)
        print(f"{options.bundle}: {', '.join(map(str, taken)) or 'nothing that was not there already'}")
        return 0
    print(binary.prepare(options.origin).folder)
    for client in CLIENTS:
        clients.ensure(client)
    print(clients.folder())
    if options.export is not None:
        print(f"{options.export}: {bundle.write(options.export) / 2**20:,.0f} MiB")
    return 0
