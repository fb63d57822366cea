"""The sampler of a trial's load: it leaves a table that only grows, and says why when it can't."""

import os
import threading

import pandas as pd
import pytest

from lab.errors import LabFault
from lab.host.load import Process, Reading
from lab.trial import load
from lab.trial.load import Sampler


def readings(count, seen):
    """A function that reads a machine whose numbers grow by 1 s, and sets ``seen`` at the reading of that ``count``."""
    taken = []

    def read():
        taken.append(1)
        n = float(len(taken))
        if len(taken) == count:
            seen.set()
        processes = {(os.getpid(), 1): Process(0, n / 2, 0), (7, 7): Process(0, 9 * n, 0)}
        return Reading(n, n / 10, {"cpu": n / 4, "io": 0.0}, processes)

    return read


@pytest.mark.parametrize("own", [True, False])
def test_the_table(own, tmp_path):
    """Only what descends from this process is the trial's own; without that it is missing, as is an absent pressure."""
    seen = threading.Event()
    sampler = Sampler(own=own, every_s=0.001, read=readings(3, seen))
    assert seen.wait(10)
    sampler.write(tmp_path)
    table = pd.read_parquet(tmp_path / load.FILE)
    grown = table.iloc[-1] - table.iloc[0]
    assert list(table.columns) == load.COLUMNS
    assert grown["busy_s"] == len(table) - 1
    assert grown["cpu_waiting_s"] == pytest.approx(grown["busy_s"] / 4)
    assert table["memory_waiting_s"].isna().all()
    assert table["own_s"].isna().all() if not own else grown["own_s"] == pytest.approx(grown["busy_s"] / 2)


def test_a_load_that_cannot_be_read_is_named(tmp_path):
    """The part of the record is missing, with this reason."""

    def read():
        raise OSError("no /proc")

    with pytest.raises(LabFault, match="the load of the machine can't be read: no /proc"):
        Sampler(own=True, read=read).write(tmp_path)
    assert not list(tmp_path.iterdir())
