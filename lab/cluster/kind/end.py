"""``python -m lab.cluster.kind.end RUN``: takes down the cluster that the run folder RUN stands for."""

from __future__ import annotations

import sys
from pathlib import Path

from lab.cluster.kind import network, state
from lab.errors import LabFault


def main() -> int:
    """Delete cluster, rules and network; returns 1 with the reason printed when Docker refuses."""
    run = Path(sys.argv[1])
    found = state.read(run)
    if found is None:
        return 0
    try:
        state.kind(run, "delete", "cluster", "--name", found.name, "--kubeconfig", str(run / "kubeconfig"))
        network.release(found.closed)
    except LabFault as fault:
        print(f"lab: {fault}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
