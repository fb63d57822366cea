"""Scenario payments: the advanced patterns of a published text, run as its author would deploy them.

Hypothesis. Inertia (a window up of 60 s, one down of 300 s, two pods a minute) ends the jitter that bursts cause. The window
up takes the *smallest* recent recommendation, though the text says the highest, so a spike shorter than it scales nothing;
"Percent 200" triples, though the text says it doubles. lagThreshold = rate x SLO x 0.75 keeps the group within the SLO. With
a CPU trigger beside the lag the larger proposal wins, which helps a group that computes; a group whose partition is stalled
is helped by nothing but getting the message out of the way.

Method. The author's ScaledObject (manifests/payments), with the two field names put right that KEDA does not know, adopted:
only what ties it to his cluster is replaced. Pods of 166.7 payments/s, for which the author's lagThreshold 250 follows from
an SLO of 2 s. Its siblings differ in what their first line says. Which rule an HPA followed is taken from the controller's
own log, sync by sync.

Asserted. What the hypothesis says, each with its number. What the text promises and does not hold is a breach here, and in
docs/payments.md.
"""

import json
from pathlib import Path

import allure
import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from lab import objective, paths, yamlfile
from lab.board.panels import Panel, Query
from lab.board.source import Source, Window
from lab.measure import curves
from lab.measure.agreement import agreement
from lab.measure.churn import churn
from lab.measure.cost import cost
from lab.measure.flips import stability
from lab.measure.hold import hold
from lab.measure.integrity import integrity
from lab.measure.reaction import reaction
from lab.measure.rounds import rounds
from lab.measure.shutdown import STEPS, shutdowns
from lab.measure.stalled import stalled
from lab.measure.timelag import timelag
from lab.measure.upwindow import first_burst, first_stride, upwindow
from lab.measure.winner import CPU, LAG, steps_up
from lab.trial.inputs import REPLAYED, Workload
from lab.trial.record import NoData, write_json
from tests.scenarios import mixed

pytestmark = [pytest.mark.scenario, allure.epic("Real systems"), allure.feature("Payments")]

PAYMENTS = paths.MANIFESTS / "payments"
INERTIA, BARE, DEFAULTS = "as its author has it", "without inertia", "without advanced"
POISON = {"poison": "3:400", "dlq": "off", "cpu_request_m": 150}
POISONED = 6  # partitions
CONTAINMENTS = {
    "lag alone": ("scaledobject", {}),
    "lag and CPU": ("lag-and-cpu", {}),
    "persistent-lag scaler": ("persistent-lag", {}),
    "limitToPartitionsWithLag": ("limit-to-lagging", {}),
    "excludePersistentLag": ("exclude-persistent", {}),
    "retry and DLQ": ("scaledobject", {"dlq": "on"}),
}
PRINTED = paths.PROJECT / "tests" / "unit" / "autoscaling" / "data" / "payments-as-printed.yaml"
QUERIES = Path(__file__).with_name("payments-queries.yaml")
MIXTURES = {
    "range, then cooperative-sticky": (mixed.RANGE, mixed.COOPERATIVE),
    "cooperative-sticky, then range": (mixed.COOPERATIVE, mixed.RANGE),
    "range and roundrobin, then roundrobin": (mixed.BOTH_EAGER, mixed.ROUND_ROBIN),
    "cooperative-sticky or range": (mixed.EITHER,),
    "cooperative-sticky, then KIP-848": (mixed.COOPERATIVE, mixed.KIP_848),
}


def processor(**settings):
    """The payment processor: 166.7 payments/s a pod, 60 s of grace."""
    return Workload(**{"process_ms": "3-9", "concurrency": 1, "cpu_request_m": 60, "grace_s": 60} | settings)


@pytest.fixture
def run(trials):
    """Runs a profile on one of the author's ScaledObjects."""

    def once(profile, policy="scaledobject", workload=None, **how):
        return trials.run(
            profile=profile, policy=PAYMENTS / f"{policy}.yaml", workload=workload or processor(), **{"until": REPLAYED} | how
        )

    return once


@pytest.fixture
def answers(request):
    """How many series each query of the text's dashboard has over a trial; asked once, and kept in the record."""

    def ask(record):
        file = record.folder / "queries.json"
        if request.config.getoption("--from-records") is None:
            cluster = request.getfixturevalue("cluster")
            write_json(file, {name: series(Source(cluster.prometheus_url), record, one) for name, one in asked().items()})
        if not file.exists():
            raise NoData(f"{record.id} has no answers of its dashboard")
        return json.loads(file.read_text())

    return ask


