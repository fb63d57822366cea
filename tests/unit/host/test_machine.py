"""The machine: where no trial can run, it is said before anything starts."""

import contextlib

import pytest

from lab.errors import LabFault
from lab.host import machine, runs


@pytest.mark.parametrize("wanting", [machine.available_bytes, runs.open_run, runs.sweep], ids=lambda one: one.__name__)
def test_a_system_other_than_linux_is_one_line(monkeypatch, tmp_path, wanting):
    """It says what works there too, and nothing is left behind."""
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setenv("ELASTIC_LAB_CACHE", str(tmp_path))
    with pytest.raises(
        LabFault, match="a trial needs Linux, and this is darwin: simulate, tune, threshold and judge work here"
    ):
        wanting()
    assert not [file for file in tmp_path.rglob("*") if file.is_file()]


@pytest.mark.parametrize(
    ("speeds", "too_slow"),
    [([99, 98, 97], "0 of the 0 thousand"), ([99, 98, 100], ""), ([None], ""), ([150], "")],
    ids=["slow", "fast at last", "unknown", "fast"],
)
def test_a_slow_machine_is_one_line(monkeypatch, speeds, too_slow):
    """The best of three attempts counts, because a neighbour may take a moment; what is not known is no reason."""
    measured = iter(speeds)
    monkeypatch.setattr(machine, "_speed", lambda: next(measured))
    with pytest.raises(LabFault, match=too_slow) if too_slow else contextlib.nullcontext():
        machine.check_speed(100)
    machine.check_speed(0)  # asks nothing
    assert not list(measured)
