"""Ride-hailing: a Friday evening, a nightly batch, a dashboard and a queue of riders (docs/ride-hailing.md).

Hypothesis. The text's ScaledObjects do what it says of them: trip analytics keeps up with 1,400 events/s where two fixed pods
fall behind by 1,000 a second; fare reconciliation costs nothing while there is nothing, and a minute when there is; the
dashboard is less than 3 s old and more than 95 % of its surge multipliers are true; matching gets a pod for each 100 waiting
riders; and HPA and KEDA live side by side, as long as no Deployment has both.

Method. The manifests as their author deploys them (manifests/ridehailing), one trial for each part. The text's timeline is set
beside what its own numbers add up to, what the model of KEDA and HPA foretells at real time, and what was measured. Events of
the dashboard come from Locust through the HTTP ingestion service; the generator's truth is computed again from its seed.

Asserted. What the text claims, each with its number, and what must hold of any trial: nothing is lost or processed twice. Not
asserted are the text's figures of normal hours (staleness < 1 s, accuracy > 95 %): they are reported. Accuracy has held in no
session, since it takes more updates of a zone than normal hours have; staleness in one, where two cores made shorter batches.
"""

import copy
import uuid
from typing import Any

import allure
import pytest
import yaml
from kubernetes import client
from kubernetes.dynamic import DynamicClient

from lab import paths, yamlfile
from lab.cluster import apply, keda
from lab.errors import InputError, LabFault, NoData
from lab.foresee.group import Consumers
from lab.foresee.simulate import Situation, simulate
from lab.judge import objective
from lab.judge.objective import Objective
from lab.measure import age, dashboard, fleet, load, timeline
from lab.measure.cost import cost
from lab.measure.flips import stability
from lab.measure.integrity import integrity
from lab.measure.reaction import reaction
from lab.measure.signal import polled
from lab.ridehailing import claims, message
from lab.ridehailing.city import SURGE, WEIGHTS, City
from lab.ridehailing.shape import rate_at
from lab.spec import profile, scaledobject
from lab.spec.inputs import REPLAYED
from lab.spec.placement import shares
from lab.spec.workload import Workload
from lab.wait import until

pytestmark = [pytest.mark.scenario, allure.epic("Real systems"), allure.feature("Ride-hailing")]

MANIFESTS = paths.MANIFESTS / "ridehailing"
# 50 ms a message and 200 messages/s a pod: ten at a time.
TRIPS = Workload(process_ms="50", concurrency=10, cpu_request_m=50)
# The same for a lagThreshold divided like the time: what is not committed yet weighs 30 times more, so it is committed sooner.
SOONER = Workload(process_ms="50", concurrency=10, cpu_request_m=50, commit_interval_ms=50)
# 50 messages/s a pod: the batch outlasts the start of ten pods.
FARES = Workload(process_ms="200", concurrency=10, cpu_request_m=50)
COLD_START_S = 30.0  # of a pod at real time, for the model: the text's own least (image, JVM, group)

