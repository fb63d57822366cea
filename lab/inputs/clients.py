"""The clients of Kafka that a trial's consumers may have: each is a program of its own, and lacks some settings. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from lab.errors import InputError, report
from lab.flags import Kind

EARLIEST, LATEST = RESETS = ("earliest", "latest")
PYTHON, FRANZ_GO, JAVA = CLIENTS = ("python", "franz-go", "java")
IMAGE = "elastic-lab/clients"  # of the programs that are not Python's
MEMORY: Mapping[str, str] = {FRANZ_GO: "48Mi", JAVA: "128Mi"}  # that a pod requests
_MIB = 2**20


@dataclass(frozen=True)
class Demand:
    """What a pod takes: cores ``at_work``, whatever its rate; bytes ``at_most``, with a deep backlog, or ``held``;
    ``start_cpu_s`` of CPU for its start. It is at work ``start_more_s`` later than the Python client's, alone on two cores."""

    at_work: float
    at_most: int
    held: int
    start_cpu_s: float
    start_more_s: float


# Python: docs/decisions/04, 14, 21 and 22. The others: one run each at 250 and at 1,000 messages/s, on busy cores; their starts
# to the first record by hand, n = 4.
DEMANDS: Mapping[str, Demand] = {
    PYTHON: Demand(at_work=0.018, at_most=60 * _MIB, held=31 * _MIB, start_cpu_s=0.02, start_more_s=0.0),
    FRANZ_GO: Demand(at_work=0.018, at_most=40 * _MIB, held=22 * _MIB, start_cpu_s=0.03, start_more_s=0.0),
    JAVA: Demand(at_work=0.065, at_most=140 * _MIB, held=109 * _MIB, start_cpu_s=1.3, start_more_s=3.0),
}
# What a program other than Python's simulates of the work, but not of what goes wrong with it.
_PYTHONS = (
    *("store_slots", "store_contention", "burn", "cpus", "wake", "emit"),
    *("fail_rate", "poison_rate", "poison", "poison_mode", "most_deaths", "retry_ms", "retry_jitter", "dlq"),
)
LACKING: Mapping[str, tuple[str, ...]] = {
    PYTHON: ("partition_fetch_kib",),
    FRANZ_GO: (*_PYTHONS, "max_poll_ms"),  # that client has no such limit
    JAVA: _PYTHONS,
}
_BY_DURATION = r"by_duration:P(?=.)(\d+D)?(T(?=.)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?"


def _reset(text: str) -> str:
    if text not in RESETS and not re.fullmatch(_BY_DURATION, text):
        raise ValueError(text)
    return text


RESET = Kind(
    _reset,
    f"{EARLIEST} or {LATEST}; with client {JAVA} also by_duration:PT1H",
    {"type": "string", "pattern": f"^(earliest|latest|{_BY_DURATION})$"},
)


def program(client: str) -> str:
    """The name of the program of ``client``, which is not Python's: the command of its pods."""
    return f"consumer-{client}"


def check(given: Any, where: object) -> None:
    """Report an :class:`InputError` for each setting of ``given`` that its client's program lacks."""
    defaults = {one.name: one.default for one in fields(given)}
    for name in LACKING.get(given.client, ()):
        if (value := getattr(given, name)) != defaults[name]:
            report(InputError(where, name, value, f"{defaults[name]} with client {given.client}, whose program lacks it"))


def check_runtime(client: str, runtime: str) -> None:
    """Raise :class:`InputError` for a ``client`` whose program the ``runtime`` does not have."""
    if client != PYTHON and runtime == "existing":
        other = "it runs there by its own image, as your own consumer would (docs/existing-cluster.md)"
        raise InputError("trial", "client", client, f"{PYTHON} on an existing cluster: --lab-pod-image has no other; {other}")
