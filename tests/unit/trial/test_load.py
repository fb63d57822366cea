"""What a trial shows while it runs: a table of its load that only grows, or why there is none; the rates of its live line."""

import os
import threading

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import LabFault
from lab.host.load import Process, Reading
from lab.kafka.lag import PartitionLag
from lab.trial import load
from lab.trial.load import Sampler
from lab.trial.pace import WINDOW_S, Pace


def sampled(own, count, processes, into):
    """The number of readings, when a sampler has taken ``count`` of a machine whose numbers grow by 1 s, and has written.

    ``processes`` gives those that are there at a reading, by its number.
    """
    seen, taken = threading.Event(), []

    def read():
        taken.append(1)
        n = len(taken)
        if n == count:
            seen.set()
        return Reading(n, n / 10, {"cpu": n / 4, "io": 0.0}, processes(n))

    sampler = Sampler(own=own, every_s=0.001, read=read)
    assert seen.wait(10)
    sampler.write(into)
    return len(taken)


@pytest.mark.parametrize(("own", "ours", "theirs"), [((), 0.5, 9), ((7,), 9.5, 0), (None, None, None)])
def test_the_table(own, ours, theirs, tmp_path):
    """Only what descends from this process, or from the nodes of a cluster in containers, is the trial's own.

    Where the own processes can't be seen, both are missing, as is an absent pressure.
    """
    sampled(own, 3, lambda n: {(os.getpid(), 1): Process(0, n / 2, 0), (7, 7): Process(0, 9 * n, 0)}, tmp_path)
    table = pd.read_parquet(tmp_path / load.FILE)
    grown = table.iloc[-1] - table.iloc[0]
    assert list(table.columns) == load.COLUMNS
    assert grown["busy_s"] == len(table) - 1
    assert grown["cpu_waiting_s"] == pytest.approx(grown["busy_s"] / 4)
    assert table["memory_waiting_s"].isna().all()
    for column, share in (("own_s", ours), ("others_s", theirs)):
        assert table[column].isna().all() if share is None else grown[column] == pytest.approx(grown["busy_s"] * share)


@pytest.mark.parametrize("error", [OSError("no /proc"), LookupError("no /proc")])
def test_a_load_that_cannot_be_read_is_named(error, tmp_path):
    """The part of the record is missing, with this reason; no error ends the sampler in silence."""

    def read():
        raise error

    with pytest.raises(LabFault, match="the load of the machine can't be read: no /proc"):
        Sampler(own=(), read=read).write(tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_memory_and_cpu_of_the_trials_own_processes_are_kept_by_what_they_are(tmp_path, monkeypatch):
    """Two pods of one program are one row; a process that is not the trial's is in none."""
    monkeypatch.setattr("lab.host.load.command", lambda pid: {8: ["kube-apiserver"]}.get(pid, ["python", "-m", "lab.x"]))

    def processes(n):
        own = {(os.getpid(), 1): Process(0, 1, 0, 100), (7, 1): Process(os.getpid(), 1, 0, 10 * n)}
        return own | {(8, 1): Process(os.getpid(), 1, 0, 5), (9, 9): Process(1, 1, 0, 10**9)}

    taken = sampled((), 12, processes, tmp_path)
    table = pd.read_parquet(tmp_path / load.MEMORY_FILE)
    assert list(table.columns) == load.MEMORY
    first = table[table["t"] == table["t"].min()].set_index("process")
    assert first[["count", "rss_bytes", "cpu_s"]].to_dict("index") == {
        "kube-apiserver": {"count": 1, "rss_bytes": 5, "cpu_s": 1},
        "lab.x": {"count": 2, "rss_bytes": 110, "cpu_s": 2},
    }
    assert len(table) < taken


def test_a_drain_says_when_it_ends() -> None:
    """1,000/s arrive and 3,000/s are committed: 600,000 messages take 5 minutes, which the line says."""
    pace = Pace()
    pace.read(0, [PartitionLag(700_000, 90_000)])
    rates = pace.read(5, [PartitionLag(705_000, 105_000)])
    assert (rates.lag, rates.arriving, rates.committed, rates.left_s) == (600_000, 1000, 3000, 300)
    assert str(rates) == "lag 600,000, in 1,000/s, out 3,000/s, drained in 5 min 00 s"


def test_a_lag_that_grows_has_no_end() -> None:
    """No time is said, neither then nor of the first reading, which has no rate."""
    pace = Pace()
    assert pace.read(0, [PartitionLag(100, None)]).left_s is None
    assert str(pace.read(10, [PartitionLag(300, 100)])) == "lag 200, in 20/s, out 10/s"


@pytest.mark.parametrize(("committed", "left_s"), [(1_005, None), (1_050, None), (1_060, 2.0)])
def test_the_lag_of_a_group_at_rest_has_no_end(committed: int, left_s: float | None) -> None:
    """1,000/s arrive, and what is committed goes up and down by some per cent."""
    pace = Pace()
    pace.read(0, [PartitionLag(1_180, 1_000)])
    rates = pace.read(1, [PartitionLag(2_180, 1_000 + committed)])
    assert rates.left_s == (None if left_s is None else pytest.approx(left_s))


@given(st.lists(st.floats(0.1, 20), min_size=3, max_size=100))
def test_only_the_last_half_minute_counts(steps: list[float]) -> None:
    """A rate that changed long ago is forgotten, and no more readings are kept than the window has."""
    pace, now, end = Pace(), 0.0, 0.0
    pace.read(0, [PartitionLag(0, 0)])
    for step in steps:
        now, end = now + step, end + 10_000 * step
        rates = pace.read(now, [PartitionLag(round(end), round(end))])
    assert rates.arriving == pytest.approx(10_000, rel=0.01)
    assert len(pace._readings) <= WINDOW_S / min(steps) + 2
