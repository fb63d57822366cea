"""What ``simulate`` and ``estimate`` say of small groups as users have them: the right number, or the line that says why."""

import json

import pytest
import yaml

from lab.__main__ import main
from tests.unit.inputs.written import KAFKA

CRON = {"timezone": "UTC", "start": "0 8 * * *", "end": "30 8 * * *"}
CPU = {"type": "cpu", "metricType": "Utilization", "metadata": {"value": "60"}}
SPIKE = ((0, 50, "baseline"), (300, 500, "spike"), (900, 50, "drain"))
PODS = ("--pod-rate=100", "--partitions=12", "--start-s=30")


def kafka(threshold, **metadata):
    """A kafka trigger of this lagThreshold."""
    return {"type": "kafka", "metadata": KAFKA["metadata"] | {"lagThreshold": str(threshold)} | metadata}


def cron(replicas, **metadata):
    """A cron trigger that asks for ``replicas``."""
    return {"type": "cron", "metadata": CRON | {"desiredReplicas": str(replicas)} | metadata}


@pytest.fixture
def said(tmp_path, capsys):
    """A function that runs a command on a ScaledObject of these triggers and a profile of these steps: exit code, output."""

    def run(triggers, *flags, steps=SPIKE, duration=1800, begins_at=None, workload=None, command="simulate", zipf=0, **spec):
        content = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "theirs"}}
        content["spec"] = {"scaleTargetRef": {"name": "worker"}, "triggers": triggers, **spec}
        traffic = {"kind": "steps", "duration": duration, "zipf": zipf}
        traffic["steps"] = [dict(zip(("at", "rate", "phase"), step, strict=True)) for step in steps]
        if begins_at:
            traffic["begins_at"] = begins_at
        files = {"scaledobject": content, "profile": traffic}
        if workload:
            files["workload"] = {"kind": "Workload"} | workload
        for name, written in files.items():
            (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(written))
        code = main([command, *flags, *(f"--{name}={tmp_path / name}.yaml" for name in files)])
        return code, capsys.readouterr()

    return run


@pytest.fixture
def simulated(said):
    """A function that simulates: the JSON, with the verdicts of its objectives by name."""

    def run(triggers, *flags, **more):
        code, out = said(triggers, *flags, "--json", **more)
        assert (code in (0, 1), out.err) == (True, "")
        content = json.loads(out.out)
        return content | {"verdicts": {one["objective"]: one["verdict"] for one in content["objectives"]}}

    return run


BUSY = ((0, 0, "baseline"), (300, 100, "spike"), (1500, 0, "drain"))
UP = {"policies": [{"type": "Percent", "value": 50, "periodSeconds": 60}, {"type": "Pods", "value": 3, "periodSeconds": 60}]}


@pytest.mark.parametrize(
    ("commit_ms", "least", "most"), [(None, 11, 16), (5000, 11, 16), (1000, 3, 4), (30_000, 16, 16), (100, 1, 1)]
)
def test_pods_are_taken_for_what_is_not_committed(simulated, commit_ms, least, most):
    """100/s and a lagThreshold of 20: by the workload's commits, or by those of Kafka's clients where nothing says."""
    work = None if commit_ms is None else {"partitions": 16, "process_ms": 5, "concurrency": 1, "commit_interval_ms": commit_ms}
    flags = ("--start-s=15", *(("--pod-rate=200", "--partitions=16") if work is None else ()))
    behavior = {"horizontalPodAutoscalerConfig": {"behavior": {"scaleUp": UP}}}
    found = simulated(
        [kafka(20)], *flags, steps=BUSY, duration=2400, workload=work, advanced=behavior, minReplicaCount=1, maxReplicaCount=16
    )
    assert least <= found["figures"]["most_replicas"] <= most
    assert any("are in flight, more than one lagThreshold of 20" in line for line in found["notes"]) is (least > 1)
    assert ("default of Kafka's clients" in found["in_flight"]) is (work is None)


