"""Validity on records in which every number is known: each gate by itself, "no data" where a record has nothing to say.

Punctuality: how late the producer was.
"""

from dataclasses import asdict

import pandas as pd
import pytest

from lab.inputs.faults import Injection
from lab.inputs.fidelity import Compressed, CompressedLag
from lab.judge import gates
from lab.judge.claim import INVALID, NO_DATA
from lab.judge.gates import GATES, VALID
from lab.judge.measure import Runs
from lab.measure.lag import peak_lag
from lab.measure.validity import Validity, judge_validity, punctuality, validity
from lab.record.trial import Deadlines, Fault
from lab.trial.load import COLUMNS

from .built import receipt, record, sealed
from .conftest import report
from .whole import decreed, scaled

TIMES = {"settling": 3, "driving": 10, "ended": 30}
QUICK = {"name": "quick", "time": 30, "rate": 1}
POLL = (Compressed("spec.pollingInterval", 60, 2),)
LAG = CompressedLag("x.lagThreshold", 4500, 150)
FEW = CompressedLag("x.lagThreshold", 2, 1)


def load(folder, **grown):
    """A load that grows by these seconds from the 10th to the 30th second, and by much before and after."""
    growth = dict.fromkeys(COLUMNS[1:], 0.0) | {"busy_s": 20.0, "own_s": 20.0} | grown
    rows = [(5, -1), (10, 0), (20, 0.9), (30, 1), (40, 9)]
    frame = pd.DataFrame([{"t": t} | {name: 100 + part * value for name, value in growth.items()} for t, part in rows])
    frame[COLUMNS].astype(float).to_parquet(folder / "load.parquet")


DONE = [(0, 0, 12.0, 13.0), (0, 10, 13.0, 14.0), (1, 0, 12.0, 13.0), (1, 10, 13.5, 14.0)]  # partition, first of ten, start, end


def built(folder, late_ms=1.0, gaps=(), torn=0.0, done=DONE, more=None, **grown):
    """A trial of 20 s on two cores, sampled each half second but for ``gaps``. One sum is off its partition by ``torn``."""
    load(folder, **grown)
    samples = [n / 2 for n in range(20, 61) if n / 2 not in gaps]
    rows = [{"t": t, "metric": "kafka_consumergroup_lag_sum", "pod": "", "labels": "{}", "value": 1.0} for t in samples]
    rows += [row | {"metric": "kafka_consumergroup_lag", "labels": '{"partition": "0"}'} for row in rows]
    rows[9]["value"] += torn
    tallies = ({}, {"late_p99_ms": 99.0}, {"late_p99_ms": late_ms})  # the last counts
    told = [report(t, "producer", "produced", **tally) for t, tally in enumerate(tallies, 28)]
    receipts = [receipt("a", start, end, 10, part) | {"first": first, "last": first + 9} for part, first, start, end in done]
    limits = Deadlines(settle_s=100, replay_s=1, end_s=1, ledger_s=1)
    tables = {"samples": rows, "group_events": told, "receipts": receipts}
    return record(folder, times=TIMES, deadlines=limits, **tables, **(more or {}))


def lacking(made):
    """The gates of which the record says nothing."""
    return {name for name, value in validity(made).values.items() if value is None}


@pytest.mark.parametrize(
    ("gaps", "faults", "peak"), [((), True, 1), ((15.0, 15.5, 16.0), True, None), ((15.0, 15.5, 16.0), False, 1)]
)
def test_a_peak_of_lag_is_no_data_where_faults_kept_it_from_view(tmp_path, gaps, faults, peak):
    """Else a trial whose exporter is gone would hold each bound of lag."""
    struck = {"at": 5.0, "component": "lag-exporter", "kind": "sigstop", "for_s": 2.0, "draw": 0.0}
    made = built(tmp_path, gaps=gaps, more={"inputs": {"faults": [struck]}} if faults else None)
    assert peak_lag(made).value == peak


def test_a_trial_at_rest_is_valid(tmp_path):
    """Every gate has a number, and each is held."""
    made = built(tmp_path)
    assert gates.word(judge_validity(made)) == VALID
    assert [one.value for one in validity(Runs([made, made])).settle.runs] == [0.07, 0.07]
    assert set(Validity.declared()) == {gate.name for gate in GATES}
    assert validity(made).values == {
        "lateness": pytest.approx(0.01),
        "steal": 0,
        "cpu_pressure": 0,
        "io_pressure": 0,
        "memory_pressure": 0,
        "foreign_load": 0,
        "scrape_gap": 1,
        "lag_sum": 0,
        "order": 0,
        "clock": 0,
        "rounding": 0,
        "schedule": 0,
        "settle": 0.07,
    }


