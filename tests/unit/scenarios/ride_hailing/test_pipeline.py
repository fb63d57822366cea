"""The pipeline's own streaming query, by a real Spark, on files in the place of Kafka; its table, and the log of its sink."""

import json
import os

import pandas as pd
import pyarrow.parquet as pq
import pytest

from lab.kafka import event
from tests.scenarios.ride_hailing.programs import dashboard, pipeline, sinklog
from tests.scenarios.ride_hailing.programs.pipeline import Table
from tests.scenarios.ride_hailing.programs.sinklog import SinkLog, sweep
from tests.scenarios.ride_hailing.programs.surge import DRIVER, REQUEST, payload
from tests.unit.scenarios.ride_hailing.streams import PARTITION, Topic, configured

T0 = 1_700_000_000  # s
SOON = {"spark.sql.streaming.fileSink.log.compactInterval": "2", "spark.sql.streaming.minBatchesToRetain": "2"}
STATE = {"numRowsTotal": 5, "memoryUsedBytes": 800, "numRowsDroppedByWatermark": 2}
PROGRESS = {
    "batchId": 7,
    "numInputRows": 12,
    "durationMs": {"triggerExecution": 420},
    "eventTime": {"watermark": "2023-11-14T22:13:20.000Z"},
    "stateOperators": [STATE | {"customMetrics": {"numDroppedDuplicateRows": 3}}],
}


def ride(partition, offset, at, kind=REQUEST, zone=0):
    """An emitted event of ``at`` s after T0."""
    value = event.encode(1, offset, round((T0 + at) * 1e9), payload(kind, zone))
    return event.emitted(value, partition, offset, T0 + at + 0.5)


def run(spark, topic, table, emits=True):
    """The query over all that is in ``topic`` and not yet in ``table``; the summaries of its batches."""
    session = spark()
    with configured(session, pipeline.SETTINGS | SOON):
        query = pipeline.start(topic.read(session), emits, table, availableNow=True)
        assert query.awaitTermination(300)
    return pipeline.progress(query, -1)


@pytest.fixture(scope="module")
def streamed(spark, tmp_path_factory):
    """(the table, the summaries of its batches, the reader's reports): two starts of a driver, with a watermark of 60 s."""
    folder = tmp_path_factory.mktemp("pipeline")
    topic, table = Topic(folder / "topic"), Table(folder / "storage", watermark_s=60)
    topic.add(ride(0, 0, 0), ride(0, 1, 1, DRIVER), ride(1, 0, 100))
    topic.add(ride(1, 0, 100), ride(0, 2, 70), ride(0, 3, 130, DRIVER, 1))  # repeated; 30 s late; new
    topic.add(ride(0, 4, 20), ride(0, 0, 0), ride(1, 1, 140))  # later than the watermark, one of them repeated; new
    batches = run(spark, topic, table)
    topic.add(ride(1, 1, 140), ride(1, 2, 141))  # repeated after the driver has started again; new
    topic.add(ride(1, 3, 400))
    topic.add(ride(1, 4, 401))
    batches += run(spark, topic, table)
    return table, batches, list(dashboard.Reader(table.rows).take())


@pytest.mark.services
def test_each_event_is_in_the_table_once(spark, streamed):
    """Whether it came again before or after the driver's second start; but for the one later than the watermark."""
    table, *_ = streamed
    rows = spark().read.parquet(str(table.rows)).toArrow().to_pandas()
    found = sorted(zip(rows["partition"], rows["offset"], strict=True))
    assert found == [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2), (1, 3), (1, 4)]
    one = rows[(rows["partition"] == 0) & (rows["offset"] == 3)].iloc[0]
    assert (one["seq"], one["kind"], one["zone"], one["at"].timestamp()) == (3, DRIVER, 1, T0 + 130)
    assert one["processed"] - one["at"] == pd.Timedelta(seconds=0.5)


@pytest.mark.services
def test_what_is_dropped_and_kept_is_counted(streamed):
    """Repeated rows, and rows later than the watermark, by batch; a repeated one may be of these.

    A row of the state is dropped when the watermark, 60 s behind the newest event, is 60 s past it. The checkpoint keeps the
    files of the last batches: two here, a hundred by Spark's default. The reader sees each batch as it was committed, past the
    compact log: how far the table has come by partition, how many rows came late, and the newest event.
    """
    table, batches, reports = streamed
    assert [one["input"] for one in batches] == [3, 3, 3, 2, 1, 1]
    assert [one["repeated"] for one in batches] == [0, 1, 0, 1, 0, 0]
    assert [one["beyond_watermark"] for one in batches] == [0, 0, 2, 0, 0, 0]
    assert [one["state_rows"] for one in batches] == [3, 5, 4, 5, 6, 2]
    files = table.files()
    assert files["offsets"] <= 4 < len(batches) == files["log"]
    assert files["rows"] >= len(batches)  # which the retention bounds
    assert files["state"] > 0
    assert [one["rows"] for one in reports] == [3, 2, 1, 1, 1, 1]
    assert [one["late"] for one in reports] == [0, 1, 1, 1, 1, 1]
    last = reports[-1]
    assert last["offsets"] == {"0": 4, "1": 5}
    assert (last["events"], last["seqs"], last["newest"]) == (9, sum(range(4)) + sum(range(5)), T0 + 401)