DEFICIT = Objective("growth of lag with two fixed pods", ">", 950, "messages/s", "1,400 events/s less 400, the text's 1,000")
KEPT_UP = Objective(
    "growth of lag with the ScaledObject, in the second half of 1,400 events/s", "<", 0, "messages/s", "it catches up by then"
)
FORETOLD = Objective("peak lag, foretold at real time", "<", 35_000, "messages", "the highest of the text's own table")
FIRST_STEP = Objective("first step after T+0, at real time", "<", 45, "s", "the text's T+45")
RECOVERED = Objective("lag at T+600 over what the floor may hold", "<=", 1, "x", "as written it catches up, two pods don't")
CHEAPER = Objective("pod-minutes of a month over those of four fixed pods", "<=", 0.74, "x", "the text's -26 %")
SINGLE = Objective("events of the batch of one", "==", 1, "events", "or there was nothing to wake for")
WAITING = Objective("of them without a commit at the end", "==", 1, "events", "it is there, and nobody comes for it")
POLLED = Objective("polls of KEDA's that read a lag of one", ">=", 10, "polls", "it has looked, and looked again")
ASLEEP = Objective("replicas after a single event", "==", 0, "pods", "activationLagThreshold 1 asks for more than one")
AWAKE = Objective(
    "first event to the first receipt, at real time", "<", 60, "s", "the text's 30 to 60 s, which a batch can bear"
)
TEN = Objective("most replicas of the batch", "==", 10, "pods", "ceil(5,000 / 500)")
TO_ZERO = Objective("replicas at the end", "==", 0, "pods", "nothing to do costs nothing")
JUMP = Objective("replicas given back in the last step to zero", ">", 1, "pods", "KEDA's way to zero knows no scaleDown policy")
STALE = Objective("p99 of the age at which events are in the table, at the peak", "<", 3, "s", "the text's dashboard staleness")
TRUE = Objective("surge multipliers that are true, at the peak", ">", 95, "%", "the text's surge pricing accuracy")
COVERED = Objective("events that no batch of the table took", "==", 0, "events", "the dashboard has read all of them")
IN_TABLE = Objective("events that batches took and the table does not sum up", "==", 0, "events", "none late, none unknown")
WEIGHED = Objective("a task's share off the text's 5 : 3 : 1, the furthest", "<", 3, "% points", "six times what chance allows")
ANSWERED = Objective("requests without a certain answer", "==", 0, "requests", "202 means that the broker has it")
FAILED = Objective("requests that Locust counts as failed", "==", 0, "requests", "of every kind, quotes too")
FORMULA = Objective("replicas of matching off ceil(pending / 100)", "==", 0, "pods", "at rest under 500 waiting riders")
MATCHERS = Objective("replicas of matching under 500 waiting riders", "==", 5, "pods", "the text's ceil(500 / 100)")
ON_CPU = Objective("most replicas of the riders' API", ">", 1, "pods", "its plain HPA works beside KEDA's")
CONTESTED = Objective("HPAs of one Deployment that say AmbiguousSelector", "==", 2, "HPAs", "both, and so neither decides")
FROZEN = Objective("changes of the replicas of the Deployment with two HPAs", "==", 0, "steps", "they don't fight: they stop")

ADMISSION_S = 30  # for KEDA's webhook to have seen an object that was just applied: milliseconds, and a busy machine
OWNED = "the workload 'contested' of type 'apps/v1.Deployment' is already managed by the hpa 'contested-cpu'"


@pytest.fixture
def admitted(request):
    """A namespace of a cluster whose KEDA has its admission webhooks: its API client and its name."""
    if request.config.getoption("--from-records"):
        pytest.skip("asks a running KEDA")
    api = request.getfixturevalue("cluster").api()
    if not client.AdmissionregistrationV1Api(api).list_validating_webhook_configuration().items:
        pytest.skip("this runtime's KEDA has no admission webhooks")
    namespace = f"admission-{uuid.uuid4().hex[:8]}"
    apply.objects(api, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}])
    yield api, namespace
    client.CoreV1Api(api).delete_namespace(namespace)


def policy(name):
    """A ScaledObject as its author deploys it, which the trial adopts."""
    return MANIFESTS / f"{name}.yaml"


@pytest.fixture
def divided(tmp_path, scale):
    """The text's ScaledObject with its lagThreshold divided like the scale divides the time."""
    content = yamlfile.read(policy("trip-analytics"))
    lag_threshold = round(int(content["spec"]["triggers"][0]["metadata"]["lagThreshold"]) / scale.time)
    content["spec"]["triggers"][0]["metadata"]["lagThreshold"] = str(lag_threshold)
    file = tmp_path / f"trip-analytics-{lag_threshold}.yaml"
    file.write_text(yaml.safe_dump(content, sort_keys=False))
    return file


def foretold():
    """The evening's curve and its timeline as the model of KEDA, HPA and group has them at real time."""
    traffic = profile.load(paths.PROFILES / "trips.yaml")
    scaled = scaledobject.parse(yamlfile.read(policy("trip-analytics")), policy("trip-analytics"))
    pods = Consumers(rate=claims.POD_RATE, start_s=COLD_START_S)
    curve = simulate(Situation(traffic, shares(traffic, 1, claims.PARTITIONS), pods, tail_s=600), scaled)
    start = next(step.at for step in traffic.steps if step.phase != profile.BASELINE)
    return curve, timeline.foretold(curve, start, [row.at for row in claims.TIMELINE], lambda t: rate_at(traffic, t - 0.001))