@pytest.mark.parametrize(
    ("name", "how", "wanted"),
    [
        ("lateness", {"late_ms": 250}, 2.5),
        ("steal", {"steal_s": 4.0}, 0.1),  # 4 of 2 x 20 s
        ("cpu_pressure", {"cpu_waiting_s": 19.0}, 0.95),
        ("io_pressure", {"io_waiting_s": 5.0}, 0.25),
        ("memory_pressure", {"memory_waiting_s": 2.0}, 0.1),
        ("foreign_load", {"busy_s": 19.0, "others_s": 5.0}, 0.25),
        # A trial that takes 2 s of two cores' 40 leaves 38; over its own time 1.9 s would be 0.95.
        ("", {"own_s": 2.0, "others_s": 1.9}, 0.05),
        ("foreign_load", {"own_s": 1.0, "others_s": 7.8}, 0.2),
        ("scrape_gap", {"gaps": (15.0, 15.5, 16.0)}, 4),
        ("lag_sum", {"torn": -3.0}, 3),
        ("order", {"done": [*DONE, (2, 0, 14.0, 15.0), (2, 10, 14.9, 16.0), (2, 20, 13.0, 13.5)]}, 2),
        # One that was done again is no contradiction.
        ("", {"done": [*DONE, (2, 0, 12.0, 13.0), (2, 0, 18.0, 19.0), (2, 10, 13.0, 14.0)]}, 0),
        ("", {"done": [*DONE, (2, 0, 12.0, 13.0), (2, 9, 12.5, 14.0)]}, 0),  # in part
        ("clock", {"more": {"clock_moved_s": -0.25}}, 2.5),
        ("clock", {"more": {"clock_moved_s": 0.1, "inputs": {"scale": QUICK}, "policy_times": POLL}}, 2),
        ("rounding", {"more": {"policy_times": (Compressed("pollingInterval", 15, 1),), "inputs": {"scale": QUICK}}}, 1),
        ("rounding", {"more": {"policy_times": (Compressed("pollingInterval", 20, 1),), "inputs": {"scale": QUICK}}}, 0.5),
        ("rounding", {"more": {"policy_lags": (CompressedLag("x.lagThreshold", 10, 8),)}}, 0.2),
        # One message at four tenths of the rate stands for 2.5.
        ("rounding", {"more": {"policy_lags": (FEW,), "inputs": {"scale": {"rate": 0.4}}}}, 0.25),
        ("", {"more": {"policy_lags": (LAG,), "policy_times": POLL, "inputs": {"scale": QUICK}}}, 0),
        # An activation is rounded down, and a time of 0 stays one.
        ("", {"more": {"policy_lags": (CompressedLag("x.activationLagThreshold", 10, 5),)}}, 0),
        ("", {"more": {"policy_times": (Compressed("x.cooldownPeriod", 0, 0),)}}, 0),
        ("settle", {"more": {"deadlines": Deadlines(10, 1, 1, 1)}}, 0.7),
    ],
)
def test_each_gate_fails_by_its_own_cause(name, how, wanted, tmp_path):
    """By the machine between the baseline and the end alone: what was before and after counts for nothing."""
    limits = how.get("more", {}).pop("deadlines", None)
    made = built(tmp_path, **how)
    made = sealed(tmp_path, deadlines=limits) if limits else made
    assert validity(made).values[name or "foreign_load"] == pytest.approx(wanted)
    failed = [gate for gate, verdict in zip(GATES, judge_validity(made), strict=True) if verdict.verdict != "held"]
    assert [gate.name for gate in failed] == [name] * bool(name)
    assert gates.word(judge_validity(made)) == (INVALID if any(gate.decides for gate in failed) else VALID)


@pytest.mark.parametrize(("told", "wanted"), [("ab", 0), ("ba", 0), ("a", 1), ("abb", 1), ("ac", 2), ("", 2)])
def test_each_planned_fault_has_one_row(told, wanted, tmp_path):
    """Planned are a and b. A row that is lacking, doubled or of c counts; a kill by an event of the trial does not."""
    every = {name: Injection(at, "store", "sigkill", 1.0, 0.0) for at, name in enumerate("abc", 1)}
    struck = [Fault(10.0 + every[name].at, "sigkill", component="store", injection=every[name]) for name in told]
    schedule = {"faults": [asdict(every["a"]), asdict(every["b"])]}
    made = built(tmp_path, more={"inputs": schedule, "faults": (*struck, Fault(15.0, "sigkill"))})
    assert validity(made).schedule.value == wanted


