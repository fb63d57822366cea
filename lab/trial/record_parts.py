"""The parts of a record that are made when its trial is over, in the order in which they are taken."""

from __future__ import annotations

import itertools
import logging
import re
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from lab import clock
from lab.errors import LabFault
from lab.inputs import lag_metric, objects
from lab.inputs.inputs import Inputs
from lab.inputs.own_consumer import OFF, RECEIPTS
from lab.inputs.topics import numbering
from lab.record.ledger import session
from lab.record.ledger.ingest import Topics
from lab.record.ledger.settle import settle
from lab.record.store import LINES, lines_to_parquet
from lab.trial import samples
from lab.trial.closing import Part
from lab.trial.stage import GONE_S, OFFSETS_S, Stage
from lab.wait import reporting

log = logging.getLogger("lab.trial")

HPA_LINE = " horizontal.go:"
REST = "rest"
_NAMESPACE = re.compile(r"\btrial-[a-z0-9-]+")
SHORT_S = 60  # reading a log
LONG_S = 300  # as many events as an hour's trial has


def parts(stage: Stage, spark: Callable[[], SparkSession], missing: dict[str, str]) -> list[Part]:
    """What is made of ``stage``. ``missing`` is what could not be had so far; ``spark`` is asked for a session at the end.

    First what only the running trial tells. Then its pods are taken down ("rest"), so that the ledger sees a store that no one
    writes to; where they can't be, the topics are read in turn, and what they hold still agrees.
    Without receipts, or with the traffic of others, there is no ledger.
    """
    length = stage.inputs.profile.duration
    waiting = GONE_S + stage.inputs.workload.grace_s + SHORT_S
    ledger = Part(
        "ledger",
        lambda into: _ledger(stage, spark, REST not in missing, into),
        stage.deadlines.ledger_s,
        session.cancel,
        resumable=True,
    )
    return [
        Part("load", stage.load.write, SHORT_S),
        Part("offsets", lambda _: stage.read_offsets(), 2 * OFFSETS_S),
        Part("samples", lambda into: _samples(stage, into), SHORT_S + length / 10),
        Part(REST, lambda _: stage.halt(), waiting),
        Part("hpa.log", lambda into: (into / "hpa.log").write_text(_said(stage)), SHORT_S),
        *(Part(name, partial(_table, stage, name), LONG_S, replaces=(f"{name}.jsonl",)) for name in LINES),
        *([ledger] if has_ledger(stage.inputs) else []),
    ]


def has_ledger(inputs: Inputs) -> bool:
    """Whether every message can be accounted for: the consumer writes receipts, and all on the topic is the trial's."""
    return inputs.workload.rung == RECEIPTS and inputs.driver != OFF


def _samples(stage: Stage, into: Path) -> None:
    # Prometheus stamps by the wall clock.
    moved = clock.PROCESS.moved_s()
    start, end = min(stage.journal.trial.times.values()), clock.now()
    span = start + min(0.0, moved), end + max(0.0, moved)
    frames = samples.collect(stage.cluster.prometheus_url, stage.namespace, *span, objects.metrics(stage.inputs))
    samples.write(into / "samples.parquet", frames)


def _said(stage: Stage) -> str:
    """What the HPA controller logged since the trial's HPA was first synced: its errors don't name the namespace."""
    lines = (line for line in stage.cluster.controller_log().splitlines(keepends=True) if HPA_LINE in line)
    since = itertools.dropwhile(lambda line: stage.namespace not in line, lines)
    own = (line for line in since if not lag_metric.concerns(line))
    return "".join(line for line in own if _concerns(line, stage.namespace, f" {stage.inputs.policy.hpa}:"))


def _concerns(line: str, namespace: str, hpa: str) -> bool:
    """Whether ``line`` is about the trial in ``namespace``: it names that, or no trial's and the ``hpa``.

    The HPAs of a duet may have one name, so an error that names no namespace is in the records of both sides.
    """
    named = _NAMESPACE.findall(line)
    return namespace in named or (not named and hpa in line)


def _table(stage: Stage, name: str, into: Path) -> None:
    writer = stage.transitions if name == "transitions" else stage.reports
    if writer.fault:
        raise LabFault(writer.fault)
    lines_to_parquet(stage.folder / f"{name}.jsonl", into / f"{name}.parquet", *LINES[name])


def _ledger(stage: Stage, spark: Callable[[], SparkSession], at_rest: bool, into: Path) -> None:
    begun = time.monotonic()
    with reporting(lambda: "Spark: ledger", every_s=10):
        letters = stage.names["DLQ_TOPIC"] if stage.inputs.workload.dead_letters else None
        topics = Topics(numbering(stage.names), stage.names["RECEIPTS_TOPIC"], letters)
        settle(spark(), stage.bootstrap, topics, into, at_rest, stage.cluster.kafka_settings)
    stage.journal.note(ledger_s=time.monotonic() - begun)
    log.info("%s: ledger settled in %.1f s", stage.inputs.id, stage.journal.trial.ledger_s)
