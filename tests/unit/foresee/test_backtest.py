"""Backtest: a group's past out of scrapes, against the decisions of its HPA's log and what its trial cost; the closed loop."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from lab import validation
from lab.__main__ import main
from lab.commands import answers, scrapes
from lab.foresee import backtest, candidate, live_hpa, shadow
from lab.foresee.candidate import Point
from lab.foresee.group import Consumers
from lab.foresee.live_hpa import Sample
from lab.foresee.shadow import AGREED, EDGE, OTHERWISE, UNREAD, WARMING
from lab.foresee.simulate import simulate
from lab.foresee.situation import Situation, controller_of
from lab.inputs import inputs, scaledobject
from lab.inputs import profile as profiles
from lab.inputs import scale as scales
from lab.inputs.profile import Profile, Step
from lab.model import hpa
from lab.record import store
from tests import deployed, explained
from tests.records import FOLDER
from tests.unit.foresee.test_explain import (
    BEGIN,
    ORDERS,
    ORDERS_FILE,
    SLOW,
    SYNC_S,
    Kept,
    kept,
    lags,
    played,
    policy,
    statuses,
)

WAVE = [lag for lag in (9_000, 25_000, 12_000, 6_000, 18_000) * 6 for _ in range(7)]
EPOCH = datetime.fromtimestamp(0, UTC)
LIVE = scaledobject.parse(ORDERS, "orders")


def past(every_s, scaled=None):
    """Scrapes of an HPA's status."""
    return list(statuses(list(played(scaled or policy(SLOW), WAVE)), WAVE, every_s))


def words(samples, scaled=None):
    """What is said of each sync."""
    return [one.word for one in backtest.decide(live_hpa.series(scaled or policy(SLOW), samples, SYNC_S))]


@pytest.mark.parametrize("every_s", [5.0, 15.0])
def test_as_many_syncs_are_found_as_there_were_and_decided_as_they_were(every_s):
    """Once the HPA's memory was seen; a window or a period that ends at a scrape may be apart."""
    found = words(past(every_s))
    assert len(found) == pytest.approx(len(WAVE), rel=0.02)
    assert found.count(OTHERWISE) == found.count(UNREAD) == 0
    assert found.count(WARMING) == pytest.approx(90 / SYNC_S, abs=2)
    assert found.count(EDGE) <= 0.02 * len(found)


def test_what_someone_else_did_is_decided_otherwise_and_what_is_not_scraped_is_not_judged():
    """A step that no metric asked for; a hole of ten minutes, after which the HPA's memory is unknown; a scrape a minute."""
    samples = past(15.0)
    scaled = [Sample(one.t, 9, one.values, 9, 9) if number >= 100 else one for number, one in enumerate(samples)]
    assert OTHERWISE in words(scaled)
    hole = [one for one in samples if not BEGIN + 600 < one.t < BEGIN + 1_200]
    found = words(hole)
    assert found.count(UNREAD) == pytest.approx(600 / SYNC_S, abs=2)
    after = found[len(found) - found[::-1].index(UNREAD) :]
    assert (after[0], after[-1]) == (WARMING, AGREED)
    assert set(words(past(60.0))) == {UNREAD}


def test_lag_that_hangs_between_two_scrapes_is_no_agreement():
    """An exporter's lag from 9,000 to 33,000: whether 10 pods were asked for hangs on the lag at the sync."""
    samples = [Sample(BEGIN + 15 * number, 4, (9_000.0,)) for number in range(60)]
    found = words([*samples, Sample(BEGIN + 900, 10, (33_000.0,))], LIVE)
    assert (found[-2], found[-1]) == (AGREED, EDGE)


def test_pods_are_ready_when_they_had_the_time_to_start():
    """Those of a step 30 s later; one that was taken away at once."""
    replicas = (4, 4, 8, 8, 8, 2, 2)
    samples = [Sample(15.0 * number, count, ()) for number, count in enumerate(replicas)]
    found = backtest.points(samples, [1.0, None, 3.0, *[0.0] * 4], 30.0)
    assert [one.ready for one in found] == [4, 4, 4, 4, 8, 2, 2]
    assert [one.lag for one in found[:3]] == [1.0, 1.0, 3.0]


@pytest.fixture(scope="module")
def records():
    """Records at real time of one trigger on lag."""
    found = [one for one in explained.suited(FOLDER) if one.scale.time == 1 and len(one.policy.triggers) == 1]
    assert len(found) >= 2
    return found


