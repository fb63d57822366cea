"""What a killed session leaves is closed later, and judged up to then; what another session writes is left alone."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lab.errors import InputError, LabFault, NoData
from lab.host import identity
from lab.record import rescue, trial
from lab.record.ledger import CHECKPOINT, INGESTED, LEDGER, VERDICT
from lab.record.rescue import OWNER, claim, rescue_all
from lab.record.seal import FILE
from lab.record.store import STAGING, opened
from lab.record.trial import Offsets
from tests.unit.measure import whole
from tests.unit.record.conftest import batches, messages

COUNT = 40


def no_spark() -> SparkSession:
    """Nothing here is to be settled."""
    raise AssertionError("Spark was asked for")


def running(folder: Path) -> Path:
    """A record that this process writes: its trial was driven from 20 s on, and is known until 31.5 s."""
    folder.mkdir(parents=True)
    times, lag = {"settling": 11.0, "driving": 20.0}, {0: Offsets(30, 25)}
    whole.trial(whole.inputs(), begun=10.0, ended="running", times=times, offsets=lag, finished=None).write(folder)
    claim(folder)
    event = {"t": 30.0, "kind": "Pod", "name": "a", "event": "ADDED", "object": {"metadata": {"name": "a"}}}
    (folder / "transitions.jsonl").write_text(json.dumps(event) + '\n{"t": 32.0, "kind": "Po')
    reports = [{"t": at, "mono": at, "pod": "a", "event": "started"} for at in (31.5, 12.0)]
    (folder / "group_events.jsonl").write_text("".join(json.dumps(one) + "\n" for one in reports))
    return folder


def die(folder: Path) -> None:
    """Let the session be one that has ended: its pid is another's now."""
    own = identity.identify(os.getpid())
    assert own
    (folder / OWNER).write_text(json.dumps(asdict(replace(own, ticks=own.ticks - 1))))


def test_a_killed_sessions_record_is_closed_up_to_then(tmp_path: Path) -> None:
    """A line that was cut short is left out; what can't be had is named; the end is the last moment that is known."""
    folder = running(tmp_path / "records" / "x")
    with pytest.raises(InputError, match="never closed"):
        opened(folder)
    die(folder)
    rescue_all(tmp_path, no_spark)
    record = opened(folder)
    assert record.trial.ended == "killed: the record knows the trial until 1970-01-01 00:00:31 UTC"
    assert not record.finished
    assert (record.driven, record.end) == (20.0, 31.5)
    assert record.phase_lengths == [("settling", 9.0), ("driving", 11.5), ("closing the record", 0.0)]
    assert record.offsets == {0: Offsets(30, 25)}
    assert (len(record.transitions), record.group_events["t"].tolist()) == (1, [12.0, 31.5])
    assert set(record.trial.missing) == {"load", "samples", "hpa.log", LEDGER}
    with pytest.raises(NoData, match=r"no reconciliation.json: its session was killed, and the topic is gone with its broker"):
        _ = record.reconciliation
    assert sorted(path.name for path in folder.iterdir()) == ["group_events.parquet", "transitions.parquet", "trial.json"]


def test_a_report_without_a_time_tells_no_end(tmp_path: Path) -> None:
    """A consumer of a user's own need not say when."""
    folder = running(tmp_path / "x")
    with (folder / "group_events.jsonl").open("a") as lines:
        lines.write('{"t": null, "pod": "a", "event": "assigned"}\n')
    die(folder)
    rescue_all(folder, no_spark)
    assert opened(folder).end == 31.5


def test_a_rescue_that_is_cut_short_is_carried_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger had come to its place, and trial.json did not have it yet."""
    folder = running(tmp_path / "x")
    staging = folder / STAGING / LEDGER
    (staging / LEDGER).mkdir(parents=True)
    for name in (VERDICT, f"{LEDGER}/0.parquet"):
        (staging / name).touch()
    die(folder)

    def interrupt(_: Path) -> dict[str, str]:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(rescue, "checksums", interrupt)
        with pytest.raises(KeyboardInterrupt):
            rescue_all(folder, no_spark)
    rescue_all(folder, no_spark)
    assert VERDICT in (opened(folder).trial.files or {})
    assert not (folder / STAGING).exists()


def test_a_session_that_lives_is_left_alone(tmp_path: Path) -> None:
    """Its record is not touched, nor is one of which no session is known."""
    folder = running(tmp_path / "x")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    rescue_all(folder, no_spark)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    rescue.release(folder)
    rescue_all(folder, no_spark)
    with pytest.raises(InputError, match="never closed"):
        opened(folder)


def staged(folder: Path) -> Path:
    """A ledger of which all is ingested: two files of events that count and one that doesn't, and the receipts of all."""
    ledger = folder / STAGING / LEDGER / LEDGER
    for name in ("events", "receipts", CHECKPOINT):
        (ledger / name).mkdir(parents=True)
    events = messages(COUNT)
    for number, part in enumerate((events[:30], events[30:], events[30:])):
        part.to_parquet(ledger / "events" / f"{number}.parquet")
    batches(COUNT, 10).to_parquet(ledger / "receipts" / "0.parquet")
    files = {"events": ["0.parquet", "1.parquet"], "receipts": ["0.parquet"]}
    (ledger / INGESTED).write_text(json.dumps(files))
    return ledger


def test_a_ledger_that_was_ingested_is_settled_without_a_broker(
    spark: Callable[[], SparkSession], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the session was killed before the verdict or while the ledger was moved to its place, and wherever it lies."""
    folder = running(tmp_path / "before")
    staged(folder)
    replace(trial.read(folder), ended="complete").write(folder)
    die(folder)
    folder = folder.rename(tmp_path / "after")
    with monkeypatch.context() as patch:
        patch.setattr("lab.record.ledger.settle.check", lambda *_: (_ for _ in ()).throw(LabFault("no memory")))
        with pytest.raises(LabFault, match="no memory"):
            rescue_all(folder, spark)
    assert opened(folder).trial.missing[LEDGER] == "its session was killed"
    rescue_all(folder, spark)
    record = opened(folder)
    assert record.reconciliation.exact
    assert (record.reconciliation.produced, record.reconciliation.processed) == (COUNT, COUNT)
    assert (record.trial.ended, set(record.trial.missing)) == ("complete", {"load", "samples", "hpa.log"})
    assert sorted(path.name for path in (folder / LEDGER / "events").iterdir()) == ["0.parquet", "1.parquet"]
    assert not (folder / STAGING).exists()

    staging = folder / STAGING / LEDGER
    staging.mkdir(parents=True)
    for name in (LEDGER, VERDICT):
        (folder / name).rename(staging / name)
    files = record.trial.files or {}
    left = {name: value for name, value in files.items() if name != VERDICT and not name.startswith(LEDGER)}
    replace(record.trial, files=left, missing={LEDGER: "x"}).write(folder)
    rescue_all(folder, no_spark)
    again = opened(folder).trial
    assert ((again.files or {}) | {FILE: ""}, again.missing) == (files | {FILE: ""}, {})


def test_a_ledger_of_a_part_of_the_events_is_none(tmp_path: Path) -> None:
    """How many were read is said; what is left of them is removed."""
    folder = running(tmp_path / "x")
    (staged(folder) / INGESTED).unlink()
    (folder / "transitions.jsonl").write_text('{"t": 3')
    die(folder)
    rescue_all(folder, no_spark)
    record = opened(folder)
    assert record.transitions.empty
    why = record.trial.missing[LEDGER]
    assert why == "its session was killed when 50 events were read from it, and the topic is gone with its broker"
    assert not (folder / STAGING).exists()
