"""One metric composed of all triggers, as scalingModifiers have it: what the HPA and KEDA's loop make of it."""

import pytest

from lab.errors import InputError
from lab.inputs.scale import Scale
from lab.inputs.triggers.common import Reading, ScalerError
from lab.model import hpa, keda
from lab.model.baseline import baseline
from lab.model.keda import Observation
from tests.unit.inputs import written
from tests.unit.inputs.written import CPU, CRON, KAFKA

FALLBACK = {"failureThreshold": 0, "replicas": 6}
ORDERS, REFUNDS = KAFKA | {"name": "orders"}, KAFKA | {"name": "refunds"}


def composing(*triggers, formula="orders + refunds", target="10", spec=None, **more):
    """An object of these triggers, orders and refunds by default."""
    advanced = {"scalingModifiers": {"formula": formula, "target": target} | more}
    return written.scaled(list(triggers) or [ORDERS, REFUNDS], advanced=advanced, **(spec or {}))


def seen(*metrics):
    """Observations of these metrics; None for one that failed."""
    return [Observation(one, False, False, int(one is None), ("as seen",)) for one in metrics]


def test_the_hpa_has_the_composed_metric_in_place_of_the_triggers_own():
    """Resource metrics stay and come first; a container's goes too, as in KEDA."""
    container = CPU | {"metadata": CPU["metadata"] | {"containerName": "consumer"}}
    for kind, field in (("AverageValue", "averageValue"), ("Value", "value")):
        made = keda.hpa(composing(ORDERS, REFUNDS, CPU, container, target="2.5", metricType=kind), {})
        cpu, composed = made["spec"]["metrics"]
        assert cpu["resource"]["name"] == "cpu"
        assert composed["external"]["metric"] == {
            "name": "composite-metric",
            "selector": {"matchLabels": {"scaledobject.keda.sh/name": "consumer"}},
        }
        assert composed["external"]["target"] == {"type": kind, field: "2500m"}


def test_activity_is_that_of_the_composed_metric():
    """Strictly above activationTarget, whatever each trigger says; an error is no activity."""
    policy = composing(activationTarget="5")
    assert [keda.state(policy, seen(*pair)).active for pair in ((2, 3), (2, 3.5))] == [False, True]
    assert (
        "orders + refunds with orders 2, refunds 3 is 5, not above activationTarget 5" in keda.state(policy, seen(2, 3)).reasons
    )
    failed = keda.state(policy, seen(100, None))
    assert (failed.active, failed.error) == (False, True)
    assert keda.compose(policy, seen(100, None)).metric is None


def test_a_negative_metric_asks_for_all_replicas():
    """The HPA takes it as an overflow: so does a division by zero, whose infinity no int64 holds."""
    for formula, pair in (("orders - refunds", (1, 2)), ("orders / refunds", (1, 0))):
        policy = composing(formula=formula, spec={"maxReplicaCount": 30})
        metric = hpa.external(keda.compose(policy, seen(*pair)).metric)
        spec = hpa.parse(keda.hpa(policy, {}), "test")
        assert hpa.proposals(spec, 4, [metric])[0] > 100_000


def test_a_formula_that_fails_gives_no_metric():
    """As nil in arithmetic does; without a fallback a nil result too."""
    policy = composing(formula="orders + refunds", spec={"fallback": FALLBACK | {"behavior": "scalingModifiers"}})
    assert "+ of nil" in keda.compose(policy, seen_failing(policy, 1, None)).reasons[0]
    assert keda.compose(composing(formula="(orders ?? 1) > 0 ? nil : orders"), seen(1, 2)).metric is None


def seen_failing(policy, *metrics):
    """Observations of triggers, of which one that is None has failed."""
    outcomes = [ScalerError("no brokers") if one is None else Reading(one, False, ()) for one in metrics]
    return [keda.observe(policy, one, 0, 10.0) for one in outcomes]


@pytest.mark.parametrize(
    ("formula", "metrics", "wanted"),
    [
        ("orders ?? 20", (7, 1), 7),
        ("orders ?? 20", (None, 1), 20),
        ("orders ?? refunds", (None, 1), 1),
        ("orders ?? refunds", (None, None), 60),
    ],
)
def test_a_fallback_to_the_formula(formula, metrics, wanted):
    """A trigger that fails is nil in it; a nil result stands for the fallback's replicas."""
    policy = composing(formula=formula, spec={"fallback": FALLBACK | {"behavior": "scalingModifiers"}})
    assert keda.compose(policy, seen_failing(policy, *metrics)).metric == wanted


def test_any_other_fallback_counts_in_place_of_the_formula():
    """Of one trigger for all: with the composed target, which must be a whole number for it."""
    policy = composing(spec={"fallback": FALLBACK})
    assert keda.compose(policy, seen_failing(policy, 1000, None)).metric == 60
    assert keda.state(policy, seen_failing(policy, 1000, None)).active
    broken = composing(target="2.5", spec={"fallback": FALLBACK})
    assert keda.compose(broken, seen_failing(broken, 1000, None)).metric is None


def test_the_loop_asks_the_triggers_itself():
    """Also where nothing scales to zero."""
    assert keda.polls(composing(spec={"minReplicaCount": 1}))
    assert not keda.polls(written.scaled([ORDERS], minReplicaCount=1))


def test_a_scale_divides_no_formula():
    """It may compare lag with numbers of its own."""
    assert composing().compressed(Scale("real", 1, 1)).modifiers
    with pytest.raises(InputError, match="none at scale quick: it divides lag"):
        composing().compressed(Scale("quick", 30, 1))


def test_a_new_group_begins_where_the_formula_takes_it():
    """24 messages of 24 uncommitted partitions, on each of two triggers, are 5 pods; with a cron trigger it is the floor."""
    assert baseline(composing(spec={"minReplicaCount": 1}), 24).replicas == 5
    daily = CRON | {"name": "daily"}
    assert baseline(composing(ORDERS, daily, formula="orders + daily", spec={"minReplicaCount": 2}), 24).replicas == 2