@pytest.mark.parametrize("scrape_s", [5.0, 15.0])
def test_trials_are_decided_and_played_as_they_were(records, scrape_s):
    """By their scrapes alone: every sync that is judged, pod-minutes within 5 %, and as many flips."""
    for record in records:
        samples, controller = scrapes.of_record(record, scrape_s, scrape_s / 3), controller_of(record.scale)
        series = live_hpa.series(record.policy, samples, SYNC_S, record.inputs.partitions, controller)
        trust = shadow.trust(list(backtest.decide(series)), controller)
        assert (trust.reasons, trust.agreed) == ((), trust.judged)
        assert trust.syncs == pytest.approx(len(record.hpa_syncs), rel=0.02)
        places = backtest.places(series)
        start_s, end = record.inputs.workload.start_s + 3, samples[-1].t
        points = backtest.points([samples[one] for one in places], [series.totals[one][0] for one in places], start_s)
        pods = Consumers(record.inputs.pod_rate, start_s, in_flight_s=2.5)
        found = candidate.play([record.policy], points, end, pods, record.inputs.partitions, SYNC_S, controller).closed
        assert abs(found.pod_minutes_error) < 0.05
        assert found.flips_error == 0


PODS = ["--pod-rate=100", "--start-s=10", "--partitions=12"]
ASKED = ["shadow", "--backtest=50m", "--prometheus=http://127.0.0.1:1", "--namespace=orders"]


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """A function that makes a Prometheus of these series: the flags that ask it, up to the last sample."""
    live = tmp_path / "live.json"
    live.write_text(json.dumps(policy(SLOW, allowIdleConsumers="false").content))

    def make(samples, *more):
        monkeypatch.setattr("prometheus_api_client.PrometheusConnect", lambda **_: Kept([*kept(samples), *more]))
        return [*ASKED, f"--scaledobject={live}", f"--to={samples[-1].t}", *PODS]

    return make


