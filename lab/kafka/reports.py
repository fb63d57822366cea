"""Reports of the lab's programs to the recorder, as JSON on a topic: group events, phases, the producer's tally."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from lab import clock


def process_started() -> float:
    """When this process began, epoch seconds with the kernel's 10 ms resolution (proc(5), field ``starttime``)."""
    ticks = int(Path("/proc/self/stat").read_text().rsplit(") ", 1)[1].split()[19])
    since_boot = ticks / os.sysconf("SC_CLK_TCK")
    return clock.now() - (time.clock_gettime(time.CLOCK_BOOTTIME) - since_boot)


def reporter(bootstrap: str, who: str, settings: Mapping[str, str]) -> Producer:
    """A producer for the reports of the program ``who``; ``settings`` are those with which it logs in, if it has to."""
    return Producer({"bootstrap.servers": bootstrap, "client.id": who, "acks": "all", **settings})


class Reports:
    """Sends events of one program (named by ``who``, its pod) to the trial's reports topic, in order."""

    def __init__(self, producer: Producer, topic: str, who: str) -> None:
        self._producer, self._topic, self._who = producer, topic, who

    def say(self, event: str, **fields: Any) -> None:
        """Queue one event with its wall time (s) and monotonic time (s)."""
        row = {"pod": self._who, "event": event, "t": clock.now(), "mono": time.monotonic(), **fields}
        self._producer.produce(self._topic, key=self._who, value=json.dumps(row))