@allure.story("Trip analytics")
def test_trip_analytics_keeps_up_with_friday_evening(trials, evidence, divided):
    """The text's timeline row by row, with its ScaledObject, with its lagThreshold divided like the time, and with two pods."""
    plan = {"profile": "trips", "workload": TRIPS, "partitions": claims.PARTITIONS}
    written = trials.run(policy=policy("trip-analytics"), **plan)
    shaped = trials.run(policy=divided, **plan | {"workload": SOONER})
    fixed = trials.run(policy="two-pods", until=REPLAYED, **plan)
    at = [row.at for row in claims.TIMELINE]

    def first_step(record):
        steps = [step.t for step in record.scalings if step.after > step.before]
        if not steps:
            raise NoData("the group was never scaled up")
        return (steps[0] - record.zero) * record.scale.time

    def recovered(record):
        return timeline.moments(record, at[-1:])[0].lag / (record.lag_threshold * record.policy.min_replicas)

    curve, model = foretold()
    seen, alike, own = timeline.moments(written, at), timeline.moments(shaped, at), claims.implied(claims.TIMELINE)
    for row, own_lag, one, same, told in zip(claims.TIMELINE, own, seen, alike, model, strict=True):
        evidence.report(
            f"T+{row.at:g}",
            {
                "rate: text": row.rate,
                "rate: measured": one.rate,
                "lag: text": row.lag,
                "lag: its own rates and replicas": own_lag,
                "lag: model at real time": told.lag,
                "lag: measured, threshold divided like time": same.real_lag,
                "lag: measured, as written": one.real_lag,
                "replicas: text": row.replicas,
                "replicas: model at real time": told.wanted,
                "replicas: threshold divided like time": same.wanted,
                "replicas: as written": one.wanted,
            },
        )
    for name, record in {"as written": written, "divided": shaped, "two pods": fixed}.items():
        evidence.report(
            name,
            {"oldest event (s, as seen)": age.oldest(record), "idle ratio": cost(record).idle_ratio}
            | {"pod-minutes (real)": cost(record).real_pod_minutes, "flips": stability(record).flips},
        )

    with evidence.of({"as written": written, "lagThreshold divided": shaped, "two pods": fixed}) as judge:
        judge(DEFICIT, lambda: timeline.growth(fixed, "spike"))
        judge(KEPT_UP, lambda: timeline.growth(shaped, "spike", last=0.5))
        judge(FORETOLD, lambda: float(curve.lag.max()))
        judge(FIRST_STEP, lambda: first_step(shaped))
        judge(RECOVERED, lambda: recovered(written))
        for record in (written, shaped):
            judge(objective.FLOOR, lambda record=record: stability(record).above_floor_at_end)
            judge(objective.UNPROCESSED, lambda record=record: integrity(record).produced - integrity(record).processed)
            judge(objective.DOUBLED, lambda record=record: integrity(record).doubled)


@allure.story("Fare reconciliation")
def test_fares_are_reconciled_from_zero_and_back(trials, evidence):
    """One event wakes nobody; 5,000 do, and the first waits for a pod; then all pods go at once."""
    plan = {"workload": FARES, "partitions": claims.PARTITIONS}
    single = trials.run(profile="fares-one", policy=policy("fare-reconciliation"), until=REPLAYED, **plan)
    batch = trials.run(profile="fares", policy=policy("fare-reconciliation"), **plan)
    slow = trials.run(profile="fares", policy=policy("fare-reconciliation-slow-down"), **plan)

    def most(record):
        return int(record.replicas["desired"].max())

    def last_step(record):
        steps = record.scalings
        if not steps or steps[-1].after != 0:
            raise NoData("the group did not come back to zero")
        return steps[-1].before

    for name, record in {"as written": batch, "one pod a minute": slow}.items():
        found = reaction(record)
        figures = {"first event to any receipt (s)": found.total_s, "the same at real time (s)": found.real_s} | found.parts
        evidence.report(
            name, figures | {"first event to its own receipt (s)": age.first(record), "last step": last_step(record)}
        )

    with evidence.of({"one event": single, "batch": batch, "batch, slow down": slow}) as judge:
        judge(SINGLE, lambda: integrity(single).produced)
        judge(WAITING, lambda: integrity(single).uncommitted)
        judge(POLLED, lambda: polled(single, 1))
        judge(ASLEEP, lambda: most(single))
        judge(AWAKE, lambda: reaction(batch).real_s)
        judge(TEN, lambda: most(batch))
        judge(TO_ZERO, lambda: batch.replicas["desired"].iloc[-1])
        judge(JUMP, lambda: last_step(slow))
        judge(objective.UNPROCESSED, lambda: integrity(batch).produced - integrity(batch).processed)
        judge(objective.DOUBLED, lambda: integrity(batch).doubled)