def test_what_is_in_flight_says_why_a_drain_does_not_end(simulated):
    """125 messages at 50/s are never below a lagThreshold of 10: neither a time nor silence."""
    found = simulated([kafka(10)], *PODS, minReplicaCount=1)
    assert found["missing"]["drain_s"].endswith("one lagThreshold, 10: 125 messages are in flight at 50 messages/s")
    assert "drain_s" not in simulated([kafka(1000)], *PODS, minReplicaCount=1)["missing"]


@pytest.mark.parametrize("given", [{}, {"burn": 0}, {"cpu_request_m": 25}, {"cpu_request_m": 25, "burn": 100}])
def test_an_idle_pod_is_idle_for_a_cpu_trigger(said, simulated, given):
    """One message a second of 10 ms takes nothing of what any pod requests; what it requests and computes is asked for."""
    more = {"workload": {"partitions": 12, "process_ms": 10, "concurrency": 1, "start_s": 20} | given}
    more |= {"steps": ((0, 0, "baseline"), (300, 1, "spike"), (900, 0, "drain")), "minReplicaCount": 1, "maxReplicaCount": 12}
    if len(given) == 2:
        found = simulated([CPU, kafka(1000)], **more)
        assert (found["figures"]["most_replicas"], found["consumers"]["start_s"]) == (1, 20)
        return
    code, out = said([CPU, kafka(1000)], **more)
    assert (code, out.out) == (2, "")
    missing = [name for name in ("cpu_request_m", "burn") if name not in given]
    assert [line.split(": ")[2] for line in out.err.splitlines()] == missing
    assert out.err.count("which the cpu trigger looks at") == len(missing)


def test_two_groups_or_two_clusters_are_not_one(said):
    """The second is named with its field, as the acceptance does: what both triggers read would be the same lag."""
    for field, second in (("consumerGroup", "audit"), ("bootstrapServers", "other:9092")):
        code, out = said([kafka(500), kafka(500, topic="refunds", **{field: second})], *PODS, "--topics=2", minReplicaCount=1)
        assert (code, out.out) == (2, "")
        assert f"spec.triggers[1].metadata.{field}: '{second}' " in out.err
        assert "the one of spec.triggers[0]" in out.err


END, BASE = "replicas above the floor at the end", "replicas above the floor at baseline"


def test_an_idle_group_has_given_back_what_it_took(simulated):
    """idleReplicaCount 0 is below the floor, and so not above it."""
    steps = ((0, 100, "baseline"), (300, 1000, "spike"), (900, 0, "drain"))
    found = simulated([kafka(20)], *PODS, steps=steps, minReplicaCount=1, maxReplicaCount=5, idleReplicaCount=0)
    assert found["log"][-1]["after"] == 0
    assert (found["figures"]["above_floor_at_end"], found["verdicts"][END]) == (0, "held")


QUIET = ((0, 1, "baseline"), (600, 1, "spike"), (3000, 1, "drain"))


@pytest.mark.parametrize(
    ("metadata", "down", "verdict", "why"),
    [
        ({"end": "30 18 * * *"}, {}, "no data", "the cron window of 9 pods is open until 2024-05-22 18:30 UTC"),
        ({"start": "0 8-9 * * *", "end": "20 8,18 * * *"}, {}, "no data", "is open until 2024-05-22 18:20 UTC"),
        ({"end": "10 9 * * *"}, {"stabilizationWindowSeconds": 3600}, "no data", "3,600 s outlasts the 1,500 s that are left"),
        ({}, {"selectPolicy": "Disabled"}, "breached", ""),
        ({}, {}, "held", ""),
    ],
)
def test_what_the_end_does_not_show_is_no_data(simulated, metadata, down, verdict, why):
    """A cron window that is still open, and a scale-down window that is not over, are no breach; pods kept for ever are."""
    found = simulated(
        [cron(9, **metadata), kafka(1000)],
        *PODS,
        steps=QUIET,
        duration=4200,
        begins_at="2024-05-22T07:55:00+00:00",
        advanced={"horizontalPodAutoscalerConfig": {"behavior": {"scaleDown": down}}} if down else {},
        minReplicaCount=2,
    )
    assert found["verdicts"][END] == verdict
    assert why in found["missing"].get("above_floor_at_end", "")
    assert found["verdicts"][BASE] == "no data"