@pytest.mark.services
def test_past_the_group_an_event_has_the_place_of_its_own_record(spark, tmp_path):
    """And nobody has processed it."""
    topic, table = Topic(tmp_path / "topic"), Table(tmp_path / "storage")
    topic.add(ride(0, 5, 1)[: event.SIZE], ride(0, 6, 2)[: event.SIZE])
    run(spark, topic, table, emits=False)
    rows = pq.read_table(next(table.rows.glob("*.parquet"))).to_pylist()
    places = [(row["partition"], row["offset"], row["seq"], row["processed"]) for row in rows]
    assert places == [(PARTITION, 0, 5, None), (PARTITION, 1, 6, None)]


def test_a_summary_is_of_sparks_progress():
    """The counts of the state's one operator; none where there is no state yet."""
    told = {"batch": 7, "input": 12, "batch_s": 0.42, "watermark": "2023-11-14T22:13:20.000Z"}
    assert pipeline.summary(PROGRESS) == told | {"state_rows": 5, "state_bytes": 800, "beyond_watermark": 2, "repeated": 3}
    assert pipeline.summary(PROGRESS | {"stateOperators": []})["state_rows"] == 0


LATER = 2_000_000_000  # a time that no file of a test has by itself, epoch s


def commit(folder, name, *files, at=LATER):
    """A file ``name`` of the log, with these files of rows."""
    log = SinkLog.folder_of(folder)
    log.mkdir(exist_ok=True)
    rows = [json.dumps({"path": f"file://{folder}/{one}", "action": "add"}) for one in files]
    file = log / name
    file.write_text("\n".join(["v1", *rows]))
    os.utime(file, (at, at))


def taken(log):
    """The batches that were new, with the names of their files."""
    return [(batch, [file.name for file in files]) for batch, files in log.take()]


def test_each_batch_is_taken_once_and_in_order(tmp_path):
    """A compact one adds what is its own; what is after a gap is not taken before it."""
    log = SinkLog(tmp_path)
    commit(tmp_path, ".0.0b1e.tmp", "a")  # Spark writes a batch under another name, and renames it
    commit(tmp_path, "0.crc")
    assert taken(log) == []
    assert sinklog.table(tmp_path) is None
    commit(tmp_path, "0", "a")
    commit(tmp_path, "1")
    assert taken(log) == [(0, ["a"]), (1, [])]
    commit(tmp_path, "2.compact", "a", "b c%20")
    assert taken(log) == [(2, ["b c "])]
    commit(tmp_path, "4", "e")
    assert taken(log) == []
    commit(tmp_path, "3", "d")
    assert taken(log) == [(3, ["d"]), (4, ["e"])]


def test_a_reader_that_comes_late_begins_with_the_compact_log(tmp_path):
    """Spark has deleted the batches before it. The files of all of them are the first batch that it sees."""
    commit(tmp_path, "9.compact", "a", "b")
    commit(tmp_path, "10", "c")
    log = SinkLog(tmp_path)
    assert taken(log) == [(9, ["a", "b"]), (10, ["c"])]
    commit(tmp_path, "19.compact", "b", "c", "d")  # "a" has passed its retention, and the reader was away
    assert taken(log) == [(19, ["d"])]


def test_what_is_not_of_the_table_is_swept(tmp_path):
    """But for what is younger than the last commit: the next batch is being written."""
    for name, at in {"live": 1, "expired": 1, "killed": LATER - 1, "under way": LATER + 1}.items():
        for file in (tmp_path / f"{name}.parquet", tmp_path / f".{name}.parquet.crc"):
            file.touch()
            os.utime(file, (at, at))
    assert sweep(tmp_path) == 0  # no batch is committed, so nothing can be told
    commit(tmp_path, "0", "expired.parquet")
    commit(tmp_path, "9.compact", "live.parquet")
    assert sweep(tmp_path) == 2
    assert sorted(file.name for file in tmp_path.glob("*.parquet")) == ["live.parquet", "under way.parquet"]
    assert sorted(file.name for file in tmp_path.glob(".*.crc")) == [".live.parquet.crc", ".under way.parquet.crc"]
