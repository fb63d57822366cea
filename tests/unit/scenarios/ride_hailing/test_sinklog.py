"""The log of Spark's file sink as files written by hand: what a reader takes of it, and what is swept."""

import json
import os

from tests.scenarios.ride_hailing.programs import sinklog
from tests.scenarios.ride_hailing.programs.sinklog import SinkLog, sweep

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
