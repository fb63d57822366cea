"""A time of day in a trial: the profile begins where the cron window opens at a full minute, as far in as a scale makes it."""

from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lab import paths
from lab.inputs import anchor, duet, inputs, manifests, profile
from lab.inputs import policy as policies
from lab.inputs import scale as scales
from lab.inputs.anchor import Window
from lab.inputs.profile import Profile, Step
from lab.inputs.scale import Scale
from lab.inputs.triggers import cron
from tests.unit.inputs.written import CRON, KAFKA, refused, scaled, trial

SEVEN = datetime(2026, 1, 15, 7, 54, tzinfo=UTC)  # a Thursday
METADATA = "spec.triggers[1].metadata"


def timed(start="57 7 * * *", end="27 8 * * *", zone="Etc/UTC"):
    """A policy on lag and a time of day."""
    return scaled([KAFKA, CRON | {"metadata": CRON["metadata"] | {"timezone": zone, "start": start, "end": end}}])


def traffic(begins_at=SEVEN, duration=2520.0, **more):
    """Steady traffic from a time of day on."""
    return Profile((Step(0.0, 10.0, "baseline"),), duration, begins_at=begins_at, **more)


def check(policy, given=None, scale="quick", others=()):
    """The windows' times in a trial of this scale."""
    return anchor.check(policy, given or traffic(), scales.load(scale), "my.yaml", "traffic.yaml", others)


def test_a_window_is_seconds_from_the_profiles_start():
    """As the trigger's own zone has it: 08:57 in Berlin is 07:57 UTC in January."""
    (found,) = anchor.windows(timed("57 8 * * *", "27 9 * * 1-5", "Europe/Berlin"), SEVEN)
    assert found == Window(1, 180.0, 1980.0)
    assert anchor.windows(scaled([KAFKA]), SEVEN) == check(scaled([KAFKA]), traffic(None)) == ()  # it needs no time of day


def test_a_scale_divides_the_windows_and_keeps_whole_minutes():
    """Three minutes are 6 s at quick, and half an hour is a minute; both stand beside what was written."""
    found = {one.field: (one.written_s, one.applied_s) for one in check(timed())}
    assert found == {f"{METADATA}.start": (180, 6), f"{METADATA}.end": (1980, 66)}
    (real,) = anchor.at_scale(anchor.windows(timed(), SEVEN), 1.0)
    assert real == Window(1, 180.0, 1980.0)


def test_the_profile_begins_where_the_window_opens_at_a_full_minute():
    """The earliest such moment, and never one that is past."""
    applied = [Window(1, 6.0, 66.0)]
    assert anchor.start_after(1_200.0, applied) == 1_254.0
    assert anchor.start_after(1_254.0, applied) == 1_254.0
    assert anchor.start_after(1_254.1, applied) == 1_314.0


def test_the_trigger_gets_the_minutes_of_that_day():
    """In UTC, whatever the file's zone; all else stays, and the file's own words are beside the applied ones."""
    policy = timed(zone="Europe/Berlin")
    start = datetime(2026, 11, 23, 23, 59, 54, tzinfo=UTC).timestamp()
    made = anchor.with_schedules(policy, [Window(1, 6.0, 66.0)], start)
    wanted = {"timezone": "Etc/UTC", "start": "0 0 24 11 *", "end": "1 0 24 11 *", "desiredReplicas": "10"}
    assert made.content["spec"]["triggers"] == [KAFKA, {"type": "cron", "metadata": wanted}]
    assert [(one.field, one.written, one.applied) for one in anchor.schedules(policy, made)] == [
        (f"{METADATA}.start", "57 7 * * * Europe/Berlin", "0 0 24 11 * Etc/UTC"),
        (f"{METADATA}.end", "27 8 * * * Europe/Berlin", "1 0 24 11 * Etc/UTC"),
    ]
    assert policy.content["spec"]["triggers"][1]["metadata"]["start"] == "57 7 * * *"


