"""The users, for Locust: the text's tasks with their weights, and the city's events in place of its constants.

``user_count`` is no id: while no user is spawned every event of the text has the same driver, place and zone. Here an event's
number decides what it says (:mod:`tests.scenarios.ride_hailing.programs.city`), and every kind carries its time.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import time
from pathlib import Path
from typing import Any

import gevent
from locust import FastHttpUser, LoadTestShape, between, constant, events, task
from locust.exception import StopUser

from lab.inputs.profile import build
from lab.programs.producer.send import Tally
from tests.scenarios.ride_hailing.programs.addresses import LOOK_S, Follower, bearer
from tests.scenarios.ride_hailing.programs.city import DRIVER, SURGE, TRIP, WEIGHTS, City
from tests.scenarios.ride_hailing.programs.message import SEQ
from tests.scenarios.ride_hailing.programs.shape import SPAWN_RATE, THINK_S, schedule, users_at

GIVEN: dict[str, Any] = json.loads(os.environ["TRAFFIC"])
PROFILE = build(GIVEN["profile"], "TRAFFIC")
START: float = GIVEN["start"]
END = START + PROFILE.duration
ANSWERS_S = 30.0  # for requests under way when the profile is over: a rider has waited up to 22 s for a driver
LATE_S = 20.0  # of these for paced requests that are late
REFUSED_S = 5.0  # then for one that a pod refused: another pod takes it
CITY = City(GIVEN["seed"], GIVEN["zones"], GIVEN["drivers"])
FIND_S = 10.0
PACED = GIVEN["traffic_user"] == "PacedProducer"
COUNTS = ("sent", "acked", "failed", "unknown", "completed")
LATENESS = ("late_p50_ms", "late_p99_ms", "late_max_ms")

random.seed(GIVEN["seed"])  # Locust draws tasks and waits from it
numbers, turns, rides = itertools.count(), itertools.count(), itertools.count()
due = enumerate(schedule(PROFILE))  # of all paced users: whoever is free takes the next request
tally = Tally()
follower = Follower(GIVEN["bootstrap"], GIVEN["reports_topic"], tuple(GIVEN["services"]), GIVEN["kafka_settings"])


def pod(service: str, refused: str = "") -> str:
    """The URL of any pod of ``service``, where there are several not of the one that ``refused``; waits while none is known."""
    while not (urls := follower.known[service].urls):
        gevent.sleep(LOOK_S)
    return random.choice([url for url in urls if url != refused] or urls)


def completed() -> bool:
    """Whether paced users have sent the whole profile; of a closed loop whether it is over."""
    return tally.sent == PROFILE.total if PACED else time.time() >= END


class ProfileShape(LoadTestShape):
    """As many users as make the profile's rate; then none who asks anything new, until all answers are there.

    Locust ends its users where they are when the shape ends: what they wait for would be of unknown fate.
    """

    last = (1, SPAWN_RATE)

    def tick(self) -> tuple[int, float] | None:
        """(users, users/s to spawn), None when it is over."""
        users = users_at(PROFILE, max(0.0, time.time() - START), GIVEN["cycle_s"])
        if users is not None:
            self.last = users, SPAWN_RATE
        elif (completed() and tally.sent == tally.acked + tally.failed + tally.unknown) or time.time() > END + ANSWERS_S:
            return None
        return self.last


class _User(FastHttpUser):
    """A user that finds its service's pods by what they said."""

    abstract = True
    host = "http://127.0.0.1"  # Locust wants one; every request names its pod
    default_headers = bearer(GIVEN["service_token"])
    asks_until = END
    due_at: float | None = None  # of the request that is sent next; a closed loop has no schedule to be late by

    def on_start(self) -> None:
        """Wait for the profile's start."""
        gevent.sleep(max(0.0, START - time.time()))

    def count(self, status: int) -> None:
        """Count an answer: 200 and 202 are on the topic, what was refused and 503 certainly not; of the rest nobody knows."""
        if status in (200, 202):
            tally.acked += 1
        elif 400 <= status < 500 or status == 503:
            tally.failed += 1
        else:
            tally.unknown += 1

    def post(self, service: str, path: str, body: dict[str, Any], seq: int) -> None:
        """POST ``body`` to any pod of ``service``; never again, unless a connection was refused: then nobody has it.

        What no pod took until REFUSED_S after a user asks for the last time is failed. Locust counts every refusal as a failure
        of its own.
        """
        url = pod(service)
        if (now := time.time()) >= self.asks_until:
            raise StopUser
        tally.sent += 1
        if self.due_at is not None:
            tally.late_ms.append(1000 * (now - self.due_at))
            tally.tick_events.append(1)
        while True:
            with self.client.post(f"{url}{path}", json=body, name=path, headers={SEQ: str(seq)}, catch_response=True) as answer:
                status = answer.status_code
                refused = isinstance(getattr(answer, "error", None), ConnectionRefusedError)  # answers have no error
            if not refused or time.time() >= self.asks_until + REFUSED_S:
                break
            gevent.sleep(LOOK_S)
            url = pod(service, url)
        self.count(503 if refused else status)


