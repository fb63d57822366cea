"""The machine: where no trial can run, it is said before anything starts."""

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
