"""``python -m tests.scenarios.ride_hailing.programs.traffic``: drives a service with Locust along the profile.

It is the Job "producer" of a trial. Like :mod:`lab.programs.producer` it reports the profile, its phases and the tally of what
became of each request; of paced users also how late they sent it. It reports Locust's CSV files too, so they come into the
record. Locust runs in a process of its own, since it replaces the standard library's sockets.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from lab import yamlfile
from lab.errors import InputError, LabFault
from lab.flags import Flags, choice, number, whole
from lab.inputs.profile import Profile, build
from lab.kafka.login import kafka_flags
from lab.programs.telemetry import Reports, process_started, reporter
from tests.scenarios.ride_hailing.programs.addresses import Follower, token_flag
from tests.scenarios.ride_hailing.programs.shape import CYCLE_S, users_at

log = logging.getLogger("ride_hailing")
LOCUSTFILE = Path(__file__).with_name("locustfile.py")
INGESTION = ("ingestion",)
SERVICES = {"EventProducer": INGESTION, "PacedProducer": INGESTION, "Rider": ("rider-api", "driver-matching")}
FIND_S = 10.0  # services are ready, and have said where they are, before a trial drives them
STOP_S = 20  # for requests under way when the profile is over
CSV = ("stats", "stats_history", "failures")
PART = 250_000  # characters of a file in one report: as JSON less than the 1 MB that a topic takes


def parts(text: str) -> list[str]:
    """A file's ``text`` as one report after the other takes it; an empty one is one empty part."""
    return [text[start : start + PART] for start in range(0, len(text), PART)] or [""]


def main() -> int:
    """Drive the profile; exit 0 when every request was answered for certain, 1 when not or on a fault, 2 on bad input."""
    parser = Flags(prog="python -m tests.scenarios.ride_hailing.programs.traffic", description=__doc__)
    kafka_flags(parser)
    parser.flag("reports-topic", str, None, "topic where services say where they listen, and this says what it does")
    token_flag(parser)
    parser.flag("profile-yaml", str, None, "the profile's YAML itself")
    parser.flag("traffic-user", choice(*SERVICES), "EventProducer", "Locust's user class", f"one of {', '.join(SERVICES)}")
    parser.flag("cycle-s", number(0.001, 3600), CYCLE_S, "time of a user's cycle, s: users = rate x cycle", "0.001 to 3600")
    parser.flag("seed", whole(0, 2**63 - 1), 1, "decides what the events say", "a whole number from 0")
    parser.flag("zones", whole(1, 100_000), 200, "zones of the city", "1 to 100,000")
    parser.flag("drivers", whole(1, 10_000_000), 5000, "drivers of the city", "1 to 10,000,000")
    parser.flag("start-in", number(0, 3600), 5.0, "seconds from now to the profile's start; Locust needs some", "0 to 3600")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    try:
        profile = build(yamlfile.parse(options.profile_yaml, "PROFILE_YAML"), "PROFILE_YAML")
    except InputError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    who = os.environ.get("HOSTNAME", "traffic")
    producer = reporter(options.bootstrap_servers, who, options.kafka_settings)
    reports = Reports(producer, options.reports_topic, who)
    follower = Follower(
        options.bootstrap_servers, options.reports_topic, SERVICES[options.traffic_user], options.kafka_settings
    )
    try:
        follower.find(FIND_S)
    except LabFault as fault:
        print(f"{parser.prog}: {fault}", file=sys.stderr)
        return 1
    finally:
        follower.close()
    start = time.time() + options.start_in
    users = [users_at(profile, step.at, options.cycle_s) for step in profile.steps]
    log.info("%s to %s %s users along the profile", min(filter(None, users)), max(filter(None, users)), options.traffic_user)
    reports.say("started", created=process_started())
    reports.say("profile", start=start, total=profile.total, users=users, cycle_s=options.cycle_s, user=options.traffic_user)
    producer.flush(10)
    with tempfile.TemporaryDirectory(prefix="elastic-lab-locust-") as folder:
        tally = _drive(options, profile, start, Path(folder), reports, producer)
    log.info("%s", tally)
    reports.say("produced", **tally)
    producer.flush(30)
    return 0 if tally["acked"] == tally["sent"] else 1


def _drive(options: Any, profile: Profile, start: float, folder: Path, reports: Reports, producer: Producer) -> dict[str, Any]:
    """Run Locust to the profile's end; returns its tally, after saying its CSV files."""
    told = folder / "tally.json"
    settings = {
        "bootstrap": options.bootstrap_servers,
        "services": SERVICES[options.traffic_user],
        "profile": profile.to_dict(),
        "start": start,
        "tally": str(told),
    }
    own = ("kafka_settings", "reports_topic", "service_token", "traffic_user", "cycle_s", "seed", "zones", "drivers")
    settings |= {name: getattr(options, name) for name in own}
    environment = os.environ | {"TRAFFIC": json.dumps(settings)}
    quiet = ["--headless", "--only-summary", "--loglevel=WARNING", "--exit-code-on-error=0"]
    csv = [f"--csv={folder / 'locust'}", "--csv-full-history", f"--stop-timeout={STOP_S}", options.traffic_user]
    locust = subprocess.Popen([sys.executable, "-m", "locust", "-f", str(LOCUSTFILE), *quiet, *csv], env=environment)
    over = threading.Event()

    def end(*_: object) -> None:
        over.set()
        locust.terminate()

    signal.signal(signal.SIGTERM, end)
    phases = profile.phases()
    for at, _, phase in phases:
        over.wait(max(0.0, start + at - time.time()))
        if over.is_set() or locust.poll() is not None:
            break
        reports.say("phase", phase=phase, at=start + at)
        producer.flush(10)
    try:
        locust.wait(max(0.0, start + profile.duration - time.time()) + STOP_S + 30)
    except subprocess.TimeoutExpired:
        locust.kill()
        locust.wait()
    for name in CSV:
        file = folder / f"locust_{name}.csv"
        if file.exists():
            for text in parts(file.read_text()):
                reports.say("csv", name=name, text=text)
                producer.flush(10)
    if not told.exists():
        return {"sent": 0, "acked": 0, "failed": 0, "unknown": 0, "completed": False, "why": "Locust left no tally"}
    tally: dict[str, Any] = json.loads(told.read_text())
    return tally


if __name__ == "__main__":
    sys.exit(main())
