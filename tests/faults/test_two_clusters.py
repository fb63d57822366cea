"""Two sessions of one user: their clusters share nothing, and one ends in order while the other stands."""

from pathlib import Path

import psutil
import pytest

from lab.host import processes, runs
from tests.faults.sessions import Session, gone, networks, ports_of, sockets
from tests.suite import PROGRAM_S

pytestmark = pytest.mark.services


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """Another session with a cluster of its own, in a process of its own; yields it and its run folder.

    Its register is this session's, as for two sessions of one user.
    """
    other = Session("up", tmp_path_factory.mktemp("session"))
    yield other.process, Path(other.says("^up "))
    other.close()


def test_two_clusters_stand_side_by_side(cluster, session):
    """A second session's cluster shares no port and no pod network with the first, and both answer."""
    _, run = session
    mine, other = processes.remembered(cluster.run), processes.remembered(run)
    assert len(mine) >= 11
    assert len(other) >= 11
    assert not ports_of(mine) & ports_of(other)
    held = [{networks().get(inode) for process in found for inode in sockets(process.pid)} - {None} for found in (mine, other)]
    assert [len(one) for one in held] == [1, 1]
    assert held[0] != held[1]
    runs.sweep()
    assert run.exists()
    assert len(processes.remembered(cluster.run)) == len(mine)
    assert len(processes.remembered(run)) == len(other)
    cluster.check()


def test_an_orderly_down_leaves_nothing(session):
    """After down there is no process, no listening port and no folder."""
    process, run = session
    found = processes.remembered(run)
    ports = ports_of(found)
    process.communicate(timeout=PROGRAM_S)
    assert process.returncode == 0
    assert not run.exists()
    assert gone(found)
    assert not ports & {item.laddr.port for item in psutil.net_connections("tcp") if item.status == "LISTEN"}
