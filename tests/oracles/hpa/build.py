"""Builds the oracle's program once, into the user's cache, keyed on everything that goes into it."""

from __future__ import annotations

import hashlib
import logging
import shutil
import tempfile
import time
from pathlib import Path

from filelock import FileLock

from lab import paths
from lab.components import build

log = logging.getLogger("lab.oracle")

DRIVER = Path(__file__).parent / "driver_test.go"
PACKAGE = Path("pkg", "controller", "podautoscaler")
FILES = ("horizontal.go", "replica_calculator.go", "rate_limiters.go")
MODULE_FILES = ("go.mod", "go.sum")


def ensure() -> Path:
    """The finished program, built first if need be (20 s once Kubernetes itself is built, minutes before that).

    Raises :class:`lab.errors.LabFault` when there is no Go to build with or a module can't be fetched.
    """
    with FileLock(paths.cache_dir() / "hpa-oracle.lock"):
        program = paths.cache_dir() / "hpa-oracle" / key()
        if not program.exists():
            program.parent.mkdir(exist_ok=True)
            _build(program)
        return program


def key() -> str:
    """Hash of the pins, the driver and the flags; the pins decide what the copied files say."""
    digest = hashlib.sha256(repr((FILES, build.BUILD, build.KUBERNETES)).encode())
    for file in (*(build.MODULES / "kubernetes" / name for name in MODULE_FILES), DRIVER):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _build(program: Path) -> None:
    begun = time.monotonic()
    go = build.go_command()
    original = build.source("k8s.io/kubernetes", "kubernetes") / PACKAGE
    with tempfile.TemporaryDirectory(dir=program.parent) as folder:
        scratch = Path(folder)
        for name in MODULE_FILES:
            shutil.copyfile(build.MODULES / "kubernetes" / name, scratch / name)
        package = scratch / "podautoscaler"
        package.mkdir()
        for name in FILES:
            shutil.copyfile(original / name, package / name)
        shutil.copyfile(DRIVER, package / DRIVER.name)
        built = scratch / "oracle"
        # -ldflags as for the lab's binaries: a program without symbols links faster.
        command = [go, "test", "-c", "-vet=off", *build.BUILD, "-ldflags=-s -w", "-o", str(built), "./podautoscaler"]
        build.run_go(command, scratch, "the HPA oracle")
        built.rename(program)
    log.info("built the HPA oracle in %.0f s", time.monotonic() - begun)
