"""Runs a trial, or the two sides of a duet, on a cluster and leaves a record each; nothing here judges."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from confluent_kafka import KafkaException
from pyspark.sql import SparkSession

from lab import clock, paths
from lab.cluster import Cluster
from lab.foresee.estimate import check_pods, log_bytes
from lab.host import machine, resources
from lab.inputs.faults import NETWORK
from lab.inputs.inputs import Inputs
from lab.model.baseline import baseline
from lab.record import rescue, store
from lab.record.store import Record
from lab.record.trial import RUNNING, Duet, Trial, Turn
from lab.trial import closing, disruptions
from lab.trial.closing import Closing
from lab.trial.deadlines import deadlines
from lab.trial.phases import drive
from lab.trial.record_parts import parts
from lab.trial.stage import Journal, Stage, offsets
from lab.wait import reporting

log = logging.getLogger("lab.trial")

QUIET_S = 30  # until no watch writes any more
CLOSE_S = 180  # the pods of a record that was interrupted while it was closed are still to go


@dataclass
class Side:
    """A trial, or one side of a duet: its record's ``folder``, what is known of it, and how it ``ended``.

    ``stage`` is None until it is put up. ``missing`` has the reason for each part that its record lacks.
    """

    folder: Path
    journal: Journal
    stage: Stage | None = None
    ended: str = RUNNING
    missing: dict[str, str] = field(default_factory=dict)

    @property
    def trial(self) -> Trial:
        """What is known by now, as trial.json has it."""
        gaps = tuple(self.stage.transitions.gaps) if self.stage else ()
        return replace(self.journal.trial, watch_gaps=gaps, ended=self.ended, missing=dict(self.missing))

    def write(self) -> None:
        """Write what is known."""
        self.trial.write(self.folder)

    def seal(self) -> None:
        """Write what is known of the trial at its end, with the checksums of its record's files."""
        moved_s = round(clock.PROCESS.moved_s(), 3)
        replace(self.trial, finished=clock.now(), clock_moved_s=moved_s).sealed(self.folder).write(self.folder)
        rescue.release(self.folder)


def execute(
    sides: Sequence[Inputs], cluster: Callable[[], Cluster], spark: Callable[[], SparkSession], results: Path, turn: Turn
) -> list[Record]:
    """Run the trial, or the sides of a duet, into ``results``. A disk that is too full starts no cluster, nor do more pods of a
    client than this machine carries."""
    check_pods(sides, os.cpu_count() or 1, machine.total_bytes())
    each = max(log_bytes(side) * (side.brokers.replication if side.brokers else 1) for side in sides)
    resources.check_disk(sum(side.profile.total for side in sides), paths.state_dir(), results, each)
    return run(cluster(), sides, results, spark, turn)


def run(
    cluster: Cluster, inputs: Sequence[Inputs], results: Path, spark: Callable[[], SparkSession], turn: Turn | None = None
) -> list[Record]:
    """Execute a trial, or the two sides of a duet, the first of which is put up first, and return the records.

    They are on disk even when this raises. ``turn`` is the trial's in its session. ``spark`` is asked for a session only once
    the last message is processed: a JVM at work on the trial's own cores would be in the measurement.
    """
    sides = _begin(cluster, inputs, results, turn)
    names = " and ".join(one.id for one in inputs)
    with contextlib.ExitStack() as own:  # brokers of the trial's own end when its record is closed
        try:
            wanted = inputs[0].brokers
            brokers = cluster.brokers(wanted.count) if wanted else None
            if brokers is not None:
                own.enter_context(closing.deferred(brokers.close))
            for side in sides:
                side.stage = Stage(cluster, side.journal, side.folder, sides[0].stage, brokers)
            stages = [side.stage for side in sides if side.stage]
            if any(one.kind in NETWORK for one in inputs[0].faults):  # a duet has none
                own.enter_context(closing.deferred(disruptions.network(stages[0]).close))
            with reporting(partial(_progress, sides), every_s=5):
                ended = drive(stages)
        except BaseException as error:
            why = "interrupted" if isinstance(error, KeyboardInterrupt) else f"fault: {closing.reason(error)}"
            log.warning("%s: %s; its record is closed with what there is (Ctrl-C gives that up)", names, why)
            with closing.logged():
                _close(sides, [why] * len(sides), spark)
            raise
        _close(sides, ended, spark)
    return [Record(side.folder) for side in sides]


def _begin(cluster: Cluster, inputs: Sequence[Inputs], results: Path, turn: Turn | None) -> list[Side]:
    """Begin the records: folders with a trial.json each, which names this process as their writer."""
    here = machine.describe()  # takes a second: an interruption in it leaves no folder without a trial.json
    versions = {name: version for one in inputs for name, version in cluster.provide(one.workload).items()}
    folders = store.begin(results, [one.id for one in inputs])
    sides = []
    for one, folder, other in zip(inputs, folders, reversed(folders), strict=True):
        trial = Trial(
            id=one.id,
            inputs=one,
            baseline=baseline(one.policy, one.partitions, one.workload.topics),
            scale=str(one.scale),
            versions={**cluster.versions, **machine.packages(), **versions},
            machine=here,
            begun=clock.now(),
            deadlines=deadlines(one),
            faults_from=one.faults_from,
            policy_times=one.policy_times,
            policy_lags=one.policy_lags,
            turn=turn,
            duet=Duet(other.name, folder is folders[0]) if one.side else None,
        )
        sides.append(Side(folder, Journal(trial)))
        sides[-1].write()
        rescue.claim(folder)
    return sides


def _progress(sides: Sequence[Side]) -> str:
    """The live line. What is known so far is written too: a session that is killed has no other chance."""
    stages = [(side, side.stage) for side in sides if side.stage]
    for side, stage in stages:
        try:
            replace(side.trial, offsets=offsets(stage.lag.read())).write(side.folder)
        except (OSError, KafkaException) as error:
            log.debug("%s: its progress can't be written: %s", side.folder.name, error)
    return "  |  ".join(stage.line() for _, stage in stages)


def _close(sides: Sequence[Side], ended: Sequence[str], spark: Callable[[], SparkSession]) -> None:
    """Leave each record with what can be had of it, sealed; then take down what the trial put up, the lead of a duet last."""
    with contextlib.ExitStack() as takedown:
        records = []
        for side, how in zip(sides, ended, strict=True):
            side.ended = how
            if side.stage is None:
                continue  # what could not be put up has nothing to close
            takedown.enter_context(closing.deferred(partial(closing.bounded, side.stage.close, CLOSE_S)))
            if "ended" not in side.journal.trial.times:
                side.journal.mark("ended")
            records.append(Closing(side.folder, parts(side.stage, spark, side.missing), side.missing, side.write))
        with closing.deferred(partial(_seal, sides)):
            closing.close(*records)


def _seal(sides: Sequence[Side]) -> None:
    """Seal the records. Their watches end before that: the checksum of a file that grows would be that of a part."""
    for side in sides:
        if side.stage is not None:
            with closing.logged():
                closing.bounded(side.stage.quiet, QUIET_S)
    for side in sides:
        side.seal()
