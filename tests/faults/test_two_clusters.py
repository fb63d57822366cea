"""Two sessions of one user: their clusters share nothing, and one ends in order while the other stands."""

import contextlib
from pathlib import Path

import psutil
import pytest

from lab.host import processes, runs
from tests.faults.sessions import Session, gone, networks, ports_of, sockets
from tests.suite import PROGRAM_S

pytestmark = [pytest.mark.services, pytest.mark.nightly]


def test_two_clusters_stand_side_by_side_and_one_goes(cluster, tmp_path):
    """They share no port and no pod network, and a sweep ends neither. After down there is no process, no port, no folder.

    The other session's register is this one's, as for two sessions of one user.
    """
    with contextlib.closing(Session("up", tmp_path)) as session:
        run = Path(session.says("^up "))
        mine, other = processes.remembered(cluster.run), processes.remembered(run)
        assert min(len(mine), len(other)) >= 11
        ports = ports_of(other)
        assert not ports_of(mine) & ports
        held = [{networks().get(inode) for one in found for inode in sockets(one.pid)} - {None} for found in (mine, other)]
        assert [len(one) for one in held] == [1, 1]
        assert held[0] != held[1]
        runs.sweep()
        assert run.exists()
        assert (processes.remembered(cluster.run), processes.remembered(run)) == (mine, other)
        session.process.communicate(timeout=PROGRAM_S)
        assert session.process.returncode == 0
    assert not run.exists()
    assert gone(other)
    assert not ports & {item.laddr.port for item in psutil.net_connections("tcp") if item.status == "LISTEN"}
    cluster.check()