@allure.story("What it costs")
def test_the_month_costs_less(trials, evidence, divided):
    """Pod-minutes of a month, from the measured evening and the measured batch."""
    plan = {"partitions": claims.PARTITIONS}
    evening = trials.run(profile="trips", policy=divided, workload=SOONER, **plan)
    batch = trials.run(profile="fares", policy=policy("fare-reconciliation"), workload=FARES, **plan)
    minutes = (evening.end - evening.time("settling")) / 60 * evening.scale.time
    before, after = claims.monthly(4, 2, cost(evening).real_pod_minutes, minutes, cost(batch).real_pod_minutes)
    evidence.report("month", {"before (pod-minutes)": before, "after (pod-minutes)": after, "idle": cost(evening).idle_ratio})

    with evidence.of({"evening": evening, "batch": batch}) as judge:
        judge(CHEAPER, lambda: after / before)


@allure.story("The dashboard")
def test_the_dashboard_is_fresh_and_its_multipliers_are_true(trials, evidence):
    """Locust, ingestion, Kafka, Spark: event time to table, and the table's multipliers beside the generator's."""
    record = trials.run(
        profile="trips-http",
        policy=policy("trip-analytics"),
        # A tenth of the traffic: a pod of a tenth as many at a time.
        workload=Workload(process_ms="50", concurrency=1, cpu_request_m=50),
        partitions=claims.PARTITIONS,
        until=REPLAYED,
        beside=("ridehailing/ingestion", "ridehailing/analytics"),
        driver="ridehailing/locust",
    )
    city = City(record.inputs.seed, 20, 500)

    def update(entity_id):
        kind, number = message.named(entity_id)
        return number if kind == SURGE else None

    def right(phase):
        return dashboard.accuracy(record, city.zones, city.multiplier, update, phase)

    def off_weight():
        asked, whole = load.shares(record), sum(WEIGHTS.values())
        return max(100 * abs(asked.get(f"/api/events/{kind}", 0.0) - one / whole) for kind, one in WEIGHTS.items())

    made = load.load(record)
    for name, phase in {"at the peak": "spike", "in normal hours": "drain"}.items():
        delay, share = dashboard.staleness(record, phase), right(phase)
        evidence.report(
            name,
            {
                "staleness, median (s)": delay.median,
                "staleness, p99 (s)": delay.p99,
                "staleness, worst (s)": delay.worst,
                "micro-batch (s)": delay.batch_s,
                "multipliers true (%)": 100 * share.table,
                "at best, with these updates (%)": 100 * share.at_best,
            },
        )
    evidence.report("consumer group", {"oldest event (s)": age.oldest(record)})
    evidence.report(
        "Locust",
        {"users, most": made.users, "requests/s": made.rate, "median (ms)": made.median_ms, "p99 (ms)": made.p99_ms}
        | {f"share of {name.rpartition('/')[2]} (%)": 100 * share for name, share in load.shares(record).items()},
    )
    whole = sum(WEIGHTS.values())
    evidence.report("weights of the text", {f"share of {kind} (%)": 100 * one / whole for kind, one in WEIGHTS.items()})

    with evidence.of(record) as judge:
        judge(STALE, lambda: dashboard.staleness(record, "spike").p99)
        judge(TRUE, lambda: 100 * right("spike").table)
        judge(COVERED, lambda: dashboard.staleness(record).missing)
        judge(IN_TABLE, lambda: dashboard.uncounted(record))
        judge(WEIGHED, off_weight)
        judge(ANSWERED, lambda: integrity(record).unknown_or_failed)
        judge(FAILED, lambda: load.load(record).failures)
        judge(objective.DOUBLED, lambda: integrity(record).doubled)


