"""Runs code of the pinned Go modules on cases: one harness for the real HPA controller, the real KEDA and the real Sarama.

An oracle's Go files are compiled from the module itself, unchanged, into a package that exists only in an overlay. There they
lie beside drivers of this repository, which call what the module doesn't export. An oracle with no files is a driver that calls
what the module exports. Nothing of the module is copied. A driver reads one JSON value a line and answers each with one JSON
value a line.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

from lab import paths
from lab.components import build
from lab.components.toolchain import go_command, run_go
from lab.errors import LabFault

log = logging.getLogger("lab.oracle")

PINS = build.MODULES / "kubernetes"
DEADLINE_S = 300.0


@dataclass(frozen=True)
class Oracle:
    """``files`` in ``folder`` of the Go module ``module``, beside the drivers in ``drivers``, as the package ``name``."""

    name: str
    module: str
    folder: Path
    files: tuple[str, ...]
    drivers: Path

    def ensure(self) -> Path:
        """The finished program in the user's cache, built first if need be: 20 s once Kubernetes is built, minutes before.

        Raises :class:`LabFault` when there is no Go to build with or a module can't be fetched.
        """
        program = paths.cache_dir() / "oracles" / f"{self.name}-{self._key()}"
        program.parent.mkdir(exist_ok=True)
        with FileLock(program.parent / f"{self.name}.lock"):
            if not program.exists():
                self._build(program)
        return program

    def _own(self) -> list[Path]:
        return sorted(self.drivers.glob("*.go"))

    def _key(self) -> str:
        """Hash of everything that decides what is built: pins and checksums, drivers, which files, flags."""
        digest = hashlib.sha256(repr((self.module, str(self.folder), self.files, build.BUILD)).encode())
        for file in (PINS / "go.mod", PINS / "go.sum", *self._own()):
            digest.update(file.read_bytes())
        return digest.hexdigest()[:16]

    def _build(self, program: Path) -> None:
        begun = time.monotonic()
        source = build.source(self.module, "kubernetes") / self.folder
        files = (*(source / name for name in self.files), *self._own())
        partial = program.with_suffix(".partial")
        with tempfile.TemporaryDirectory(prefix=f"{self.name}-oracle-") as folder:
            overlay = Path(folder) / "overlay.json"
            overlay.write_text(json.dumps({"Replace": {str(PINS / self.name / file.name): str(file) for file in files}}))
            # -ldflags as for the lab's binaries: a program without symbols links faster.
            command = [go_command(), "test", "-c", "-vet=off", *build.BUILD, "-ldflags=-s -w", "-overlay", str(overlay)]
            run_go([*command, "-o", str(partial), f"./{self.name}"], PINS, f"the {self.name} oracle")
        partial.rename(program)
        log.info("built the %s oracle in %.0f s", self.name, time.monotonic() - begun)

    @contextlib.contextmanager
    def running(self) -> Iterator[Program]:
        """The program for as long as the context lasts. Raises :class:`LabFault` like :meth:`ensure`."""
        command = [str(self.ensure()), "-test.run=^TestOracle$"]
        with (
            tempfile.TemporaryFile("w+") as errors,
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
        ):
            try:
                yield Program(self.name, process, errors)
            finally:
                process.kill()


class Program:
    """An oracle that runs; :meth:`Oracle.running` starts one."""

    def __init__(self, name: str, process: subprocess.Popen[str], errors: Any) -> None:
        self._name, self._process, self._errors = name, process, errors

    def answers(self, cases: Sequence[object]) -> list[Any]:
        """The answer to each case. Raises :class:`LabFault` when not every case is answered within five minutes."""
        assert self._process.stdout is not None
        late = threading.Timer(DEADLINE_S, self._process.kill)
        writer = threading.Thread(target=self._write, args=(cases,), daemon=True)
        late.start()
        writer.start()
        given: list[Any] = []
        try:
            while len(given) < len(cases):
                line = self._process.stdout.readline()
                if not line.startswith(("{", "[")):
                    raise LabFault(f"the {self._name} oracle stopped at case {len(given)} of {len(cases)}: {self._last(line)}")
                given.append(json.loads(line))
        finally:
            late.cancel()
        writer.join()
        return given

    def _write(self, cases: Sequence[object]) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # it ended: the reader says at which case
            for case in cases:
                self._process.stdin.write(json.dumps(case, separators=(",", ":")) + "\n")
            self._process.stdin.flush()

    def _last(self, line: str) -> str:
        """What the program said at its end."""
        self._process.kill()
        printed, _ = self._process.communicate()
        self._errors.seek(0)
        lines = [one for one in (line + printed + self._errors.read()).splitlines() if one.strip()]
        return next((one for one in lines if "panic" in one or "oracle" in one), lines[-1] if lines else "no output")


# KEDA's own code: brokers, API server and clock are fakes within the program; everything that counts or decides is KEDA's. The
# shapes of cases and answers are in keda/oracle_test.go.
KEDA = Oracle(
    name="kedaoracle",
    module=build.KEDA_MODULE,
    folder=Path("pkg", "scalers"),
    files=(
        "scaler.go",
        "kafka_scaler.go",
        "apache_kafka_scaler.go",
        "prometheus_scaler.go",
        "cron_scaler.go",
        "cpu_memory_scaler.go",
        "external_scaler.go",
    ),
    drivers=Path(__file__).parent / "keda",
)
# Members of consumer groups that use Sarama, the Go client that KEDA itself asks Kafka with. Brokers are real, and each member
# joins, consumes and leaves as a pod of Go does. The shapes of cases and answers are in sarama/group_test.go.
SARAMA = Oracle(
    name="saramaoracle",
    module="github.com/IBM/sarama",
    folder=Path(),
    files=(),
    drivers=Path(__file__).parent / "sarama",
)
