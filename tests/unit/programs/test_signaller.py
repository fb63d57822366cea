"""The first process of a container is found among all those of its pod, and no other is signalled."""

import pytest

from lab.programs.signaller import first_process

OURS, PAUSE = "4:cpu:/\n", "4:cpu:/../pause\n"


@pytest.fixture
def proc(tmp_path):
    """Writes processes as the kernel shows them: number, command, parent and cgroup."""

    def write(*rows):
        (tmp_path / "self").mkdir()
        for pid, command, parent, cgroup in rows:
            folder = tmp_path / str(pid)
            folder.mkdir()
            (folder / "stat").write_text(f"{pid} ({command}) S {parent} {pid} {pid} 0 -1")
            (folder / "cgroup").write_text(cgroup)
        return tmp_path

    return write


def test_the_first_process_is_neither_the_pods_nor_a_child_nor_the_signaller(proc):
    """The pod's pause process has another cgroup; a child has a parent; a command may hold any signs; one has just ended."""
    found = proc((1, "pause", 0, PAUSE), (7, "py (x) 0 0", 0, OURS), (9, "child", 7, OURS), (20, "python", 0, OURS))
    (found / "8").mkdir()
    assert first_process(20, found) == 7


@pytest.mark.parametrize("others", [[], [(7, "one", 0, OURS), (8, "two", 0, OURS)]])
def test_none_and_two_are_refused(proc, others):
    """A signal to a guess would be one to another process."""
    found = proc(*others, (20, "python", 0, OURS))
    with pytest.raises(LookupError, match=f"one first process is expected in this container, there are {len(others)}"):
        first_process(20, found)
