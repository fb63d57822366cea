"""Docker, asked: what can't be had is said in one line, before anything is left behind."""

import shutil
import tarfile

import pytest

from lab.cluster import docker, kind
from lab.cluster.images import catalog, clients, make
from lab.components import build
from lab.errors import LabFault
from lab.inputs.clients import FRANZ_GO, JAVA, program
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


KAFKA = {"apache/kafka:4.3.1": "elastic-lab/kafka:4.3.1", "kindest/node:v1": "elastic-lab/node:v1"}


@pytest.mark.parametrize("client", [FRANZ_GO, JAVA])
def test_an_image_of_a_client_is_named_after_what_it_is_made_of(monkeypatch, client):
    """Another base, or other programs, make another image of the name that the consumer's manifest has."""
    first = clients.recipe(client, KAFKA)
    assert first.image == f"elastic-lab/clients/{client}:{first.made_of[:12]}"
    assert clients.recipe(client, KAFKA).made_of == first.made_of
    others = [clients.recipe(client, {"apache/kafka:4.3.1": "apache/kafka:4.3.1"})]
    monkeypatch.setattr("lab.components.clients.key", lambda: "another")
    others.append(clients.recipe(client, KAFKA))
    assert first.made_of not in [one.made_of for one in others]


def test_the_image_in_java_has_what_its_dockerfile_copies_and_its_manifest_starts(monkeypatch, tmp_path):
    """The classes, the jars, and a program that may be run, upon the Kafka image of the cluster."""
    (tmp_path / "java").mkdir()
    (tmp_path / "java" / "Program.class").touch()
    (tmp_path / "kafka-clients.jar").touch()
    monkeypatch.setattr("lab.components.clients.in_java", lambda: (tmp_path / "java", [tmp_path / "kafka-clients.jar"]))
    built = []
    monkeypatch.setattr("lab.cluster.docker.build", lambda *given: built.append(given))
    recipe = clients.recipe(JAVA, KAFKA)
    recipe.make(recipe.image, tmp_path, recipe.made_of)
    ((context, image, arguments, labels),) = built
    assert (image, arguments, labels) == (recipe.image, {"BASE": KAFKA["apache/kafka:4.3.1"]}, {make.LABEL: recipe.made_of})
    lines = [line.split() for line in (context / "Dockerfile").read_text().splitlines()]
    copied = [words[1] for words in lines if words[0] == "COPY"]
    assert copied
    assert all((context / one).exists() for one in copied)
    start = context / program(JAVA)
    assert start.stat().st_mode & 0o111 == 0o111
    assert "-cp '/opt/elastic-lab/classes:/opt/elastic-lab/libs/*' lab.Program \"$@\"" in start.read_text()
    assert (context / "libs" / "kafka-clients.jar").exists()


def test_the_image_on_franz_go_is_its_binary_on_the_path(monkeypatch, tmp_path):
    """Its manifest's command is the program's bare name."""
    (tmp_path / program(FRANZ_GO)).write_text("#!")
    monkeypatch.setattr("lab.components.build.ensure", lambda wanted: build.Built(tmp_path, {}))
    added = []
    monkeypatch.setattr("lab.cluster.docker.add", lambda archive, image, changes: added.append((archive, image, changes)))
    recipe = clients.recipe(FRANZ_GO, KAFKA)
    recipe.make(recipe.image, tmp_path, recipe.made_of)
    ((archive, image, changes),) = added
    assert image == recipe.image
    assert "ENV PATH=/usr/bin" in changes
    with tarfile.open(archive) as root:
        assert f"./usr/bin/{program(FRANZ_GO)}" in root.getnames()