@pytest.fixture
def mixtures(request, results):
    """What members of one group with different assignors were told by a real broker; kept beside the records."""
    stored = request.config.getoption("--from-records")
    file = (stored or results) / "payments-assignors.json"
    if stored is None:
        bootstrap = request.getfixturevalue("bootstrap")
        write_json(file, {name: mixed.observe(bootstrap, members) for name, members in MIXTURES.items()})
    return json.loads(file.read_text())


@pytest.fixture
def admitted(request, results):
    """What the API server makes of the printed file: validating fields strictly, as kubectl asks it to, and not at all."""
    stored = request.config.getoption("--from-records")
    file = (stored or results) / "payments-printed.json"
    if stored is None:
        with request.getfixturevalue("cluster").api() as api:
            write_json(file, {validation: created(api, validation) for validation in ("Strict", "Ignore")})
    return json.loads(file.read_text())


@allure.story("The file as printed")
def test_the_printed_file_is_refused_or_means_another_thing(admitted):
    """kubectl is told of both unknown fields; a client that does not ask loses them, and with them floor and ceiling."""
    allure.attach(json.dumps(admitted, indent=1), "the API server's answers", allure.attachment_type.JSON)
    assert admitted["Strict"]["status"] == 400
    for field in ("minReplicas", "maxReplicas"):
        assert f'unknown field "spec.{field}"' in admitted["Strict"]["message"]
    assert admitted["Ignore"]["status"] == 201
    assert not {"minReplicas", "maxReplicas", "minReplicaCount", "maxReplicaCount"} & admitted["Ignore"]["spec"].keys()


@allure.story("Inertia ends the jitter")
def test_inertia_ends_the_jitter(run, evidence):
    """Three bursts on the author's behavior, on the same without windows, and on a ScaledObject without an advanced block."""
    records = {INERTIA: run("bursty"), BARE: run("bursty", "no-inertia"), DEFAULTS: run("bursty", "defaults")}
    for name, record in records.items():
        figures = {"flips": stability(record).flips, "steps up": stability(record).scale_ups}
        figures |= {"steps down": stability(record).scale_downs, "rebalances": len(rounds(record))}
        figures |= {"in rebalances (s)": churn(record).total_s, "partitions handed over": churn(record).assigned}
        figures |= {"pod-minutes": cost(record).pod_minutes, "peak lag": curves.peak_lag(record)}
        evidence.report(name, figures | {"reaction (s)": reaction(record).total_s})

    with evidence.of(records) as judge:
        judge(objective.RESTLESS, lambda: stability(records[BARE]).flips)
        judge(objective.INERT, lambda: stability(records[INERTIA]).flips)
        judge(objective.FEWER_REBALANCES, lambda: len(rounds(records[INERTIA])) / len(rounds(records[BARE])))
        judge(objective.FEWER_MOVES, lambda: churn(records[INERTIA]).assigned / churn(records[BARE]).assigned)


@allure.story("The window up takes the smallest recent recommendation")
def test_a_spike_shorter_than_the_window_scales_nothing(run, evidence):
    """A spike of 10 s and then a flood, with a window up of 60 s and without; each sync judged by both rules."""
    held, bare = run("payments-spike"), run("payments-spike", "no-inertia")
    found = upwindow(held)
    evidence.explain(f"The controller's own reason in the HPA's status: {found.said!r}")
    figures = {"syncs that asked for more": found.asking, "the rules differ": found.told_apart, "stayed": found.stayed}
    evidence.report(INERTIA, figures | {"went up by the smallest": found.followed, "of": found.beyond})

    with evidence.of({INERTIA: held, BARE: bare}) as judge:
        judge(objective.SHORT_SPIKE_SEEN, lambda: first_burst(bare))
        judge(objective.SHORT_SPIKE, lambda: first_burst(held))
        judge(objective.TOLD_APART, lambda: found.told_apart)
        judge(objective.NOT_HIGHEST, lambda: found.raised)
        judge(objective.SMALLEST, lambda: share(found.followed, found.beyond))
        judge(objective.AGREES, lambda: agreement(held).agreement)
    assert "lowest recent recommendation" in found.said


@allure.story("Percent 200 triples")
def test_percent_200_triples(run, evidence):
    """With a flood in front of it the first period of the policies takes the group to three times its replicas."""
    bare = run("payments-spike", "no-inertia")

    with evidence.of(bare) as judge:
        judge(objective.TRIPLES, lambda: first_stride(bare))


