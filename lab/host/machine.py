"""The machine and the software that made a record."""

from __future__ import annotations

import logging
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from statistics import median

from lab import paths
from lab.errors import LabFault
from lab.host.speed import measure_speed

log = logging.getLogger("lab")

_PACKAGES = ("confluent-kafka", "pyspark", "kubernetes", "prometheus-api-client", "pytest", "allure-pytest", "altair")


@dataclass(frozen=True)
class Machine:
    """A machine; ``load`` is its load average over 1, 5 and 15 minutes at one moment.

    ``speed`` is what :func:`lab.host.speed.measure_speed` returned then, events/s; None where it was not measured.
    """

    cpu: str
    cores: int
    memory_gib: float
    kernel: str
    load: tuple[float, float, float]
    speed: float | None = None


def describe() -> Machine:
    """This machine at this moment."""
    import psutil  # an extra: who reads a record needs no more of this module than its type

    models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return Machine(
        cpu=models[0].split(":", 1)[1].strip() if models else platform.processor(),
        cores=os.cpu_count() or 1,
        memory_gib=round(psutil.virtual_memory().total / 2**30, 1),
        kernel=platform.release(),
        load=os.getloadavg(),
        speed=_speed(),
    )


def _speed() -> float | None:
    try:
        return round(measure_speed())
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        log.warning("the machine's speed is not known: %s", error)
        return None


def name_machines(machines: Iterable[Machine]) -> str:
    """Each different machine in words, with its speed where that is known."""
    found: dict[str, list[Machine]] = {}
    for one in machines:
        found.setdefault(f"{one.cores} cores, {one.cpu}", []).append(one)
    speeds = {name: speed_in_words(same) for name, same in found.items()}
    return "; ".join(f"{name}, speed {speed}" if speed else name for name, speed in speeds.items())


def median_speed(machines: Iterable[Machine]) -> float | None:
    """The median of the machines' speeds, events/s; None where none is known."""
    speeds = [one.speed for one in machines if one.speed is not None]
    return median(speeds) if speeds else None


def speed_in_words(machines: Sequence[Machine]) -> str:
    """The median of the machines' speeds with the least and the most; "" where none is known."""
    middle = median_speed(machines)
    if middle is None:
        return ""
    speeds = [one.speed for one in machines if one.speed is not None]
    least, most = (f"{speed / 1000:.0f}" for speed in (min(speeds), max(speeds)))
    return f"{middle / 1000:.0f}{'' if least == most else f' ({least} to {most})'} thousand events/s"


def check_system() -> None:
    """Raise :class:`LabFault` where no trial can run: the lab tells its processes from others by Linux's /proc."""
    if sys.platform != "linux":
        raise LabFault(f"a trial needs Linux, and this is {sys.platform}: simulate, tune, threshold and judge work here too")


def check_speed(least: float) -> None:
    """Raise :class:`LabFault` where this machine does less than ``least`` events/s in the best of three attempts.

    A slow machine moves what a trial measures: a pod that starts takes the cores of those at work. A speed that can't be
    measured is no reason.
    """
    if not least:
        return
    best = 0.0
    for _ in range(3):
        speed = _speed()
        if speed is None or speed >= least:
            return
        best = max(best, speed)
    now, needed = f"{best / 1000:.0f}", f"{least / 1000:.0f} thousand events/s"
    raise LabFault(f"this machine is too slow now: {now} of the {needed} that the acceptance needs (docs/options.md)")


def available_bytes() -> int:
    """The memory that can be had without swapping, bytes. Raises :class:`LabFault` where the system is not Linux."""
    return _memory("MemAvailable:")


def total_bytes() -> int:
    """All memory, bytes. Raises :class:`LabFault` where the system is not Linux."""
    return _memory("MemTotal:")


def _memory(name: str) -> int:
    check_system()
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def packages() -> dict[str, str]:
    """The versions of Python and of the libraries that matter to a number, and the commit if there is one."""
    versions = {"python": platform.python_version(), **{name: metadata.version(name) for name in _PACKAGES}}
    if paths.INSTALLED:  # in a wheel, a commit that git finds is of whatever repository the environment lies in
        return versions | {"commit": f"elastic-lab {metadata.version('elastic-lab')}"}
    command = ["git", "describe", "--always", "--dirty"]
    asked = subprocess.run(command, cwd=paths.PROJECT, capture_output=True, text=True, check=False)
    return versions | {"commit": asked.stdout.strip() or "unknown"}
