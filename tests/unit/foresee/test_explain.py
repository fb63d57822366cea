"""Explain: an HPA that the model plays, scraped now and then, is told why it scaled; what scrapes don't tell is not told."""

from __future__ import annotations

import itertools
import json
import math
import re
from bisect import bisect_right

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab import yamlfile
from lab.__main__ import main
from lab.commands import scrapes
from lab.errors import InputError
from lab.foresee import live_hpa, sync
from lab.foresee.explain import DOWN_POLICY, DOWN_WINDOW, KEDA, LEAST, METRIC, MOST, UP_POLICY, decided_by, explain
from lab.foresee.live_hpa import MORE_S, Sample
from lab.inputs import scaledobject
from lab.model import hpa
from lab.model.hpa import State
from lab.paths import PROJECT
from tests import explained
from tests.records import FOLDER

BEGIN, SYNC_S = 1_700_000_000.0, 15 + MORE_S
ORDERS_FILE = PROJECT / "docs" / "examples" / "orders.yaml"
ORDERS, OBJECT = yamlfile.read(ORDERS_FILE), f"--scaledobject={ORDERS_FILE}"
SLOW = {"scaleUp": {"stabilizationWindowSeconds": 45, "policies": [{"type": "Pods", "value": 2, "periodSeconds": 60}]}}
SLOW |= {"scaleDown": {"stabilizationWindowSeconds": 60, "policies": [{"type": "Percent", "value": 50, "periodSeconds": 90}]}}
LIMITS = {UP_POLICY: "ScaleUpLimit", DOWN_POLICY: "ScaleDownLimit", MOST: "TooManyReplicas", LEAST: "TooFewReplicas"}
BRISK = {"scaleDown": {"stabilizationWindowSeconds": 0}}


def policy(behavior, **metadata):
    """The orders' ScaledObject with this ``behavior``, None for none."""
    content = yamlfile.read(ORDERS_FILE)
    content["spec"]["advanced"] = {"horizontalPodAutoscalerConfig": {"behavior": behavior}} if behavior else {}
    content["spec"]["triggers"][0]["metadata"] |= metadata
    return scaledobject.parse(content, "orders")


def played(scaled, lags):
    """Each sync of the HPA as (t, before, after, what decided), on one of ``lags`` each."""
    spec, state, replicas = sync.hpa_of(scaled), State(), scaled.min_replicas
    for number, lag in enumerate(lags):
        t = BEGIN + number * SYNC_S
        decision, state = hpa.decide(spec, state, replicas, [hpa.external(lag)], t)
        yield t, replicas, decision.desired, decided_by(decision, (lag,), (None,))[0]
        replicas = decision.desired


def statuses(syncs, lags, every_s, phase_s=1.0):
    """What kube-state-metrics shows of ``syncs`` to a scrape in ``every_s``."""
    times = [one[0] for one in syncs]
    t = BEGIN + phase_s
    while t < times[-1] + SYNC_S:
        place = bisect_right(times, t) - 1
        _, before, after, _ = syncs[place]
        yield Sample(t, after, (math.ceil(1000 * lags[place] / before) / 1000,), before, after)
        t += every_s


@settings(max_examples=25, deadline=None)
@given(
    lags=st.lists(st.integers(0, 30_000), min_size=30, max_size=60),
    behavior=st.sampled_from([None, SLOW, BRISK]),
    every_s=st.sampled_from([5.0, 7.0, 15.0]),
    phase=st.floats(0, 0.99),
)
def test_every_step_of_a_group_whose_memory_was_seen_is_told(lags, behavior, every_s, phase):
    """A scrape for each sync at least: the reasons are the model's own. What is told of the first minutes is true too."""
    scaled = policy(behavior)
    syncs = list(played(scaled, lags))
    series = live_hpa.series(scaled, list(statuses(syncs, lags, every_s, phase * every_s)), SYNC_S)
    told = [(one.before, one.after, one.by) for one in explain(series) if one.by]
    steps = [(t, before, after, by) for t, before, after, by in syncs if before != after]
    known = [one[1:] for one in steps if one[0] > series.samples[0].t + series.memory_s + SYNC_S]
    assert told[len(told) - len(known) :] == known
    seen = iter([one[1:] for one in steps])
    assert all(one in seen for one in told)  # in their order


def steady(*parts, every_s=5.0):
    """Samples of ``parts``: (seconds, replicas, lag per pod, replicas found, asked for)."""
    t, found = BEGIN, []
    for seconds, replicas, average, *status in parts:
        found += [Sample(t + after, replicas, (average,), *status) for after in range(0, seconds, int(every_s))]
        t += seconds
    return found


