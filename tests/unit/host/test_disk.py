"""Disk space: named in one line before a trial begins, not found missing an hour later."""

from types import SimpleNamespace

import pytest

from lab import paths
from lab.errors import LabFault
from lab.host import resources
from lab.spec import profile
from lab.spec import scale as scales


def test_what_a_trial_needs_follows_from_its_events():
    """step-10x at full scale is gigabytes, at quick scale hundreds of megabytes."""
    traffic = profile.load(paths.PROFILES / "step-10x.yaml")
    sizes = {}
    for name in ("quick", "full"):
        scale = scales.load(name)
        sizes[name] = sum(resources.needed_bytes(traffic.compressed(scale.time, scale.rate).total))
    assert 200e6 < sizes["quick"] < 500e6
    assert sizes["full"] > 5e9


def test_too_little_is_one_line_with_both_numbers(tmp_path, monkeypatch):
    """Folders on one file system share what is free; an event more than fits is too much."""
    log, results = tmp_path / "log", tmp_path / "results"
    log.mkdir()
    results.mkdir()
    events = 1_000_000
    enough = sum(resources.needed_bytes(events))
    monkeypatch.setattr("lab.host.resources.shutil.disk_usage", lambda _: SimpleNamespace(free=enough))
    resources.check_disk(events, log, results)
    resources.check_disk(events, log, log)
    with pytest.raises(LabFault) as fault:
        resources.check_disk(events + 1, log, results)
    line = (
        f"disk: {log} and {results}: {enough + 311:,} bytes are needed, {enough:,} are free; this trial sends 1,000,001 events"
    )
    assert str(fault.value) == line