@allure.story("lagThreshold follows from a pod's rate and the SLO")
def test_the_computed_threshold_holds_the_slo(run, evidence):
    """250 = 166.7/s x 2 s x 0.75 keeps the group within 2 s; ten times that does not."""
    computed, late = run("plateau"), run("plateau", "late")
    for name, record in {"250": computed, "2500": late}.items():
        figures = {"behind (s)": hold(record).behind_s, "time lag p50 (s)": timelag(record).median_s}
        figures |= {"time lag p95 (s)": timelag(record).p95_s, "processed of those due": timelag(record).share}
        evidence.report(name, figures | {"pods": hold(record).replicas, "pod-minutes": cost(record).pod_minutes})

    with evidence.of({"250": computed, "2500": late}) as judge:
        judge(objective.BEHIND, lambda: hold(computed).behind_s)
        judge(objective.AGED, lambda: timelag(computed).p95_s)
        judge(objective.OVER_SLO, lambda: hold(late).behind_s)

    evidence.conclude("lagThreshold", 250, "166.7 payments/s x 2 s x 0.75, computed by python -m lab threshold")


@allure.story("A group that computes is scaled by its CPU, before there is lag")
def test_the_larger_of_lag_and_cpu_wins(run, evidence):
    """Consumers that spend a fifth of their time computing keep up on 3 pods, over the CPU target: CPU asks for more first."""
    heavy = processor(burn=18, cpu_request_m=150)
    both, alone = run("payments-heavy", "lag-and-cpu", heavy), run("payments-heavy", workload=heavy)
    for step in steps_up(both):
        figures = {"from": step.before, "to": step.after, "CPU (%)": step.values.get(CPU), "lag per pod": step.values.get(LAG)}
        figures |= {"CPU asks for": step.proposals.get(CPU), "lag asks for": step.proposals.get(LAG)}
        evidence.report(f"{step.before} -> {step.after}, {step.won} won", figures)

    with evidence.of({"lag and CPU": both, "lag": alone}) as judge:
        judge(objective.CPU_FIRST, lambda: steps_up(both)[0].won == CPU)
        judge(objective.LARGEST, lambda: sum(step.after != step.largest for step in steps_up(both)))
        judge(objective.LOW_LAG, lambda: max(step.proposals[LAG] for step in steps_up(both)))
        judge(objective.LAG_ALONE, lambda: ups_since_spike(alone))


@pytest.fixture
def poisoned(run):
    """Runs the poisoned traffic with one of CONTAINMENTS."""

    def once(name):
        policy, settings = CONTAINMENTS[name]
        return run("payments-poison", policy, processor(**POISON | settings), partitions=POISONED)

    return once


@pytest.mark.parametrize("name", ["lag alone", "lag and CPU", "persistent-lag scaler"])
@allure.story("Poison: a stalled partition buys every pod it can, and none helps")
def test_a_poison_pill_scales_out_for_nothing(poisoned, evidence, name):
    """One message that never succeeds: as many pods as there are partitions, and not a message of its partition more."""
    record = poisoned(name)

    with evidence.of({name: record}) as judge:
        judge(objective.STALL, lambda: stalled(record).progress)
        judge(objective.RUNAWAY, lambda: stalled(record).most / POISONED)


@pytest.mark.parametrize("name", ["retry and DLQ", "excludePersistentLag"])
@allure.story("Poison: what contains it")
def test_a_poison_pill_is_contained(poisoned, evidence, name):
    """No pod is bought for it; only with a DLQ does its partition go on."""
    record = poisoned(name)

    with evidence.of({name: record}) as judge:
        judge(objective.CONTAINED, lambda: stalled(record).scale_ups)
        if name == "retry and DLQ":
            judge(objective.MOVES_ON, lambda: stalled(record).waiting)
        else:
            judge(objective.STALL, lambda: stalled(record).progress)


@allure.story("Poison: limitToPartitionsWithLag counts work in flight")
def test_partitions_at_work_are_partitions_with_lag(poisoned, evidence):
    """Every partition that is being worked on has a message or two uncommitted, so the limit lets the group scale out."""
    record = poisoned("limitToPartitionsWithLag")

    with evidence.of(record) as judge:
        judge(objective.STALL, lambda: stalled(record).progress)
        judge(objective.UNLIMITED, lambda: stalled(record).scale_ups)


@allure.story("Poison: side by side")
def test_what_contains_a_poison_pill(poisoned, evidence):
    """All of them in one table, on the same traffic."""
    records = {name: poisoned(name) for name in CONTAINMENTS}
    for name, record in records.items():
        found = stalled(record)
        figures = {"most replicas": found.most, "steps up": found.scale_ups, "waiting on the partition": found.waiting}
        figures |= {"committed past the poison": found.progress, "waiting on the others": found.others}
        evidence.report(name, figures | {"pod-minutes": found.pod_minutes, "of it above the floor": found.useless})

    with evidence.of(records) as judge:
        judge(objective.STALL, lambda: sum(stalled(one).progress for name, one in records.items() if name != "retry and DLQ"))
        judge(objective.MOVES_ON, lambda: stalled(records["retry and DLQ"]).waiting)


