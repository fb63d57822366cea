"""The Docker daemon, through its command: what exists, what is made, and in one line why something can't be made."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lab.errors import LabFault
from lab.host.command import run_command

LONGEST_S = 3600.0  # of one command: it may make an image
HOW = "docs/kind.md says how to start one"
_REASONS = (
    ("permission denied", "no permission to use the Docker daemon: run as root or as a member of group docker"),
    ("no space left on device", "no space left where Docker keeps its images: docker system df shows what takes it"),
    ("Cannot connect to the Docker daemon", f"no Docker daemon answers: {HOW}"),
    ("error during connect", f"no Docker daemon answers: {HOW}"),
    ("failed to connect to the docker API", f"no Docker daemon answers: {HOW}"),
    ("unable to apply caps", "the machine lacks a capability that --privileged asks for: docs/kind.md has the cure"),
)


def check() -> None:
    """Raise :class:`LabFault` in one line when there is no Docker to work with."""
    if shutil.which("docker") is None:
        raise LabFault("no docker command on PATH: install Docker, or use --cluster binary, which needs none")
    run("version", "--format", "{{.Server.Version}}")


def run(*arguments: str, feed: str | None = None, env: Mapping[str, str] | None = None) -> str:
    """Run ``docker`` with ``arguments``; returns what it prints. Raises :class:`LabFault` with the reason in one line."""
    environment = {**os.environ, **(env or {})}
    result = run_command(["docker", *arguments], LONGEST_S, f"docker {arguments[0]}", feed=feed, env=environment)
    if result.returncode != 0:
        raise LabFault(f"docker {arguments[0]}: {reason(result.stderr)}")
    return result.stdout


def reason(printed: str) -> str:
    """The one line that matters in a failed command's output."""
    for sign, said in _REASONS:
        if sign in printed:
            return said
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    named = [line for line in lines if line.startswith("ERROR:")]  # kind's own; a stack trace follows it
    telling = [line for line in lines if "rror" in line]
    return (named or telling or lines or ["it printed no reason"])[-1][:400]


def images(names: Iterable[str]) -> dict[str, int]:
    """The size in bytes of each of ``names`` that the daemon has."""
    sizes = {name: _inspect("image", "--format", "{{.Size}}", name) for name in names}
    return {name: int(size) for name, size in sizes.items() if size}


def label(image: str, name: str) -> str:
    """The value of an image's label; empty when there is no such label or no such image."""
    return _inspect("image", "--format", f'{{{{index .Config.Labels "{name}"}}}}', image).strip()


def add(archive: Path, image: str, changes: Sequence[str]) -> None:
    """Make ``image`` with one layer from a root file system's tar; ``changes`` are Dockerfile lines."""
    options = [option for change in changes for option in ("--change", change)]
    run("import", *options, str(archive), image)


def build(context: Path, image: str, arguments: Mapping[str, str], labels: Mapping[str, str]) -> None:
    """Build ``context``'s Dockerfile as ``image``, without a network."""
    options = [word for name, value in arguments.items() for word in ("--build-arg", f"{name}={value}")]
    options += [word for name, value in labels.items() for word in ("--label", f"{name}={value}")]
    # The builder that every daemon has: the newer one is a plug-in of the client that may be missing.
    run("build", "--network", "none", *options, "--tag", image, str(context), env={"DOCKER_BUILDKIT": "0"})


def inspect(container: str) -> dict[str, Any] | None:
    """The daemon's data about a container; None when there is none of that name."""
    told = _inspect("container", container)
    found: dict[str, Any] | None = json.loads(told)[0] if told else None
    return found


def _inspect(kind: str, *arguments: str) -> str:
    """What the daemon knows of something; empty where it has nothing of that name."""
    try:
        return run(kind, "inspect", *arguments)
    except LabFault as fault:
        if "No such" not in str(fault):
            raise
        return ""
