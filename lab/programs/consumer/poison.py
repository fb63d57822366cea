"""A poison message of the harder kinds: its consumer's process ends, stands still or computes, and says nothing before."""

from __future__ import annotations

import os
import threading
import zlib
from collections.abc import Callable, Sequence

from lab.inputs.consumer import CRASH, HANG, SPIN
from lab.inputs.failures import Failures
from lab.programs.consumer.retries import Consumed, seq_of

CODE = 70  # of a process that ends by its poison: EX_SOFTWARE of sysexits.h
_BLOCK = bytes(65_536)  # zlib lets other threads run while it works on so many bytes: probes are still answered


def strike(messages: Sequence[Consumed], failures: Failures, mode: str) -> None:
    """Do what ``mode`` says where one of ``messages`` is a poison message of ``failures``: it does not return then."""
    if any(failures.never(message.partition(), message.offset(), seq_of(message)) for message in messages):
        MODES[mode]()


def _crash() -> None:
    os._exit(CODE)  # no handler, no flush, no leave


def _hang() -> None:
    while True:  # a handler of SIGTERM runs, and then it waits on
        threading.Event().wait()


def _spin() -> None:
    while True:
        zlib.crc32(_BLOCK)


MODES: dict[str, Callable[[], None]] = {CRASH: _crash, HANG: _hang, SPIN: _spin}