@pytest.mark.parametrize(("cooldown_s", "verdict"), [(300, "held"), (3600, "no data")])
def test_a_group_gives_back_its_last_pod_after_its_cooldown(simulated, cooldown_s, verdict):
    """What is left of the traffic must be longer."""
    steps = ((0, 0, "baseline"), (300, 50, "spike"), (900, 0, "drain"))
    found = simulated([kafka(1000)], *PODS, steps=steps, minReplicaCount=0, cooldownPeriod=cooldown_s)
    assert found["verdicts"][END] == verdict
    assert ("cooldownPeriod of 3,600 s outlasts" in found["missing"].get("above_floor_at_end", "")) is (verdict != "held")


def test_a_total_is_shared_by_the_pods_that_are_ready(simulated):
    """The HPA multiplies by those, and two are until the first new one has started."""
    total = kafka(10_000) | {"metricType": "Value"}
    steps = ((0, 100, "baseline"), (300, 1000, "spike"), (900, 100, "drain"))
    found = simulated([total], "--pod-rate=100", "--partitions=24", "--start-s=60", steps=steps, minReplicaCount=2)
    starting = [one["reasons"] for one in found["log"] if one["at"] < 355]
    assert starting
    assert all("x 2 ready pods" in " ".join(reasons) for reasons in starting)


def test_a_scale_compresses_what_is_in_flight_by_default(simulated):
    """As a trial at that scale commits."""
    real, quick = (simulated([kafka(1000)], *PODS, *scale)["consumers"]["in_flight_s"] for scale in ((), ("--scale=quick",)))
    assert (real, quick) == (2.5, pytest.approx(2.5 / 30, rel=0.01))


@pytest.mark.parametrize(("rate", "cold"), [(100, False), (300, True)])
def test_a_group_that_begins_behind_is_named(simulated, rate, cold):
    """A group that already runs has the pods that its traffic asks for."""
    notes = simulated([kafka(1000)], *PODS, steps=((0, rate, "baseline"), (300, 500, "spike")), minReplicaCount=2)["notes"]
    assert any("the group with 2 pods, its floor, where 3 keep up" in line for line in notes) is cold


@pytest.mark.parametrize(("zipf", "hot"), [(0, False), (2, True)])
def test_a_partition_that_no_pod_keeps_up_with_is_named(simulated, zipf, hot):
    """Its events get older than the group's."""
    notes = simulated([kafka(1000)], *PODS, zipf=zipf)["notes"]
    assert any("the hottest partition gets" in line for line in notes) is hot


TOPICS = [kafka(200, topic="one"), kafka(200, topic="two"), kafka(100, topic="three")]


@pytest.mark.parametrize(
    ("triggers", "flags", "spec", "note"),
    [
        (
            [cron(24)],
            ("--partitions=60",),
            {"minReplicaCount": 22},
            "cron trigger asks for 24 pods and 22 stay, as 24 / 22 = 1.09",
        ),
        (
            TOPICS,
            ("--topics=3",),
            {"minReplicaCount": 4},
            "the largest of 3 triggers, none asks for more than its 4 partitions",
        ),
        ([kafka(50)], ("--partitions=24", "--pod-rate=20"), {"minReplicaCount": 22}, "22 pods stay for"),
        ([kafka(1000, activationLagThreshold="3000")], (), {}, "activationLagThreshold 3,000 is not below lagThreshold 1,000"),
        ([kafka(1000, activationLagThreshold="3000")], (), {}, "what is in flight at 500 messages/s, 150, is not above"),
        ([kafka(10, activationLagThreshold="15")], (), {}, "what is in flight at 50 messages/s, 15, is not above"),
        (
            [kafka(10**6, activationLagThreshold="20000")],
            (),
            {"pollingInterval": 10},
            "activationLagThreshold 20,000 keeps the group",
        ),
    ],
)
def test_a_line_says_why(simulated, triggers, flags, spec, note):
    """What stands still, sleeps or goes round in a circle has its reason; a group that does none of it has no line."""
    given = {"begins_at": "2024-05-22T07:55:00+00:00"} | spec
    found = simulated(triggers, *PODS, "--in-flight-s=0.3", *flags, **given)
    assert any(note in line for line in found["notes"]), found["notes"]
    fine = simulated([kafka(1000)], *PODS, "--in-flight-s=0.3", minReplicaCount=1)
    assert fine["notes"] == []