class EventProducer(_User):
    """Sends the city's events to the ingestion service, with the text's waits: a closed loop."""

    wait_time = between(*THINK_S)

    def number(self) -> int:
        """The number of the next event."""
        return next(numbers)

    @task(WEIGHTS[DRIVER])
    def driver_location_update(self) -> None:
        """A driver's position."""
        seq = self.number()
        self.post("ingestion", f"/api/events/{DRIVER}", CITY.driver_location(seq, round(time.time() * 1000)), seq)

    @task(WEIGHTS[TRIP])
    def trip_completion(self) -> None:
        """A completed trip."""
        seq = self.number()
        self.post("ingestion", f"/api/events/{TRIP}", CITY.trip_complete(seq, round(time.time() * 1000)), seq)

    @task(WEIGHTS[SURGE])
    def surge_update(self) -> None:
        """The next zone's multiplier."""
        seq, now = self.number(), time.time()
        body = CITY.surge_update(next(turns), now - START, round(now * 1000))
        self.post("ingestion", f"/api/events/{SURGE}", body, seq)


class PacedProducer(EventProducer):
    """Sends them at the times of the profile, as constant_throughput of all users together: an open loop while any is free.

    What is late is sent at once, and none is dropped.
    """

    wait_time = constant(0)
    asks_until = END + LATE_S

    def number(self) -> int:
        """The number of the next request, once it is due."""
        if (following := next(due, None)) is None:
            raise StopUser
        number, at = following
        self.due_at = START + at
        while (early := self.due_at - time.time()) > 0:  # a timer may fire before its time
            gevent.sleep(early)
        return number


class Rider(_User):
    """Asks for a quote, then for a driver, and waits until one is found."""

    wait_time = constant(0.1)

    @task
    def ride(self) -> None:
        """One ride."""
        number = next(rides)
        self.client.get(f"{pod('rider-api')}/api/quote?ride={number}", name="/api/quote")
        body = {"ride_id": f"ride-{number}", "timestamp": round(time.time() * 1000)}
        self.post("driver-matching", "/api/match", body, number)


@events.init.add_listener  # type: ignore[untyped-decorator]
def _follow(**_: Any) -> None:
    def on() -> None:
        while True:
            follower.follow()
            gevent.sleep(LOOK_S)

    gevent.spawn(on)
    follower.find(FIND_S)


@events.quitting.add_listener  # type: ignore[untyped-decorator]
def _leave(**_: Any) -> None:
    tally.unknown = tally.sent - tally.acked - tally.failed  # also those that were cut off
    tally.completed = completed()
    told = tally.summary()
    names = (*COUNTS, *LATENESS) if tally.late_ms else COUNTS
    Path(GIVEN["tally"]).write_text(json.dumps({name: told[name] for name in names}))