UP = ((600, 4, 2_250.0, 4, 4), (15, 10, 8_250.0, 4, 10), (15, 12, 3_300.0, 10, 12))


def test_a_step_says_what_decided_and_what_a_lag_threshold_more_or_less_brings():
    """The policy allows 6 pods: neither changes the first step. Then maxReplicaCount 12 ends it."""
    scaled = scaledobject.parse(ORDERS, "orders")
    first, second = explain(live_hpa.series(scaled, steady(*UP), SYNC_S))
    assert (first.before, first.after, first.by, first.metric, first.proposal) == (4, 10, UP_POLICY, "orders", 15)
    assert (first.higher, first.lower) == (10, 10)
    assert "33000 / (2250 x 4) = 3.667, not within 0.9 to 1.1: ceil(33000 / 2250) = 15" in first.reasons[0]
    assert first.since <= first.at <= first.until
    assert (second.after, second.proposal) == (12, 15)
    small = steady((600, 4, 2_250.0, 4, 4), (15, 7, 3_900.0, 4, 7))
    (only,) = explain(live_hpa.series(scaled, small, SYNC_S))
    assert (only.by, only.higher, only.lower) == (METRIC, 8, 6)


def test_a_sync_that_changed_nothing_is_told_where_it_is_asked_for():
    """Lag is gone, and the window of 600 s holds the replicas; without it the step would have come."""
    scaled = scaledobject.parse(ORDERS, "orders")
    samples = steady((900, 6, 2_250.0, 6, 6), (300, 6, 500.0, 6, 6))
    (held,) = explain(live_hpa.series(scaled, samples, SYNC_S), [BEGIN + 1_000])
    assert (held.before, held.after, held.by, held.proposal) == (6, 6, DOWN_WINDOW, 2)
    with pytest.raises(ValueError, match="--at"):
        explain(live_hpa.series(scaled, samples, SYNC_S), [BEGIN - 1])


@pytest.mark.parametrize(
    ("samples", "said"),
    [
        (
            steady((600, 4, 2_250.0, 4, 4), (60, 12, 3_300.0, 10, 12), every_s=60),
            "4 syncs fit between two scrapes that are 60 s",
        ),
        (steady((600, 4, 2_250.0, 4, 4), (15, 9, 2_250.0, 4, 9)), "did someone else scale"),
        (steady((600, 4, 9_000.0), (15, 10, 33_000.0), every_s=15), "don't tell: metric or scaleUp policy"),
    ],
)
def test_what_scrapes_do_not_tell_is_not_told(samples, said):
    """Too rarely scraped; scaled by someone else; and a step that both a lag of 33,000 and one on the way to it bring."""
    found = explain(live_hpa.series(scaledobject.parse(ORDERS, "orders"), samples, SYNC_S))
    assert [one.by for one in found] == [None]
    assert said in found[0].said


def test_a_step_from_zero_is_kedas():
    """And one to it: the HPA has no part in them."""
    samples = steady((60, 0, None, 0, 0), (60, 3, 100.0, 3, 3))
    assert [one.by for one in explain(live_hpa.series(policy(None), samples, SYNC_S))] == [KEDA]


@pytest.mark.parametrize("metadata", [{"allowIdleConsumers": "false"}, {"partitionLimitation": "0-7"}])
def test_lag_of_an_exporter_is_capped_as_keda_caps_it(metadata):
    """8 partitions and 2,250 a pod: of 100,000 messages KEDA answers 18,000, and says so."""
    scaled = policy(BRISK, **{"allowIdleConsumers": "false"} | metadata)
    samples = [
        Sample(BEGIN + 5 * number, 4 if number < 60 else 8, (9_000.0 if number < 59 else 100_000.0,)) for number in range(62)
    ]
    (found,) = explain(live_hpa.series(scaled, samples, SYNC_S, 8))
    assert (found.after, found.by) == (8, "cap")


@pytest.fixture(scope="module")
def records():
    """The small records that have the HPA's log."""
    return list(explained.suited(FOLDER))


@pytest.mark.parametrize("scrape_s", [5, 15])
def test_the_reasons_of_trials_are_those_of_the_hpas_sealed_log(records, scrape_s):
    """Of their steps 95 % get the right reason within one sync; of a sync that changed nothing no other reason is told."""
    found = [one for record in records for one in explained.compare(record, scrape_s, 0.5)]
    said = {kind: [word for of, _, word in found if of == kind] for kind in ("steps", "holds")}
    assert len(said["steps"]) > 200
    assert said["steps"].count(explained.RIGHT) >= 0.95 * len(said["steps"])
    assert said["holds"].count(explained.WRONG) <= 0.01 * len(said["holds"])


