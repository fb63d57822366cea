"""Trials on a running cluster."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from lab import paths
from lab.cluster import Cluster
from lab.host import resources
from lab.record.store import Record
from lab.spec.inputs import Inputs
from lab.trial import runner


def execute(chosen: Inputs, cluster: Callable[[], Cluster], spark: Callable[[], SparkSession], results: Path) -> Record:
    """Run the trial and leave its record under ``results``.

    ``cluster`` is called after the disk has been checked: a disk that is too full starts no cluster.
    """
    resources.check_disk(chosen.profile.total, paths.state_dir(), results)
    return runner.run(cluster(), chosen, results, spark)