def test_the_answer_begins_with_the_trust_line_and_ends_with_the_closed_loop(asked, capsys):
    """Of the live one as it was, as it is simulated, and of the candidate; on an exporter's lag too."""
    samples = past(15.0)
    given = asked(samples, *list(lags(samples))[1:])
    assert main([*given, f"--candidate={ORDERS_FILE}"]) == 0
    head, trust, *rest = capsys.readouterr().out.splitlines()
    assert head.startswith("orders-enricher: keda-hpa-orders-enricher scraped every 15 s from ")
    assert re.match(r"trust: of 1.. syncs the model decided 1.. as the live HPA did, 100 %", trust)
    assert any(line.startswith("candidate, simulated") for line in rest)
    (ranges,) = [line for line in rest if line.startswith("by the point of the HPA's sync and of the commits at which")]
    assert re.search(r": live [\d.]+ to [\d.]+ pod-minutes, .* flips; candidate [\d.]+ to [\d.]+ pod-minutes, ", ranges)
    assert main([*given, '--query=kafka_consumergroup_lag{topic="orders"}', "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content.pop("schema") == 1
    answer = validation.read(answers.KINDS["shadow"], content, "shadow")
    assert (answer.scrape_s, answer.closed.live.worst_age_s) == (15, None)
    assert answer.closed.simulated.worst_age_s > 0


def test_scrapes_that_are_too_far_apart_give_no_verdict(asked, capsys):
    """A minute apart, as Prometheus does it by default."""
    assert main(asked(past(60.0))) == 1
    said = capsys.readouterr().out
    assert "0 syncs could be judged, 20 are needed: " in said
    assert " can't be: more than 2 syncs fit between two scrapes" in said
    assert "closed loop" not in said


def test_the_lag_that_kedas_cap_hid_is_counted(asked, capsys):
    """At one lagThreshold for each of four partitions: the traffic may have been any above."""
    assert main([*asked(past(15.0)), "--partitions=4"]) == 0
    assert re.search(r"no data: the lag at \d+ of \d+ syncs, which KEDA's cap hid", capsys.readouterr().out)


@pytest.mark.parametrize(("given", "lacks"), [([], "--prometheus"), ([ASKED[2]], "--scaledobject")])
def test_what_a_backtest_lacks_is_one_line(capsys, given, lacks):
    """Exit code 2."""
    assert main([*ASKED[:2], *given]) == 2
    assert f"{lacks}: missing; allowed: what --backtest reads" in capsys.readouterr().err


def test_the_proof_compares_what_was_foretold_with_what_came():
    """A committed trial that stands as its own candidate: what came is counted as the watch counts it."""
    live = store.find(FOLDER, "step-ups-lag-4500-window-30-down-100-30s-8ae655c3")
    closed, begin_s = deployed.foretell(live, live.policy)
    came = deployed.did(live, begin_s)
    assert came.pod_minutes == pytest.approx(closed.live.pod_minutes, rel=0.01)
    assert came.flips == closed.live.flips > 0
    told = deployed.foretold(live, live)
    assert told.pod_minutes.number == pytest.approx(told.known_error.number, abs=1)
    assert (told.flips.number, told.equal.number) == (closed.flips_error, closed.flips_error == 0)


def test_each_of_the_ten_pairs_can_be_run(tmp_path):
    """The scale keeps every policy, and no trial is in two pairs."""
    ids = set()
    for plan in (plan for name in deployed.PAIRS for plan in deployed.plans(name, tmp_path).values()):
        profile, chosen, pods, seed, scale = (plan.pop(name) for name in ("profile", "policy", "workload", "seed", "scale"))
        ids.add(inputs.read(profile, chosen, pods, seed, scales.load(scale), "binary", **plan).id)
    assert len(ids) == 2 * len(deployed.PAIRS) == 20


def test_the_closed_loop_comes_back_to_the_group_that_it_was_seen_of():
    """A simulated group in place of a live one: the lag tells its traffic, by which the model finds what it did again.

    The traffic itself, measured until half an hour after it, tells more.
    """
    scaled = policy(SLOW, allowIdleConsumers="true")
    rates = (250, 860, 430, 760, 180)
    profile = Profile(tuple(Step(600.0 * place, rate, "any") for place, rate in enumerate(rates)), 600.0 * len(rates))
    consumers = Consumers(100, start_s=10, in_flight_s=2.5)
    there = Situation(profile, np.full(120, 1 / 120), consumers, sync_s=SYNC_S)
    curve = simulate(there, scaled)
    times = [number * SYNC_S for number in range(int(profile.duration / SYNC_S))]
    places = np.searchsorted(curve.t, times, side="right") - 1
    columns = (times, *(one[places].tolist() for one in (curve.lag, curve.replicas, curve.working)))
    points = [Point(*row) for row in zip(*columns, strict=True)]
    found = candidate.play([scaled], points, profile.duration, consumers, 120, SYNC_S, hpa.DEFAULTS).closed
    assert abs(found.pod_minutes_error) < 0.1
    assert abs(found.flips_error) <= 1
    assert found.lowest_rate < min(rates) < max(rates) < found.highest_rate < 1.5 * max(rates)
    longer = replace(profile, duration=profile.duration + 1800, begins_at=EPOCH)
    seen = candidate.part(longer, 0, profile.duration)
    again = candidate.play([scaled], points, profile.duration, consumers, 120, SYNC_S, hpa.DEFAULTS, seen).closed
    assert (again.measured, again.pod_minutes_error, again.flips_error) == (True, pytest.approx(0, abs=0.01), 0)
    assert (again.lowest_rate, again.highest_rate) == (min(rates), max(rates))


def test_the_point_of_a_sync_at_which_a_burst_comes_has_a_range(tmp_path, monkeypatch):
    """A window of 300 s keeps what one sync asked for at the burst's height, over all three: the range has other points too.

    Steady traffic costs the same at any point, and a time that is too long has no range.
    """
    plan = deployed.plans("a long window", tmp_path)["candidate"]
    bursts, scale = profiles.load(plan["profile"]), scales.load("real")
    wanted = inputs.read(plan["profile"], plan["policy"], plan["workload"], 1, scale, "binary", until=plan["until"]).policy
    pods = Consumers(100, start_s=40, in_flight_s=2.5)

    def closed(profile):
        first = [Point(0.0, 500.0, 4, 4)]
        return candidate.play([wanted], first, profile.duration, pods, 24, 15.0, hpa.DEFAULTS, profile).closed

    found = closed(bursts)
    least, most = found.simulated_range.pod_minutes
    assert 1.1 * least < found.simulated.pod_minutes <= most
    there = Situation(bursts, np.full(24, 1 / 24), pods)
    elsewhere = [simulate(replace(there, phase_s=15 * part), wanted).pod_minutes for part in (0.1, 0.3, 0.5, 0.7, 0.9)]
    assert min(elsewhere) < 0.95 * max(elsewhere)
    assert all(least <= one <= most for one in elsewhere)
    steady = Profile((Step(0.0, 200, "any"),), 600.0)
    assert closed(steady).simulated_range.pod_minutes == pytest.approx([40, 40], rel=0.01)
    monkeypatch.setattr(candidate, "RANGE_S", steady.duration - 1)
    assert closed(steady).simulated_range is None


@pytest.mark.parametrize(
    ("begin", "until", "steps"),
    [
        (0, 1800, [(0, 10), (600, 30)]),
        (590, 1800, [(0, 10), (10, 30)]),
        (601, 1200, [(0, 30)]),
        (-60, 1860, [(0, 10), (660, 30)]),
        (-61, 1800, None),
        (0, 1861, None),
    ],
)
def test_a_part_of_a_measured_traffic(begin, until, steps):
    """From its own time of day on; a minute may lack at each end, and no more."""
    seen = Profile((Step(0, 10, "any"), Step(600, 30, "any")), 1800, begins_at=EPOCH)
    found = candidate.part(seen, begin, until)
    assert (found and [(one.at, one.rate) for one in found.steps]) == steps
    assert candidate.part(replace(seen, begins_at=None), begin, until) is None
