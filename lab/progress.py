"""One way to say what long work is doing: a log line with the elapsed time, at events and on a timer."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

log = logging.getLogger("lab")


@contextmanager
def reporting(what: Callable[[], str], every_s: float = 10.0) -> Iterator[None]:
    """Log ``what()`` with the elapsed seconds every ``every_s`` seconds until the block ends."""
    done = threading.Event()
    begun = time.monotonic()

    def tick() -> None:
        while not done.wait(every_s):
            log.info("%s, %.0f s", what(), time.monotonic() - begun)

    thread = threading.Thread(target=tick, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
