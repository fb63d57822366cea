"""The lock between sessions: a wait for it is never silent."""

import threading

import pytest

from lab.components import build
from lab.errors import LabFault
from lab.host import resources


def test_who_waits_says_so_once(tmp_path, caplog):
    """One line: what the other session does, and the file; who takes it at once says nothing."""
    caplog.set_level("INFO", logger="lab")
    file, done = tmp_path / "lock", threading.Event()

    def wait():
        with resources.hold_lock(file, "it builds components"):
            done.set()

    other = threading.Thread(target=wait)
    with resources.hold_lock(file, "it builds components"):
        assert not caplog.messages
        other.start()
        assert not done.wait(0.3)
    other.join(10)
    assert done.is_set()
    assert caplog.messages == [f"waiting for another session: it builds components (it holds {file})"]


def test_a_build_under_way_is_waited_for_with_a_line(tmp_path, monkeypatch, caplog):
    """The second session finds the first one's build finished."""
    caplog.set_level("INFO", logger="lab")
    monkeypatch.setenv("ELASTIC_LAB_CACHE", str(tmp_path))
    file = tmp_path / "components.lock"
    monkeypatch.setattr(build, "built", lambda components: build.Built(tmp_path, {}))
    found = []
    other = threading.Thread(target=lambda: found.append(build.ensure()))
    with resources.hold_lock(file, "the test"):
        other.start()
        other.join(0.3)
        assert not found
    other.join(10)
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
