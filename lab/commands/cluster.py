"""``python -m lab build``, ``images`` and ``down``: make the parts of a cluster, and end clusters."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from lab.cluster import binary, docker
from lab.cluster.images import catalog, make
from lab.cluster.kind import state
from lab.components import bundle
from lab.flags import Flags
from lab.host import runs

PROVES = (
    "A run on these proves the manifests, kubeadm, the kubelet, the HPA and KEDA as compiled here from upstream's pinned "
    "source, on Debian's containerd and runc. It does not prove the images that upstream publishes."
)


def run(command: str, help_text: str, arguments: Sequence[str]) -> int:
    """Run ``command``. Returns the exit code."""
    parser = Flags(f"elastic-lab {command}", help_text, environment=False)
    if command == "build":
        way = parser.add_mutually_exclusive_group()
        way.add_argument("--export", type=Path, metavar="FILE", help="build, then write everything into one file")
        way.add_argument("--import", dest="bundle", type=Path, metavar="FILE", help="take everything from such a file")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    if command == "build":
        _build(options.export, options.bundle)
    elif command == "images":
        print(_images())
    else:
        standing = runs.clusters()
        runs.clear_all()
        print(f"{sum(not run.exists() for run in standing)} clusters ended")
    return 0


def _build(export: Path | None, bundle_file: Path | None) -> None:
    """Build the missing components, or take them from ``bundle_file``. Write the bundle ``export`` if it is given."""
    if bundle_file is not None:
        taken = bundle.read(bundle_file)
        print(f"{bundle_file}: {', '.join(map(str, taken)) or 'nothing that was not there already'}")
        return
    print(binary.prepare().folder)
    if export is not None:
        print(f"{export}: {bundle.write(export) / 2**20:,.0f} MiB")


def _images() -> str:
    """Make the images. Returns their table, and a sentence on what a run with them proves."""
    names = make.ensure(catalog.named(state.infrastructure()))
    made = [*names.values(), make.make_pods(names[catalog.PYTHON])]
    sizes = docker.images(made)
    return "\n".join([*(f"{sizes[image] / 1e6:8,.0f} MB  {image}" for image in made), PROVES])
