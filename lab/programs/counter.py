"""``python -m lab.programs.counter``: it keeps the time of a profile, and counts what others send to the topic.

It reports what a producer reports, so that a trial goes on alike: ``profile``, each ``phase``, at the end ``produced``. What
was sent is the growth of the logs' ends, so a topic that is compacted, or sent to in transactions, counts more.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable

from lab.errors import InputError
from lab.inputs.producer import flags, settings
from lab.inputs.profile import Profile
from lab.kafka.lag import LagReader
from lab.programs.telemetry import Reports, reporter

GROUP = "lab-counter"  # that nobody is in: to ask as a consumer asks for one


def keep_time(profile: Profile, start: float, stop: threading.Event, ends: Callable[[], int], say: Callable[..., None]) -> None:
    """Report each phase of ``profile``, which begins at ``start`` (epoch s), and what ``ends`` grew by until its end."""
    behind = time.monotonic() - time.time()

    def wait_until(at: float) -> None:
        stop.wait(max(0.0, behind + at - time.monotonic()))

    wait_until(start)
    before = ends()
    for at, _, phase in profile.phases():
        wait_until(start + at)
        if stop.is_set():
            return
        say("phase", phase=phase, at=start + at)
    wait_until(start + profile.duration)
    sent = ends() - before
    say("produced", sent=sent, acked=sent, unknown=0, failed=0, counted=True)


def main() -> int:
    """Keep the time of the profile. The exit code is 0, and 2 on bad input."""
    parser = flags()
    chosen = settings(parser.parse_args())
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    try:
        profile, numbering = chosen.traffic, chosen.numbering
    except InputError as error:
        parser.error(str(error))
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    who = os.environ.get("HOSTNAME", "counter")
    producer = reporter(chosen.bootstrap_servers, who, chosen.kafka_settings)
    say = Reports(producer, chosen.reports_topic, who).say
    reader = LagReader(chosen.bootstrap_servers, GROUP, numbering, settings=chosen.kafka_settings)
    start = chosen.start_at or time.time() + chosen.start_in
    say("profile", start=start, total=0)
    producer.flush(10)
    keep_time(profile, start, stop, lambda: sum(part.end for part in reader.read().values()), say)
    producer.flush(30)
    return 0


if __name__ == "__main__":
    sys.exit(main())
