"""Programs in other languages are built once, with what the machine has."""

import subprocess

import pytest

from lab.components import clients, jars
from lab.inputs.clients import JAVA, program

pytestmark = pytest.mark.services


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