@pytest.mark.parametrize(
    ("flags", "workload", "assumed"),
    [
        (("--pod-rate=100",), None, ["partitions 24"]),
        ((), {"process_ms": 10}, ["partitions 24, concurrency 6"]),
        (("--partitions=12",), {"start_s": 5}, ["process_ms 2-10, concurrency 6"]),
        (("--partitions=12", "--pod-rate=100"), {"start_s": 5}, []),
        (("--pod-rate=100",), {"partitions": 12}, []),
    ],
)
def test_what_is_assumed_has_a_line(said, flags, workload, assumed):
    """Partitions and pace, where neither a flag nor a workload has them: in JSON and in text."""
    content, text = (
        said([kafka(1000)], "--start-s=30", *flags, *more, workload=workload, minReplicaCount=1)[1].out
        for more in (("--json",), ())
    )
    lines = [line for line in json.loads(content)["notes"] if line.startswith("assumed, ")]
    assert [line.rpartition(": ")[2] for line in lines] == assumed
    assert [line for line in text.splitlines() if "assumed, " in line] == [f"note: {line}" for line in lines]


def test_an_estimate_takes_the_scale_of_a_session(said):
    """A lagThreshold of 50 and a pollingInterval of 30 s fit no quick trial; medium is the next."""
    steps = ((0, 5, "baseline"), (60, 50, "spike"))
    code, out = said([kafka(50)], command="estimate", minReplicaCount=1, steps=steps, duration=120)
    assert "at scale medium" in out.out
    assert code in (0, 2)  # as the machine is
    _, out = said([kafka(50)], "--json", command="estimate", minReplicaCount=1, steps=steps, duration=120)
    assert json.loads(out.out)["scale"] == "medium"


def test_topics_of_unlike_size_and_traffic(simulated, said):
    """The first topic has the most partitions, and the second the traffic: its trigger asks, for 3 partitions at most."""
    two = [kafka(100, topic="one"), kafka(100, topic="two")]
    pods = ("--pod-rate=100", "--start-s=30", "--partitions=12,3", "--in-flight-s=0.3")
    even, second = (simulated(two, *pods, *more, minReplicaCount=1) for more in ((), ("--topic-traffic=0,1",)))
    assert (even["topics"], even["partitions"]) == (2, 15)
    assert second["figures"]["most_replicas"] in (3, 4)  # one past the partitions
    assert even["figures"]["most_replicas"] >= 12
    assert any("none asks for more than its 3 partitions" in line for line in second["notes"])
    wrong = {
        "--topics=3": "--topics: 3",
        "--topic-traffic=1": "one number for each of 2",
        "--partitions=60000,60000": "on all",
    }
    for flag, line in wrong.items():
        code, out = said(two, *pods, flag, minReplicaCount=1)
        assert (code, line in out.err) == (2, True)


PROM = {"serverAddress": "http://p:9090", "threshold": "1000"}
LAG = "kafka_consumergroup_lag"


def prometheus(query, **metadata):
    """A prometheus trigger."""
    return {"type": "prometheus", "metadata": PROM | {"query": query} | metadata}


def test_a_query_that_matches_nothing_leaves_the_other_trigger(simulated):
    """fleet/prom-and-kafka-same-lag: group is no label of that metric, so kafka alone decides: 2, 4, 8, 12."""
    triggers = [prometheus(f'sum({LAG}{{group="enrich"}})', metricName="lag"), kafka(500)]
    found = simulated(triggers, *PODS, "--in-flight-s=0.3", minReplicaCount=2, maxReplicaCount=50)
    assert found["figures"]["most_replicas"] == 12
    assert any(f"{LAG} has no label group (it is consumergroup)" in line for line in found["notes"])
    assert any("metricName: KEDA ignores it" in line for line in found["remarks"])


