"""KEDA's own code as an oracle: cases go in as JSON, and what the pinned KEDA makes of them comes out.

The scaler files are compiled from the Go module itself, unchanged, into a package that exists only in an overlay: there they
lie beside the drivers of this folder, which call what KEDA doesn't export. Nothing of KEDA's is copied. Brokers, API server and
clock are fakes within the program; everything that counts or decides is KEDA's.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from filelock import FileLock

from lab import paths
from lab.components import build
from lab.errors import LabFault

_KEDA_FILES = (
    "scaler.go",
    "kafka_scaler.go",
    "apache_kafka_scaler.go",
    "prometheus_scaler.go",
    "cron_scaler.go",
    "cpu_memory_scaler.go",
    "external_scaler.go",
)
_DRIVERS = sorted(Path(__file__).parent.glob("*.go"))
_MODULE = build.MODULES / "kubernetes"
_PACKAGE = "kedaoracle"  # exists only in the overlay
_DEADLINE_S = 300.0


class Oracle:
    """A running oracle; :func:`running` makes one."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def answers(self, cases: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """What KEDA answers to each case; the shapes of both are in ``oracle_test.go``.

        Raises :class:`LabFault` when not every case is answered within five minutes.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        late = threading.Timer(_DEADLINE_S, self._process.kill)
        writer = threading.Thread(target=self._write, args=(cases,), daemon=True)
        late.start()
        writer.start()
        told = []
        try:
            for line in itertools.islice(self._process.stdout, len(cases)):
                if not line.startswith("{"):
                    break
                told.append(json.loads(line))
        finally:
            late.cancel()
        if len(told) < len(cases):
            raise LabFault(f"the oracle of KEDA stopped at case {len(told)} of {len(cases)}")
        writer.join()
        return told

    def _write(self, cases: Sequence[Mapping[str, Any]]) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # it ended: the reader says at which case
            for case in cases:
                self._process.stdin.write(json.dumps(case, separators=(",", ":")) + "\n")
            self._process.stdin.flush()


@contextlib.contextmanager
def running() -> Iterator[Oracle]:
    """An oracle for as long as the context lasts, built first if need be. Raises :class:`LabFault` when it can't be built."""
    with subprocess.Popen(
        [ensure(), "-test.run", "^TestOracle$"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield Oracle(process)
        finally:
            process.kill()


def ensure() -> Path:
    """The oracle's program in the user's cache, built first if need be. Raises :class:`LabFault` when it can't be built."""
    folder = paths.cache_dir() / "keda-oracle"
    program = folder / _key()
    with FileLock(paths.cache_dir() / "keda-oracle.lock"):
        if not program.exists():
            folder.mkdir(exist_ok=True)
            _build(program)
    return program


def _key() -> str:
    """Hash of everything that decides what is built: pins and checksums, the drivers, which files of KEDA's, and flags."""
    digest = hashlib.sha256(repr((_KEDA_FILES, build.BUILD, build.KEDA)).encode())
    for file in (*_DRIVERS, _MODULE / "go.mod", _MODULE / "go.sum"):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _build(program: Path) -> None:
    scalers = build.source(build.KEDA_MODULE, "kubernetes") / "pkg" / "scalers"
    files = (*(scalers / name for name in _KEDA_FILES), *_DRIVERS)
    partial = program.with_suffix(".partial")
    with tempfile.TemporaryDirectory(prefix="keda-oracle-") as name:
        overlay = Path(name) / "overlay.json"
        overlay.write_text(json.dumps({"Replace": {str(_MODULE / _PACKAGE / file.name): str(file) for file in files}}))
        command = [build.go_command(), "test", "-c", "-vet=off", *build.BUILD, "-ldflags", "-s -w", "-overlay", str(overlay)]
        build.run_go([*command, "-o", str(partial), f"./{_PACKAGE}"], _MODULE, "the oracle of KEDA")
    partial.rename(program)