@allure.story("Graceful shutdown, step by step")
def test_a_pod_that_is_taken_leaves_in_order(run, evidence):
    """Every pod that a scale-down took from its work: signal, in-flight work, commit, leave, exit 0, within its grace."""
    record = run("bursty", "no-inertia")
    taken = shutdowns(record)
    left = [one for one in taken if one.joined]
    for number, one in enumerate(sorted(left, key=lambda one: -one.total_s)[:5]):
        evidence.report(f"pod {number + 1} (s after its deletion)", {step: one.steps.get(step) for step in STEPS})
    evidence.report("taken while they started", {"pods": len(taken) - len(left)})

    with evidence.of(record) as judge:
        judge(objective.TAKEN, lambda: len(left))
        judge(objective.ORDERLY, lambda: sum(not one.in_order for one in left))
        judge(objective.CLEAN, lambda: sum(one.exit_code != 0 for one in left))
        judge(objective.IN_GRACE, lambda: max(one.total_s for one in left))
        judge(objective.DOUBLED, lambda: integrity(record).doubled)
        judge(objective.NOT_LOST, lambda: integrity(record).lost)


@allure.story("The dashboard's queries answer")
def test_every_query_of_the_text_answers(run, evidence, answers):
    """Each query as printed, and where its name is gone what asks the same today."""
    record = run("bursty")
    found = answers(record)
    for name, one in found.items():
        evidence.report(name, {"series, as printed": one["printed"], "series, today": one["today"]})

    with evidence.of(record) as judge:
        judge(objective.ANSWERED, lambda: sum(not one["today"] for one in found.values()))
    assert {name for name, one in found.items() if not one["printed"]} == {
        name for name, one in asked().items() if one.get("now")
    }, "what is said to be gone is gone, and nothing else"


@allure.story("Two assignors in one group")
def test_a_member_with_another_assignor_is_refused(mixtures):
    """range and cooperative-sticky have nothing in common: the coordinator refuses the second member, and nobody falls back."""
    allure.attach(json.dumps(mixtures, indent=1), "what each member was told", allure.attachment_type.JSON)
    for order in ("range, then cooperative-sticky", "cooperative-sticky, then range"):
        found = mixtures[order]
        first, second = found["members"]["member-1"], found["members"]["member-2"]
        assert "INCONSISTENT_GROUP_PROTOCOL" in second["errors"], order
        assert (second["owned"], first["owned"]) == ([], [*range(mixed.PARTITIONS)]), order
        assert found["assignor"] == first["strategy"]["partition.assignment.strategy"], "the group did not fall back"
    common = mixtures["range and roundrobin, then roundrobin"]
    assert common["assignor"] == "roundrobin"
    assert all(one["owned"] for one in common["members"].values())
    assert "member-1" in mixtures["cooperative-sticky or range"]["refused"]
    upgraded = mixtures["cooperative-sticky, then KIP-848"]
    assert upgraded["protocol"] == "CONSUMER"
    assert all(one["owned"] for one in upgraded["members"].values())


def created(api, validation):
    """The API server's answer to a dry run that creates the printed file, as plain data."""
    body = yamlfile.read(PRINTED)
    body["metadata"]["namespace"] = "default"
    where = ("keda.sh", "v1alpha1", "default", "scaledobjects")
    try:
        made = client.CustomObjectsApi(api).create_namespaced_custom_object(
            *where, body, dry_run="All", field_validation=validation
        )
    except ApiException as refused:
        return {"status": refused.status, "message": json.loads(refused.body)["message"]}
    return {"status": 201, "spec": made["spec"]}


def asked():
    """The text's queries by name."""
    return {one["name"]: one for one in yamlfile.read(QUERIES)["queries"]}


def series(source, record, query):
    """How many series a query has over the trial, as printed and as it is asked today, with the trial's names in it."""
    names = yamlfile.read(record.folder / "inputs" / "configmap-trial.yaml")["data"]
    ours = {"payment-processor-group": names["GROUP"], "incoming-payments": names["TOPIC"]}
    ours |= {"payment-processor-deployment": "consumer"}
    times = record.trial["times"]
    window = Window.until("", times["ended"], times["ended"] - times["driving"])

    def count(expr):
        for theirs, own in ours.items():
            expr = expr.replace(theirs, own)
        found = source.panel(Panel(query["name"], "", "", (Query(expr, ""),)), window)
        return sum(any(value is not None for value in one.values) for one in found)

    return {"printed": count(query["expr"]), "today": count(query.get("now", query["expr"]))}


def share(part, whole):
    """Percent; no data of nothing."""
    if not whole:
        raise NoData("no sync at which all of the window asked for more")
    return 100 * part / whole


def ups_since_spike(record):
    """Steps up since the spike began."""
    spike = curves.zero(record)
    return sum(change.after > change.before and change.t >= spike for change in curves.scalings(record))