@allure.story("Side by side")
def test_hpa_and_keda_live_side_by_side(trials, evidence):
    """Riders wait for quotes and drivers: three scalers in one namespace, and a Deployment with two of them."""
    record = trials.run(
        profile="trips-rides",
        policy=policy("trip-analytics"),
        workload=TRIPS,
        partitions=claims.PARTITIONS,
        until=REPLAYED,
        beside=("ridehailing/rider-api", "ridehailing/driver-matching", "ridehailing/contested"),
        driver="ridehailing/riders",
    )
    hpas = ("contested-cpu", "keda-hpa-contested-lag")

    def at_rest():
        phases: Any = record.phases.set_index("label")
        start, end = (float(phases.loc["spike", name]) for name in ("start", "end"))
        said = fleet.said(record, "keda-hpa-driver-matching-scaler", 100, 3, 30)
        rest = [one for one in said if start + (end - start) * 2 / 3 <= one.t <= end]
        if not rest:
            raise NoData("the HPA of matching said nothing in the spike's last third")
        return rest

    def ambiguous():
        return sum(any(reason == "AmbiguousSelector" for _, _, reason, _ in fleet.conditions(record, hpa)) for hpa in hpas)

    for hpa in hpas:
        for kind, status, reason, text in fleet.conditions(record, hpa):
            evidence.explain(f"{hpa}: {kind} {status}, {reason}: {text}")
    evidence.report(
        "matching under 500 riders",
        {"pending, mean": sum(one.total for one in at_rest()) / len(at_rest()), "replicas": at_rest()[-1].wanted},
    )
    evidence.report("pod-minutes (as seen)", {app: fleet.pod_minutes(record, app) for app in ("rider-api", "driver-matching")})

    with evidence.of(record) as judge:
        judge(MATCHERS, lambda: at_rest()[-1].wanted)
        judge(FORMULA, lambda: max(abs(one.wanted - one.formula) for one in at_rest()))
        judge(ON_CPU, lambda: max(count for _, count in fleet.wanted(record, "rider-api")))
        judge(CONTESTED, ambiguous)
        judge(FROZEN, lambda: len(fleet.wanted(record, "contested")) - 1)
        judge(ANSWERED, lambda: integrity(record).unknown_or_failed)
        judge(FAILED, lambda: load.load(record).failures)


@allure.story("Side by side")
def test_keda_refuses_a_deployment_that_an_hpa_has(admitted):
    """HPA first: its ScaledObject is refused. ScaledObject first: the HPA is let in, and every later edit of it is refused."""
    api, namespace = admitted
    deployment, contested, scaled = yamlfile.documents(policy("contested"))
    deployment["spec"]["replicas"] = 0
    hpa = copy.deepcopy(contested)
    del hpa["metadata"]["annotations"]
    edited = copy.deepcopy(scaled)
    edited["spec"]["maxReplicaCount"] = 7

    def said(of=scaled):
        return keda.refusal(api, of, namespace)

    def edit():
        try:
            apply.objects(api, [edited], namespace)
        except LabFault as refused:
            return str(refused)
        return ""

    def taken():
        resource = DynamicClient(api).resources.get(api_version=scaled["apiVersion"], kind=scaled["kind"])
        return bool(resource.get(name=scaled["metadata"]["name"], namespace=namespace).metadata.finalizers)

    apply.objects(api, [deployment, hpa], namespace)
    until(lambda: said() is not None, ADMISSION_S, "the refusal")
    assert said() == OWNED
    apply.objects(api, [contested], namespace)
    until(lambda: said() is None, ADMISSION_S, "the annotation that lets it through")

    apply.delete(api, [contested], namespace)
    apply.objects(api, [scaled], namespace)
    until(taken, ADMISSION_S, "KEDA's finalizer")
    apply.objects(api, [hpa], namespace)
    until(lambda: edit() != "", ADMISSION_S, "the refusal of an edit")
    assert OWNED in edit()
    allure.attach(edit(), "KEDA's refusal of the edit", allure.attachment_type.TEXT)

    for name in ("driver-matching-as-written", "fare-reconciliation-as-written"):
        assert said(yamlfile.read(policy(name))) is None  # what the text gets wrong is not KEDA's to see here


@allure.story("As the text has it")
def test_what_the_text_gets_wrong_is_said(evidence):
    """A field KEDA does not know is refused by name; a row of the timeline that its own numbers contradict is found."""
    file = policy("driver-matching-as-written")
    with pytest.raises(InputError, match="metricName"):
        scaledobject.parse(yamlfile.read(file), file)
    wrong = [row.at for row, own in zip(claims.TIMELINE, claims.implied(claims.TIMELINE), strict=True) if row.lag < own / 1.1]
    assert wrong == []  # never too low ...
    high = [row.at for row, own in zip(claims.TIMELINE, claims.implied(claims.TIMELINE), strict=True) if row.lag > own * 1.1]
    assert high == [45, 60, 90, 120, 180, 360, 480, 600]  # ... and from T+45 on too high
    assert claims.users_for(claims.TIMELINE[4].rate, 0.125) == 175  # of the 5,000 that it starts