def test_the_limits_that_trials_are_held_against_are_the_hpas_own_condition(records):
    """ScalingLimited in the status that a step left, which no model wrote."""
    pairs = set()
    for record in records:
        steps = {
            (one.before, one.after, round(one.t)): one.by
            for one in explained.truths(record, (None, None))
            if one.before != one.after
        }
        for status in record.hpa_statuses_of(record.policy.hpa):
            limited = next((one for one in status.conditions if one.type == "ScalingLimited"), None)
            if limited and (by := steps.get((status.current, status.desired, round(status.t)))):
                pairs.add((LIMITS.get(by, ""), limited.reason if limited.status == "True" else ""))
    assert len(pairs) >= 4
    assert all(one == other for one, other in pairs)


class Kept:
    """A Prometheus that is made up: raw samples of series, of which a query selects those whose name and labels it has."""

    def __init__(self, series):
        self.series = series

    def custom_query(self, query, params):
        """The answer to ``NAME{LABEL="VALUE",...}[Ns]``."""
        name, labels, seconds = re.fullmatch(r"(\w+)\{(.*)\}\[(\d+)s\]", query).groups()
        wanted = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        begin = params["time"] - int(seconds)
        return [
            {"metric": own, "values": [[t, str(value)] for t, value in values if begin < t <= params["time"]]}
            for of, own, values in self.series
            if of == name and wanted.items() <= own.items()
        ]


