"""The load of this machine, from /proc, as seconds that only grow: CPU time by what took it, and time waited for a resource.

CPU time counts all cores together. Parsing is pure; :func:`reading` alone opens files.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
TICKS, PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
# A Java program by a part of its command.
JAVA = {"kafka.Kafka": "kafka", "org.apache.spark": "spark", "lab.Program": "consumer-java"}
RESOURCES = ("cpu", "io", "memory")
_MICROSECONDS = 1e6


@dataclass(frozen=True)
class Process:
    """A process: its parent, its own CPU time and that of its ended children, s, and its resident memory, shared or not."""

    parent: int
    own_s: float
    children_s: float
    rss_bytes: int = 0


Key = tuple[int, int]  # a pid, and the start of its process in clock ticks since the boot
Processes = Mapping[Key, Process]


@dataclass(frozen=True)
class Reading:
    """The machine at one moment: CPU time of tasks, stolen CPU time, time waited by resource (if the kernel tells), s."""

    busy_s: float
    steal_s: float
    waiting: Mapping[str, float]
    processes: Processes


def reading() -> Reading:
    """The machine now. Raises OSError where /proc/stat can't be read."""
    busy_s, steal_s = cpu_times((PROC / "stat").read_text())
    waiting, processes = {}, {}
    for resource in RESOURCES:
        try:
            waiting[resource] = stalled((PROC / "pressure" / resource).read_text())
        except OSError:
            continue
    for pid in (entry.name for entry in PROC.iterdir() if entry.name.isdecimal()):
        try:
            start, process = parse_process((PROC / pid / "stat").read_text(errors="replace"))
        except OSError:  # it has ended
            continue
        processes[int(pid), start] = process
    return Reading(busy_s, steal_s, waiting, processes)


def cpu_times(text: str) -> tuple[float, float]:
    """(the CPU time of tasks, the stolen CPU time), s, in the ``text`` of /proc/stat; that of interrupts is no task's."""
    user, nice, system, _idle, _iowait, _irq, _softirq, steal = (int(one) for one in text.split(maxsplit=9)[1:9])
    return (user + nice + system) / TICKS, steal / TICKS


def stalled(text: str) -> float:
    """The time in which at least one task waited, s, in the ``text`` of a file of /proc/pressure."""
    some = next(line for line in text.splitlines() if line.startswith("some "))
    return int(some.rpartition("total=")[2]) / _MICROSECONDS


def parse_process(text: str) -> tuple[int, Process]:
    """(start in ticks, process) in the ``text`` of /proc/PID/stat."""
    fields = text.rpartition(")")[2].split()  # the name before it may hold anything
    user, system, child_user, child_system = (int(one) / TICKS for one in fields[11:15])
    return int(fields[19]), Process(int(fields[1]), user + system, child_user + child_system, int(fields[21]) * PAGE)


def command(pid: int) -> list[str]:
    """The words with which process ``pid`` was started; none of one that has ended."""
    try:
        return (PROC / str(pid) / "cmdline").read_text(errors="replace").rstrip("\0").split("\0")
    except OSError:
        return []


def what(words: list[str]) -> str:
    """What a process is, by the ``words`` that started it: a Python module, a Java program, or the program's file."""
    words = words[0].split() if len(words) == 1 else words  # a forked process has its command as one title
    program = Path(words[0]).name if words else ""
    if program.startswith("python") and len(words) > 2 and words[1] == "-m":
        return words[2]
    if program == "java":
        return next((name for part, name in JAVA.items() if any(part in word for word in words)), program)
    scripts = [Path(word).name for word in words[1:] if program.startswith("python") and not word.startswith("-")]
    return next(iter(scripts), program) or "ended"


def descendants(processes: Processes, roots: Container[int], known: Iterable[Key] = ()) -> frozenset[Key]:
    """The processes ``roots``, all that descend from them, and those of ``known`` that still run."""
    children: dict[int, list[Key]] = {}
    for key, process in processes.items():
        children.setdefault(process.parent, []).append(key)
    found: set[Key] = set()
    waiting = [key for key in processes if key[0] in roots] + [key for key in known if key in processes]
    while waiting:
        key = waiting.pop()
        if key not in found:
            found.add(key)
            waiting.extend(children.get(key[0], ()))
    return frozenset(found)


def growth(before: Processes, after: Processes) -> float:
    """The CPU time that a set of processes took between two moments, s.

    What a process took before it ended is in its parent's account of ended children, from which the part that was counted
    already is taken off. The last time of a process that nobody waited for is lost.
    """
    total = sum(one.own_s - (before[key].own_s if key in before else 0.0) for key, one in after.items())
    counted: dict[int, float] = {}
    for key, process in before.items():
        if key not in after:
            counted[process.parent] = counted.get(process.parent, 0.0) + process.own_s + process.children_s
    for key, process in after.items():
        ended = process.children_s - (before[key].children_s if key in before else 0.0)
        total += max(0.0, ended - counted.get(key[0], 0.0))
    return total
