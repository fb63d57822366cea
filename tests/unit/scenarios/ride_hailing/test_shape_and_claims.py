"""Users for a rate, and what the text's own numbers add up to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import paths, yamlfile
from lab.inputs import profile
from lab.inputs.profile import Profile, Step
from lab.model import hpa
from lab.model.hpa import HpaSpec, Metric
from tests.scenarios.ride_hailing import claims
from tests.scenarios.ride_hailing.evening import foretold, simulated
from tests.scenarios.ride_hailing.programs import shape, traffic
from tests.scenarios.ride_hailing.programs.addresses import Known
from tests.scenarios.ride_hailing.programs.shape import CYCLE_S, SPAWN_RATE, rate_at, users_at

ANALYTICS = HpaSpec(2, 20, (Metric("External", "lag", "AverageValue", 1_000_000),), None)
STEPS = Profile((Step(0, 40, "baseline"), Step(10, 140, "spike")), 20)


def asked(lag):
    """The replicas that the HPA of trip analytics asks for at ``lag``, from 15 and before its bounds."""
    return hpa.proposals(ANALYTICS, 15, [hpa.external(lag)])[0]


@pytest.mark.parametrize(("at", "users"), [(0, 5), (9.99, 5), (10, 18), (19.9, 18), (20, None), (30, None), (-1, 5)])
def test_users_follow_the_profile(at, users):
    """rate x 0.125 s, rounded up; none once it is over."""
    assert users_at(STEPS, at) == users


@given(st.floats(0, 19.99), st.floats(0.01, 100))
def test_users_make_the_rate(at, cycle):
    """Little's law: users / cycle is the rate, and less than one user more."""
    users = users_at(STEPS, at, cycle)
    assert 0 <= users / cycle - rate_at(STEPS, at) < 1 / cycle + 1e-6


def test_a_request_is_due_when_the_producer_would_send_its_event(monkeypatch):
    """All of the profile's, in order, however many times are computed at once."""
    monkeypatch.setattr(shape, "BLOCK", 7)
    assert list(shape.schedule(STEPS)) == STEPS.times(0, 1800).tolist()


def test_paced_users_have_room_for_their_answers():
    """Twice as many as the text's waits alone take: an answer may take as long as the cycle before a request is late."""
    job = yamlfile.read(paths.MANIFESTS / "ridehailing" / "locust-paced.yaml")
    env = {one["name"]: one.get("value") for one in job["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert env["TRAFFIC_USER"] in traffic.SERVICES
    assert users_at(profile.load(paths.PROFILES / "trips.yaml"), 150, float(env["CYCLE_S"])) == 350 == 2 * 1400 * CYCLE_S


def test_friday_at_real_time_is_foretold_as_its_experiment_says():
    """The peak, lag at T+120 and T+180, and the replicas at each row, wherever in its period the HPA's sync comes."""
    phases = range(15)  # s
    evenings = [foretold(float(phase)) for phase in phases]
    peaks = [simulated(float(phase)).lag.max() for phase in phases]
    at = {row.at: [evening[number] for evening in evenings] for number, row in enumerate(claims.TIMELINE)}
    assert (round(min(peaks), -2), round(max(peaks), -2)) == (21_000, 26_400)
    assert span(one.lag.number for one in at[120]) == (450, 2730)
    assert span(one.lag.number for one in at[180]) == (420, 420)
    replicas = [span(one.wanted.number for one in row) for row in at.values()]
    assert replicas == [(2, 2), (7, 7), (7, 12), (12, 12), (15, 17), (15, 17), (15, 17), (6, 6), (3, 3), (2, 2)]


def span(numbers):
    """The least and the greatest of ``numbers``, lags to tens."""
    found = sorted(numbers)
    return tuple(round(one, -1) if one > 100 else one for one in (found[0], found[-1]))


def test_a_pod_has_one_rate():
    """20 pods are 4,000 events/s, not the text's "70 each"; 1,400 take 7 pods, not 15, and 175 users, not 5,000.

    T+30 is what the timeline's rates add up to; every row after it has more lag than its rates and replicas leave.
    """
    assert claims.implied(claims.TIMELINE) == [100, 12_100, 21_100, 24_100, 18_100, 0, 0, 0, 0, 0]
    assert (1400 * CYCLE_S, claims.USERS / CYCLE_S) == (175, 40_000)
    assert claims.USERS / SPAWN_RATE == 50  # s to start them; its table ramps for 90
    assert claims.POD_RATE * 20 == 4000
    assert -(-1400 // claims.POD_RATE) == 7
    assert asked(847_000) == 847  # that is maxReplicaCount, 20
    assert asked(980) == 1  # lag of 980 does not hold 15 replicas
    assert (1400 - 2 * claims.POD_RATE) * 32 * 60 == 1_920_000  # 6:15 to 6:47 PM; the text has 847,000


@pytest.mark.parametrize("fixed", [4, 9])
def test_a_month(fixed):
    """Fixed pods all month before; two, and what evening and batch take, after. At the break-even it costs the share."""
    before, after = claims.monthly(fixed, 2, 120, 10, 30)
    assert (before, after) == (fixed * 43_200, 86_400 + 30 * 100 + 30 * 30)
    times = claims.break_even(0.74, fixed, 2, 120, 10, 30)
    before, after = claims.monthly(fixed, 2, times * 120, times * 10, 30)
    assert after == pytest.approx(0.74 * before)


def test_the_profiles_are_the_texts():
    """Each row's rate holds up to it, from the row before; the dashboard's ramp is a tenth of it; a batch is 5,000 or one.

    Each is from its baseline to its drain, so that what comes between can be told from both.
    """
    for name in ("trips", "trips-http", "trips-rides", "fares", "fares-one"):
        phases = [phase for _, _, phase in profile.load(paths.PROFILES / f"{name}.yaml").phases()]
        assert (phases[0], phases[-1]) == ("baseline", "drain"), name
    evening, tenth, batch, one = (
        profile.load(paths.PROFILES / f"{name}.yaml") for name in ("trips", "trips-http", "fares", "fares-one")
    )
    assert [rate_at(evening, 90 + row.at - 0.001) for row in claims.TIMELINE] == [row.rate for row in claims.TIMELINE]
    rows = [row for row in claims.TIMELINE if row.at <= 60]
    assert [10 * rate_at(tenth, 25 + row.at - 0.001) for row in rows] == [row.rate for row in rows]
    assert 10 * rate_at(tenth, 25 + 60) == 1400
    assert (batch.total, one.total) == (5000, 1)


@pytest.mark.parametrize("length", [0, 1, traffic.PART, traffic.PART + 1, 3 * traffic.PART])
def test_a_file_is_reported_whole(length):
    """In parts that a topic takes, none of it cut."""
    text = "abcdefg" * (length // 7) + "z" * (length % 7)
    made = traffic.parts(text)
    assert "".join(made) == text
    assert 0 <= max(map(len, made)) <= traffic.PART


def test_pods_come_and_go():
    """The newest word of each pod counts; other services' and other events' don't."""
    known = Known("ingestion")
    for service, pod in (("ingestion", "b"), ("ingestion", "a"), ("rider-api", "c")):
        known.take({"event": "listening", "service": service, "pod": pod, "url": f"http://{pod}"})
    known.take({"event": "started", "pod": "d"})
    assert known.urls == ["http://a", "http://b"]
    for pod in "ax":
        known.take({"event": "leaving", "pod": pod})
    assert known.urls == ["http://b"]