def test_lateness_is_judged_by_the_shortest_time_of_a_compressed_trial(tmp_path):
    """At a thirtieth of the time that is the HPA's sync of half a second, and without an HPA a phase of the profile."""
    made = built(tmp_path, 25, more={"inputs": {"scale": QUICK}, "policy_times": POLL})
    assert validity(made).lateness.number == pytest.approx(0.5)
    steps = [{"at": 0, "rate": 1, "phase": "fill"}, {"at": 8, "rate": 1, "phase": "drain"}]
    more = {"inputs": {"scale": QUICK, "policy": decreed(1, 2), "profile": {"steps": steps, "duration": 10}}}
    assert validity(built(tmp_path, 25, more=more)).lateness.number == pytest.approx(0.025 / 0.2)  # of 2 s
    more["inputs"]["profile"] = {"steps": steps[:1], "duration": 5}  # a backlog by decree has one phase
    assert validity(built(tmp_path, 250, more=more)).lateness.number == pytest.approx(0.25 / 0.5)


def test_a_rounding_has_nine_digits(tmp_path):
    """A float's last digits are no change."""
    made = built(tmp_path, more={"policy_lags": (CompressedLag("x.lagThreshold", 3, 2),)})
    assert validity(made).rounding.value == 0.333333333


def test_a_record_of_before_has_no_load_and_no_times(tmp_path):
    """Those gates are "no data", and the trial is not known to be valid; the others have their numbers.

    So is a column of nothing, in containers and on a kernel without pressure, and a driver that tallies no lateness.
    """
    policy = {"inputs": {"scale": QUICK, "policy": scaled(pollingInterval=2)}}
    made = built(tmp_path, more=policy, own_s=float("nan"), cpu_waiting_s=float("nan"))
    assert lacking(made) == {"cpu_pressure", "foreign_load", "rounding"}
    (tmp_path / "load.parquet").unlink()
    pd.DataFrame([report(30, "producer", "produced", acked=1)]).to_parquet(tmp_path / "group_events.parquet")
    made = sealed(tmp_path)
    pressure = {"cpu_pressure", "io_pressure", "memory_pressure"}
    assert lacking(made) == {"lateness", "steal", *pressure, "foreign_load", "rounding"}
    assert gates.word(judge_validity(made)) == NO_DATA
    assert lacking(sealed(tmp_path, clock_moved_s=None)) - lacking(made) == {"clock"}


def test_few_readings_are_no_data(tmp_path):
    """Two of the load, and four samples of lag, are the least. Nothing is over a time of nothing."""
    built(tmp_path)
    until = {ended: lacking(sealed(tmp_path, times=TIMES | {"ended": ended})) for ended in (11, 11.5, 20)}
    machine = {"steal", "cpu_pressure", "io_pressure", "memory_pressure", "foreign_load"}
    assert until == {11: machine | {"scrape_gap"}, 11.5: machine, 20: set()}
    for own_s in (0.0, -1.0):
        assert lacking(built(tmp_path, own_s=own_s, others_s=5.0)) == {"foreign_load"}
    assert lacking(built(tmp_path, done=())) == {"order"}


def test_a_load_of_before_counts_all_tasks_less_the_trials_own(tmp_path):
    """It did not say what the other processes took."""
    built(tmp_path, busy_s=25.0)
    file = tmp_path / "load.parquet"
    pd.read_parquet(file).drop(columns="others_s").to_parquet(file)
    assert validity(sealed(tmp_path)).foreign_load.number == pytest.approx(0.25)
    load(tmp_path, busy_s=15.0)  # it is counted at ticks, and may be less
    pd.read_parquet(file).drop(columns="others_s").to_parquet(file)
    assert validity(sealed(tmp_path)).foreign_load.value == 0


DRIVERS = ("producer/job", "ridehailing/locust-paced")
LATE = {"late_p50_ms": 0.4, "late_p99_ms": 7.5, "late_max_ms": 31.0}


@pytest.mark.parametrize("driver", DRIVERS)
def test_the_producers_lateness_is_its_tallys(tmp_path, driver):
    """Of two tallies the worse counts, whatever drove the traffic by a schedule."""
    told = [report(5, "producer", "produced", **LATE), report(9, "producer", "produced", **LATE | {"late_p99_ms": 2.0})]
    found = punctuality(record(tmp_path, group_events=told, inputs={"driver": driver}))
    assert (found.median_ms.value, found.p99_ms.value, found.worst_ms.value) == (0.4, 7.5, 31.0)


@pytest.mark.parametrize(
    ("told", "inputs", "why"),
    [
        ([], {}, "no tally"),
        ([report(5, "producer", "produced", acked=1)], {"driver": "ridehailing/locust"}, "no late_p50_ms"),
    ],
)
def test_without_a_schedule_there_is_no_lateness(tmp_path, told, inputs, why):
    """No data, and not 0."""
    assert why in punctuality(record(tmp_path, group_events=told, inputs=inputs)).p99_ms.why