def kept(samples, label="namespace"):
    """``samples`` as kube-state-metrics' series, half of them of another pod of it."""
    own = {label: "orders", "horizontalpodautoscaler": "keda-hpa-orders-enricher"}
    target = {**own, "metric_name": "s0-kafka-orders", "metric_target_type": "average"}
    for pod in range(2):
        part = samples[: len(samples) // 2] if pod else samples[len(samples) // 2 :]
        yield "kube_deployment_spec_replicas", own | {"deployment": "orders-enricher"}, [(s.t, s.replicas) for s in part]
        yield f"{scrapes.STATUS}target_metric", target, [(s.t, s.values[0]) for s in part]
        yield f"{scrapes.STATUS}current_replicas", own, [(s.t, s.current) for s in part]
        yield f"{scrapes.STATUS}desired_replicas", own, [(s.t, s.desired) for s in part]


def lags(samples):
    """``samples`` as the replicas, and an exporter's lag of two partitions that two of its pods show."""
    of = {"namespace": "orders", "deployment": "orders-enricher"}
    yield "kube_deployment_spec_replicas", of, [(s.t, s.replicas) for s in samples]
    for partition, pod in itertools.product("01", "ab"):
        values = [(s.t, s.values[0] * s.current / 2) for s in samples]
        yield "kafka_consumergroup_lag", {"topic": "orders", "partition": partition, "pod": pod}, values


@pytest.mark.parametrize(
    ("series", "flags"),
    [
        (kept(steady(*UP)), []),
        (kept(steady(*UP), "exported_namespace"), []),
        (
            lags(steady(UP[0], (10, 4, 8_250.0, 4, 4), (15, 10, 8_250.0, 4, 10))),
            ['--query=kafka_consumergroup_lag{topic="orders"}'],
        ),
    ],
)
def test_a_prometheus_is_asked_for_raw_samples(monkeypatch, capsys, series, flags):
    """kube-state-metrics' status, also of pods that took turns and under another label, or an exporter's lag by partition."""
    monkeypatch.setattr("prometheus_api_client.PrometheusConnect", lambda **_: Kept(list(series)))
    given = ["--prometheus=http://127.0.0.1:1", "--namespace=orders", f"--from={BEGIN + 500}", f"--to={BEGIN + 625}"]
    assert main(["explain", OBJECT, *given, *flags, "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["scrape_s"] == 5
    first = content["explanations"][0]
    assert (first["before"], first["after"], first["by"]) == (4, 10, UP_POLICY)


def shown(group="orders-enricher", topic="orders", value=0.0, names=("consumergroup", "topic", "partition")):
    """A series of one exporter, of partition 0."""
    return dict(zip(names, (group, topic, "0"), strict=True)), scrapes.Curve([0.0], [value])


LATEST, EARLIEST = (policy(None, offsetResetPolicy=one) for one in ("latest", "earliest"))


@pytest.mark.parametrize(
    ("scaled", "found", "values"),
    [
        (LATEST, [shown(value=7), shown("audit", value=900)], [7]),  # of the trigger's own group and topic alone
        (LATEST, [shown(value=7), shown(topic="refunds", value=900)], [7]),
        (LATEST, [shown(value=7, names=("group_id", "topic_name", "partition_id"))] * 2, [7]),  # two of kminion's pods
        (LATEST, [shown(value=-1)], [1]),
        (EARLIEST, [shown(value=-1)], [math.nan]),  # the whole log, which no exporter of lag shows
    ],
)
def test_an_exporters_lag_is_what_the_trigger_counts(scaled, found, values):
    """Of its own group and topic, each partition once, and what is not committed as KEDA has it."""
    parts = scrapes.partition_lags(scaled, found)
    assert [scrapes.merged(curves).values for curves in parts.values()] == [pytest.approx([one], nan_ok=True) for one in values]


def test_lag_of_several_groups_is_refused():
    """Where the trigger does not name its own: any of them would be taken."""
    with pytest.raises(InputError, match="--query: 'series of several groups: a, b' is not allowed; allowed: those of one"):
        scrapes.partition_lags(LATEST, [shown("a"), shown("b")])


def test_the_text_has_the_steps_of_the_model(capsys, tmp_path):
    """Time, replicas, what decided, the arithmetic, and a lagThreshold more or less; where nothing changed, how to ask."""
    rows = [f"{BEGIN + 5 * number},{4 if number < 122 else 10},{9_000 if number < 120 else 33_000}" for number in range(124)]
    file = tmp_path / "scrapes.csv"
    file.write_text("\n".join(["time,replicas,lag", *rows]))
    assert main(["explain", OBJECT, f"--csv={file}"]) == 0
    said = capsys.readouterr().out
    assert "4 -> 10  scaleUp policy: the scale-up policies allowed no more" in said
    assert "scaleUp Max of Pods 6 per 30 s from 4 -> 10: 10" in said
    assert "with orders higher by its target for one pod: 10, lower: 10" in said
    assert main(["explain", OBJECT, f"--csv={file}", f"--to={BEGIN + 60}"]) == 0
    assert "the replicas did not change: --at TIME says why not" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([OBJECT], "--prometheus, --csv, --record: missing; allowed: one of them"),
        ([OBJECT, "--csv=x.csv", "--from=2", "--to=1"], "--from, --to: '2, 1' is not allowed; allowed: two times"),
        (["--csv=x.csv"], "--scaledobject, --context: missing; allowed: one of them"),
        ([OBJECT, "--csv=x.csv", "--context=x"], "--scaledobject, --context: '--scaledobject and --context' is not allowed"),
        (["--csv=x.csv", "--context=x"], "--name: missing; allowed: the live ScaledObject"),
        ([OBJECT, "--csv=x.csv"], "x.csv: No such file or directory; allowed: a readable file"),
        ([OBJECT, f"--csv={ORDERS_FILE}"], "line 1: "),
    ],
)
def test_what_can_not_be_read_is_one_line(capsys, arguments, line):
    """Exit code 2, and what is allowed."""
    assert main(["explain", *arguments]) == 2
    assert line in capsys.readouterr().err


def test_the_hpas_events_tell_steps_to_the_second(capsys, tmp_path):
    """Of two scrapes a minute apart nothing is told; with the events of both steps, when and why each came."""
    rows = [f"{BEGIN + 60 * number},{4 if number < 11 else 12},{9_000 if number < 10 else 40_000}" for number in range(14)]
    (tmp_path / "scrapes.csv").write_text("\n".join(["time,replicas,lag", *rows]))
    given = ["explain", OBJECT, f"--csv={tmp_path / 'scrapes.csv'}", "--json"]
    assert main(given) == 0
    assert [one["by"] for one in json.loads(capsys.readouterr().out)["explanations"]] == [None]
    about = {"reason": "SuccessfulRescale", "involvedObject": {"name": "keda-hpa-orders-enricher"}}
    items = [
        about | {"message": f"New size: {size}; reason: external metric above target", "lastTimestamp": at}
        for size, at in ((10, "2023-11-14T22:23:30Z"), (12, "2023-11-14T22:24:00Z"))
    ]
    (tmp_path / "events.json").write_text(json.dumps({"items": [*items, {"reason": "Pulled", "message": "pulled"}]}))
    assert main([*given, f"--events={tmp_path / 'events.json'}"]) == 0
    told = json.loads(capsys.readouterr().out)["explanations"]
    assert [(one["after"], one["by"]) for one in told] == [(10, UP_POLICY), (12, "maxReplicaCount")]
    assert [one["since"] for one in told] == [BEGIN + 610, BEGIN + 640]
