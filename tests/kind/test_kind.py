"""A kind cluster keeps to itself: its packets stay on the machine, other clusters are not touched, a crash leaves nothing."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import allure
import pytest

from lab.cluster import docker, kind
from lab.cluster.images import catalog
from lab.cluster.kind import network, state
from lab.errors import LabFault
from lab.host import runs
from lab.inputs import scale as scales
from lab.wait import until

pytestmark = [pytest.mark.kind, allure.epic("Runtimes"), allure.feature("kind")]

OTHER = "elastic-lab-other"
ELSEWHERE = "198.51.100.1"  # of a range kept for documents: no machine has it
SEND = f"""
import socket, sys
sender = socket.socket()
sender.settimeout(2)
sys.exit(sender.connect_ex(("{ELSEWHERE}", 9)))
"""
SESSION = f"""
import sys
from lab.inputs import scale
from lab.cluster import kind
kind.up(scale.load("quick"), name="{OTHER}")
"""


@pytest.fixture
def closed(kind_cluster):
    """The session's cluster, where its images were made here and no packet may leave."""
    if not kind_cluster.state.closed:
        pytest.skip("images were pulled: the cluster may ask a registry")
    return kind_cluster


def test_a_packet_to_another_place_is_turned_back_at_once(closed):
    """A container of the network is told so by an error, not a time-out; the packet is counted, and none left."""
    before = network.packets()
    python = closed.state.images[catalog.PYTHON]
    begun = time.monotonic()
    told = subprocess.run(
        ["docker", "run", "--rm", "--network", network.NAME, python, "python", "-c", SEND], capture_output=True, check=False
    )
    after = network.packets()
    assert os.strerror(told.returncode) in ("No route to host", "Connection refused", "Network is unreachable"), told.stderr
    assert after.rejected > before.rejected
    assert after.escaped == 0
    assert time.monotonic() - begun < 10


def test_without_its_rules_the_network_is_not_taken_for_closed(closed):
    """When the rule is gone that is a fault, never a count of 0."""
    network.open_again()
    try:
        with pytest.raises(LabFault, match="the rule that keeps elastic-lab's packets on the machine is gone from DOCKER-USER"):
            network.packets()
    finally:
        network.close()
    assert network.packets().escaped == 0


def test_a_cluster_of_that_name_that_is_not_ours_is_left_alone(kind_cluster):
    """The name is refused in one line, and the container goes on."""
    python = kind_cluster.state.images[catalog.PYTHON]
    name = f"{OTHER}-control-plane"
    docker.run("run", "--detach", "--rm", "--network", "none", "--name", name, python, "sh", "-c", "while :; do read x; done")
    try:
        with pytest.raises(LabFault, match=f"--cluster-name: '{OTHER}' is not allowed; allowed: a free name"):
            kind.up(scale_of(kind_cluster), name=OTHER)
    finally:
        docker.run("rm", "--force", name)


def scale_of(kind_cluster):
    """The scale the session's cluster was made for."""
    return next(one for one in map(scales.load, ("quick", "standard", "real")) if str(one) == kind_cluster.state.scale)


def test_a_cluster_in_use_or_of_another_scale_is_not_taken(kind_cluster):
    """Another session is told whose it is. The HPA's flags are the cluster's: another scale would measure the wrong ones."""
    with pytest.raises(LabFault, match=f"is in use by the session with pid {os.getpid()}"):
        kind.up(scale_of(kind_cluster), name=kind_cluster.state.name)
    with pytest.raises(LabFault, match=r"is of scale .*; elastic-lab down deletes it"):
        kind.up(replace(scale_of(kind_cluster), name="slower", time=2), name=kind_cluster.state.name)


def test_an_image_that_can_not_be_had_is_named(kind_cluster, monkeypatch):
    """No registry answers: the image and the way out are named, and nothing is begun."""
    monkeypatch.setattr("lab.cluster.kind.make.current", lambda wanted: None)
    monkeypatch.setattr(state, "infrastructure", lambda: [pod_of("localhost:1/none:1.0")])
    before = runs.all_runs()
    with pytest.raises(LabFault, match=r"image localhost:1/none:1\.0 is not here and can't be pulled .* elastic-lab images"):
        kind.up(scale_of(kind_cluster), name=OTHER)
    assert runs.all_runs() == before


def pod_of(image):
    """A Deployment of one container."""
    spec = {"template": {"spec": {"containers": [{"name": "one", "image": image}]}}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "one"}, "spec": spec}


def test_a_session_that_is_killed_leaves_no_cluster(kind_cluster):
    """SIGKILL while the second cluster comes up: its guard deletes it, and the first one goes on."""
    session = subprocess.Popen([sys.executable, "-c", SESSION], stderr=subprocess.DEVNULL)
    found: list[Path] = []

    def created():
        assert session.poll() is None
        found[:] = [run for run in runs.all_runs() if (it := state.read(run)) and it.name == OTHER and it.node]
        return bool(found)

    try:
        until(created, 120, "the second cluster's node")
    finally:
        session.send_signal(signal.SIGKILL)
        session.wait()
    (run,) = found
    until(lambda: not run.exists(), 60, "the guard cleared the run")
    assert docker.inspect(f"{OTHER}-control-plane") is None
    kind_cluster.check()
    if kind_cluster.state.closed:
        assert network.packets().escaped == 0
