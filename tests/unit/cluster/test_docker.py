"""Docker, asked: what can't be had is said in one line, before anything is left behind."""

import shutil

import pytest

from lab.cluster import docker, kind
from lab.cluster.images import catalog, make
from lab.errors import LabFault
from lab.inputs.scale import Scale

QUICK = Scale("quick", 30, 1)


@pytest.mark.skipif(shutil.which("docker") is None, reason="needs the docker command to be told that no daemon answers")
def test_no_daemon_is_one_clear_line(monkeypatch, tmp_path):
    """The command is there, the daemon is not; nothing is begun."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    monkeypatch.setenv("ELASTIC_LAB_CACHE", str(tmp_path / "cache"))
    with pytest.raises(LabFault, match=r"^docker version: no Docker daemon answers: docs/kind\.md says how to start one$"):
        kind.up(QUICK)
    assert not (tmp_path / "cache").exists()


def test_no_docker_is_one_clear_line(monkeypatch, tmp_path):
    """There is no command at all: the other runtime is named."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LabFault, match="no docker command on PATH: install Docker, or use --cluster binary"):
        kind.up(QUICK)


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        ("Got permission denied while trying to connect to the Docker daemon socket at unix:///x", "member of group docker"),
        ("write /x/layer.tar: no space left on device", "no space left where Docker keeps its images"),
        ("OCI runtime exec failed: unable to apply caps: operation not permitted", "docs/kind.md has the cure"),
        ("line one\nERROR: failed to create: port is taken\n\nStack Trace:\nmore", "failed to create: port is taken"),
        ("", "it printed no reason"),
    ],
)
def test_what_docker_prints_becomes_one_line(printed, said):
    """The known causes with their cure, the rest by the line that tells it."""
    assert said in docker.reason(printed)
    assert "\n" not in docker.reason(printed)


@pytest.mark.parametrize(("user", "said"), [(1000, "needs root"), (0, "no mmdebstrap command on PATH: apt install mmdebstrap")])
def test_images_need_root_and_mmdebstrap(monkeypatch, tmp_path, user, said):
    """Said before anything is built."""
    monkeypatch.setattr("lab.cluster.images.make.os.geteuid", lambda: user)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LabFault, match=f"elastic-lab images: {said}"):
        make.ensure(())


def test_the_pods_packages_are_for_the_images_python_and_this_machine():
    """Whatever Python the environment has: wheels of the image's, no newer than the environment's, of one architecture."""
    asked = make.wheels({"numpy": "2.9.0"}, "aarch64")
    assert f"--python-version={catalog.PODS_PYTHON}" in asked
    assert asked[-1] == "numpy<=2.9.0"
    assert {option.rpartition("_")[2] for option in asked if option.startswith("--platform=")} == {"aarch64"}
    assert catalog.version(catalog.PYTHON).startswith(f"{catalog.PODS_PYTHON}-slim-{make.RELEASE}")