@example(now=datetime(2028, 2, 29, 19, 18), before_s=1, minutes=281, time=1.0)  # it opens on a leap day and ends after it
@example(now=datetime(2028, 2, 29, 10, 0), before_s=1, minutes=60, time=1.0)
@example(now=datetime(2028, 2, 28, 23, 0), before_s=1, minutes=90, time=1.0)
@given(
    now=st.datetimes(datetime(2026, 1, 1), datetime(2032, 12, 31)),
    before_s=st.integers(1, 7_000),
    minutes=st.integers(1, 600),
    time=st.sampled_from([1.0, 3.0, 5.0, 15.0, 30.0, 7.3]),
)
def test_keda_opens_and_closes_the_window_when_the_trial_says(now, before_s, minutes, time):
    """KEDA's own arithmetic on the applied schedules is closed before the window, open within it and closed after it."""
    written = [Window(1, float(before_s), before_s + 60.0 * minutes * time)]
    (applied,) = anchor.at_scale(written, time)
    start = anchor.start_after(now.replace(tzinfo=UTC).timestamp(), [applied])
    assert 0 <= start - now.replace(tzinfo=UTC).timestamp() < 60 + 1e-3
    made = anchor.with_schedules(timed(), [applied], start).triggers[1]
    assert applied.start_s * time == pytest.approx(before_s)
    for at, active in ((0, False), (applied.start_s - 0.5, False), (applied.start_s + 0.5, True), (applied.end_s + 0.5, False)):
        assert cron.read(made, datetime.fromtimestamp(start + at, UTC)).active is active
    assert cron.read(made, datetime.fromtimestamp(start + applied.end_s - 0.5, UTC)).active


@given(length=st.integers(1, 400), time=st.floats(1, 100))
def test_faithful_means_within_a_tenth_of_the_windows_length(length, time):
    """Whatever the compression; real time always is."""
    end = SEVEN + timedelta(minutes=3 + length)
    policy = timed(end=f"{end.minute} {end.hour} * * *")
    (applied,) = anchor.at_scale(anchor.windows(policy, SEVEN), time)
    error = abs((applied.end_s - applied.start_s) * time - length * 60) / (length * 60)
    if abs(error - 0.1) > 1e-6:
        assert anchor.is_faithful(policy, traffic(), Scale("any", time, 1)) is (error < 0.1)
    assert anchor.is_faithful(policy, traffic(), Scale("real", 1, 1))


def test_a_window_of_no_whole_minutes_is_refused_with_the_scales_that_fit():
    """Twenty minutes are 40 s at quick, and KEDA has no such window."""
    assert refused(check, timed(end="17 8 * * *"), others=scales.declared()) == (
        f"my.yaml: {METADATA}.end: '17 8 * * *' | at scale quick (time / 30) within 10% of a multiple "
        "of 1800 s after the first start: whole minutes make these 1200 s 1800 s; or --scale standard or close or real"
    )


@pytest.mark.parametrize(
    ("policy", "given", "file", "field", "value", "allowed"),
    [
        (timed(), traffic(None), "traffic.yaml", "begins_at", None, "the time of day at which the profile begins"),
        (timed(), traffic(real_time=True), "traffic.yaml", "real_time", True, "false beside a cron trigger"),
        (timed("0 6 * * *"), traffic(), "my.yaml", f"{METADATA}.start", "0 6 * * *", "a window that opens after the profile"),
        (timed("0 0 30 2 *"), traffic(), "my.yaml", f"{METADATA}.start", "0 0 30 2 *", "a schedule that comes due"),
        (timed("*/5 8 * * *", "0 9 * * *"), traffic(), "my.yaml", f"{METADATA}.start", "*/5 8 * * *", "one start before each"),
        (timed("0 * * * *", "30 * * * *"), traffic(duration=7e3), "my.yaml", f"{METADATA}.start", "0 * * * *", "a window that"),
    ],
    ids=["no time of day", "real time", "open at the start", "never due", "two starts", "opens again"],
)
def test_what_no_trial_can_hold_is_refused_in_one_line(policy, given, file, field, value, allowed):
    """It names the file, the field, its value and what is allowed."""
    said = "missing" if value is None else repr(value)
    assert refused(check, policy, given).startswith(f"{file}: {field}: {said} | {allowed}")


