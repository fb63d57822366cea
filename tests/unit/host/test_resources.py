"""A lock makes a second session wait, and a disk that is too small is refused before a trial begins."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from lab.components import build
from lab.errors import LabFault
from lab.host import resources
from lab.wait import until


def test_a_build_under_way_is_waited_for_with_a_line(tmp_path, monkeypatch, caplog):
    """One line: what the other session does, and the file; who takes it at once says nothing. The build is then found."""
    caplog.set_level("INFO", logger="lab")
    monkeypatch.setenv("ELASTIC_LAB_CACHE", str(tmp_path))
    file = tmp_path / "components.lock"
    monkeypatch.setattr(build, "built", lambda components: build.Built(tmp_path, {}))
    found = []
    other = threading.Thread(target=lambda: found.append(build.ensure()))
    with resources.hold_lock(file, "the test"):
        assert not caplog.messages
        other.start()
        until(lambda: caplog.messages, 30, "the line of the one who waits")
        other.join(0.3)
        assert not found
    other.join(30)
    assert found
    assert caplog.messages == [f"waiting for another session: it builds components (it holds {file})"]


def test_a_lock_that_can_not_be_made_is_one_line(tmp_path):
    """Its folder is not one."""
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(LabFault, match=r"the lock .*/file/lock can't be taken: "),
        resources.hold_lock(tmp_path / "file" / "lock", "x"),
    ):
        pass


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
    line = f"disk: {log} and {results}: {enough + 311:,} bytes are needed, {enough:,} are free"
    assert str(fault.value) == f"{line}; this trial sends 1,000,001 events"
