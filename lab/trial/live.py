"""Trials on a running cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from lab import paths
from lab.cluster import Cluster
from lab.foresee.estimate import log_bytes
from lab.host import resources
from lab.inputs.inputs import Inputs
from lab.record.store import Record
from lab.record.trial import Turn
from lab.trial import runner


def execute(
    sides: Sequence[Inputs], cluster: Callable[[], Cluster], spark: Callable[[], SparkSession], results: Path, turn: Turn
) -> list[Record]:
    """Run the trial, or the two sides of a duet, and leave the records under ``results``.

    ``cluster`` is called after the disk has been checked: a disk that is too full starts no cluster.
    """
    each = max(log_bytes(side) * (side.brokers.replication if side.brokers else 1) for side in sides)
    resources.check_disk(sum(side.profile.total for side in sides), paths.state_dir(), results, each)
    return runner.run(cluster(), sides, results, spark, turn)