def test_a_time_of_day_has_its_distance_from_utc():
    """Text, or a time that YAML reads; it stays through what a record keeps."""
    content = {"kind": "steady", "rate": 5, "duration": 60}
    made = profile.build(content | {"begins_at": "2026-01-15T08:54:00+01:00"}, "traffic.yaml")
    assert made.begins_at == SEVEN
    assert profile.build(content | {"begins_at": SEVEN}, "traffic.yaml").begins_at == SEVEN
    assert profile.build(made.compressed(30, 1).to_dict(), "record").begins_at == SEVEN
    assert "begins_at" not in profile.build(content, "traffic.yaml").to_dict()
    for value in ("08:00", "2026-01-15T07:50:00", 750, datetime(2026, 1, 15)):
        assert "| a time with its distance from UTC" in refused(profile.build, content | {"begins_at": value}, "traffic.yaml")


chosen = partial(trial, "spike-announced", "lag-4500-cron")


def test_a_trials_inputs_keep_the_time_of_day_as_written():
    """It is a part of the identity; what the trial makes of it is beside it, and the same from what a record keeps."""
    made = chosen()
    assert made.policy.content["spec"]["triggers"][1]["metadata"]["start"] == "56 7 * * *"
    assert made.windows == (Window(1, 4.0, 64.0),)
    assert {one.field: one.applied_s for one in made.policy_times}[f"{METADATA}.end"] == 64
    again = inputs.Inputs.from_dict(made.to_dict(), "record")
    assert (again.id, again.windows) == (made.id, made.windows)
    file = paths.MANIFESTS / "scaledobjects" / "lag-4500-cron.yaml"  # beside a trial it would be anchored to nothing
    assert "spec.triggers: 'cron' | any other trigger beside a trial" in refused(manifests.beside, file, scales.load("quick"))


def test_the_sides_of_a_duet_begin_together():
    """Lag alone beside lag and a time of day; two times of day must open whole minutes from each other."""
    one, other = chosen(), trial("spike-announced")
    assert [side.windows for side in duet.sides(one, other, 0.5)] == [(Window(1, 4.0, 64.0),), ()]
    later = inputs.Inputs.from_dict(one.to_dict() | {"policy": timed("58 7 * * *", "28 8 * * *").content}, "x")
    assert "duet: cron start: '-4 s apart' | a start whole minutes at scale" in refused(duet.sides, one, later)
    later = inputs.Inputs.from_dict(one.to_dict() | {"policy": timed("26 8 * * *", "56 8 * * *").content}, "x")
    assert duet.sides(one, later)


@pytest.mark.parametrize("name", ["spike-announced", "spike-early", "spike-late", "spike-absent"])
def test_the_profiles_of_experiment_11_differ_in_the_spike_alone(name):
    """One window of one policy in each, open long enough before the end that the pods are given back."""
    given = profile.load(paths.PROFILES / f"{name}.yaml")
    policy = policies.load(paths.MANIFESTS / "scaledobjects" / "lag-4500-cron.yaml")
    assert (given.begins_at, given.duration, given.zipf) == (SEVEN, 2520, 0.7)
    assert [phase for _, _, phase in given.phases()] == ["baseline", "spike", "drain"]
    spike = {"spike-announced": 360, "spike-early": 240, "spike-late": 480, "spike-absent": 360}[name]
    assert given.steps[1].at == spike
    assert {one.rate for one in given.steps} == ({180} if name == "spike-absent" else {180, 1800})
    assert len(check(policy, given)) == 2