def test_every_reason_against_four_triggers_is_told(said):
    """fleet/four-triggers-gt-zero, sqs-kafka-two-prom: a type, a query that is no lag, and type in a cpu trigger."""
    ingress = 'avg(sum(irate(ingress_requests{service="svc"}[120s])) by (pod)) or vector(0)'
    cpu = {"type": "cpu", "metadata": {"type": "Utilization", "value": "60"}}
    queue = {"type": "aws-sqs-queue", "metadata": {"queueLength": "20"}}
    lag = prometheus(f'sum({LAG}{{consumergroup="svc"}}) > 0 or vector(0)', metricName="lag")
    code, out = said([queue, prometheus(ingress, metricName="x"), lag, cpu], *PODS)
    fields = [line.partition("spec.")[2].partition(": ")[0] for line in out.err.splitlines()]
    assert (code, fields) == (2, ["triggers[0].type", "triggers[1].metadata.query", "triggers[3].metadata.type"])


def test_a_formula_over_two_topics(simulated):
    """formula-sum: KEDA's a + b, with its reasons in the log."""
    advanced = {"scalingModifiers": {"formula": "a + b", "target": "10"}}
    triggers = [kafka(10, topic="t1") | {"name": "a"}, kafka(10, topic="t2") | {"name": "b"}]
    found = simulated(triggers, *PODS, "--topics=2", "--log", advanced=advanced, maxReplicaCount=12)
    assert (found["figures"]["most_replicas"], found["figures"]["flips"]) == (12, 0)
    assert any(line.startswith("a + b with a ") for change in found["log"] for line in change["reasons"])


def test_what_the_flags_and_the_profile_lack_is_said_at_once(said):
    """The time of day for a cron trigger, and the second topic of the group."""
    code, out = said([kafka(500), kafka(500, topic="exceptions"), cron(4)], *PODS)
    assert (code, len(out.err.splitlines())) == (2, 2)
    assert "begins_at: missing" in out.err
    assert "topics: 2 in the workload" in out.err


def test_a_second_group_is_told_without_its_topic(said):
    """``--topics`` would not help it; the day that a cron trigger lacks is told beside it."""
    code, out = said([kafka(500), kafka(500, topic="other", consumerGroup="others"), cron(4)], *PODS)
    assert (code, len(out.err.splitlines())) == (2, 2)
    assert "a trial has one consumer group" in out.err
    assert "begins_at: missing" in out.err


SLOW = {"partitions": 12, "process_ms": 10, "concurrency": 1, "start_s": {"p50": 20, "p99": 200}}
ROOM = {"nodes": {"room": 4, "pods": 2, "arrives_s": 150}}


def test_starts_that_vary_have_a_median_and_a_worst_draw(simulated):
    """An objective holds where all draws hold it. ``--start-s`` replaces the quantiles, and not the nodes."""
    found = simulated([kafka(1000)], workload=SLOW | ROOM, minReplicaCount=1)
    assert (found["starts"], found["consumers"]["start_s"]) == ("p50 20 s, p99 200 s", 20)
    assert found["nodes"].startswith("4 pods have room; each further node takes 2, and arrives 150 s after")
    assert all(found["worst"][name] >= value for name, value in found["figures"].items())
    assert found["worst"]["worst_age_s"] > found["figures"]["worst_age_s"]
    assert {one["repeats"]["n"] for one in found["objectives"]} == {9}
    given = simulated([kafka(1000)], "--start-s=20", workload=SLOW | ROOM, minReplicaCount=1)
    plain = simulated([kafka(1000)], workload=SLOW | {"start_s": 20}, minReplicaCount=1)
    assert (given["starts"], given["worst"], plain["worst"], plain["nodes"]) == ("", {}, {}, "")
    assert given["figures"]["reaction_s"] == plain["figures"]["reaction_s"]
    assert given["figures"]["worst_age_s"] > plain["figures"]["worst_age_s"] + 20
    quick = simulated([kafka(1000)], "--scale=quick", workload=SLOW | ROOM, minReplicaCount=1)
    assert (quick["starts"], "arrives 5 s after" in quick["nodes"]) == ("p50 2.66667 s, p99 8.66667 s", True)
