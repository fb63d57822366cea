"""The consumer's programs in other languages: franz-go's from a pinned Go module, Java's from sources here and pinned jars.

A Java that has no compiler beside it compiles with Eclipse's, which is a jar. What starts each is in one folder, which stands
for their image.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from shlex import quote

from lab import paths
from lab.components import build, jars
from lab.errors import LabFault
from lab.host import resources
from lab.host.command import run_command
from lab.inputs.clients import FRANZ_GO, JAVA, PYTHON, program

SOURCES = Path(__file__).parent / "java"
KAFKA_CLIENTS = "4.4.0"
JARS = (f"org.apache.kafka:kafka-clients:{KAFKA_CLIENTS}", "org.slf4j:slf4j-simple:1.7.36")
COMPILE_S = 300.0  # 3 s on a quiet machine
COMPILER = ("org.eclipse.jdt:ecj:3.43.0",)
_RELEASE = "17"
# SerialGC and C1 start fastest and leave the cores to the trial; a pod of the lab may take 256 MiB.
JVM = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
MAIN = "lab.Program"


def folder() -> Path:
    """The folder of the programs for the current pins, which is there from the first call on; a program may be missing."""
    made = paths.cache_dir() / "clients" / key()
    made.mkdir(parents=True, exist_ok=True)
    return made


def ensure(client: str) -> dict[str, str]:
    """Build the program of ``client`` if it is missing; returns the version of the library, by its name.

    Raises :class:`LabFault` like :func:`build.ensure` and :func:`jars.resolve`, and for sources that don't compile.
    """
    return _MADE[client]()


def key() -> str:
    """Hash of everything that decides the programs: pins, sources and flags."""
    digest = hashlib.sha256(repr((build.key(build.FRANZ_GO), JARS, JVM)).encode())
    for file in sorted(SOURCES.glob("*.java")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _nothing() -> dict[str, str]:
    return {}


def _franz_go() -> dict[str, str]:
    built = build.built(build.FRANZ_GO) or build.ensure(build.FRANZ_GO)  # who has it need not wait for another build
    _start(FRANZ_GO, [built.binary(program(FRANZ_GO))])
    return {FRANZ_GO: built.versions[program(FRANZ_GO)]}


def in_java() -> tuple[Path, list[Path]]:
    """The folder of the classes of the program in Java, and the jars that it needs; both are made if they are missing."""
    libraries, classes = jars.resolve("kafka-clients", JARS), folder() / "java"
    if not classes.exists():
        _compile(libraries, classes)
    return classes, libraries


def _java() -> dict[str, str]:
    classes, libraries = in_java()
    _start(JAVA, [jars.java(), *JVM, "-cp", os.pathsep.join(map(str, (classes, *libraries))), MAIN])
    return {f"{JAVA}-kafka-clients": KAFKA_CLIENTS}


def _compile(libraries: Sequence[Path], classes: Path) -> None:
    """Compile the sources into the folder ``classes``, whole or not at all."""
    with resources.hold_lock(paths.cache_dir() / "components.lock", "it builds components"):
        if classes.exists():
            return
        partial = classes.with_suffix(".partial")
        command = [*_compiler(), "-d", partial, "-cp", os.pathsep.join(map(str, libraries)), *SOURCES.glob("*.java")]
        compiled = run_command(command, COMPILE_S, "compiling the consumer in Java")
        if compiled.returncode != 0:
            raise LabFault(f"compiling the consumer in Java: {(compiled.stderr or compiled.stdout).strip().splitlines()[:1]}")
        partial.rename(classes)


def _compiler() -> list[str]:
    """The command that compiles: that of the Java in use, or Eclipse's in it."""
    java = jars.java()
    own = Path(java).resolve().with_name("javac")
    if own.exists():
        return [str(own), "--release", _RELEASE, "-proc:none"]
    return [java, "-jar", str(jars.resolve("ecj", COMPILER)[0]), f"-{_RELEASE}", "-proc:none"]


def script(command: Sequence[object]) -> str:
    """The text of a program that is ``command``, with what else it is given."""
    return f'#!/bin/sh\nexec {" ".join(quote(str(word)) for word in command)} "$@"\n'


def _start(client: str, command: Sequence[object]) -> None:
    """Write what starts the program of ``client`` in a pod, whose PATH has no Java."""
    file, text = folder() / program(client), script(command)
    if file.exists() and file.read_text() == text:
        return
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    partial.write_text(text)
    partial.chmod(0o755)
    partial.replace(file)


_MADE: Mapping[str, Callable[[], dict[str, str]]] = {PYTHON: _nothing, FRANZ_GO: _franz_go, JAVA: _java}
