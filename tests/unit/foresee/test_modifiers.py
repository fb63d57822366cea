"""A simulated group whose metric a formula composes."""

import pytest

from lab.errors import InputError
from lab.foresee import variants
from lab.foresee.notes import notes
from lab.foresee.scaler import Scaler
from lab.foresee.simulate import simulate
from lab.inputs import scaledobject
from tests.unit.foresee.groups import CPU, TWO, asking, lag_150_with, of_topics
from tests.unit.foresee.test_triggers import BUSY, used


def composing(content, formula, target, **more):
    """``content`` with a formula over its triggers, which are named a, b and so on."""
    content["spec"]["triggers"] = [one | {"name": "abc"[n]} for n, one in enumerate(content["spec"]["triggers"])]
    modifiers = {"formula": formula, "target": str(target)} | more
    content["spec"]["advanced"] = (content["spec"].get("advanced") or {}) | {"scalingModifiers": modifiers}
    return scaledobject.parse(content, "so.yaml")


def test_the_sum_of_two_topics_is_the_lag_of_both():
    """As one trigger without a topic counts it, where no partition limits either."""
    both = simulate(TWO, of_topics(3000, "", allowIdleConsumers="true"))
    apart = of_topics(3000, "orders", "refunds", allowIdleConsumers="true").content
    composed = simulate(TWO, composing(apart, "a + b", 3000))
    assert composed.changes == both.changes != []
    assert "a + b with a " in composed.log[0].reasons[0]


def test_each_trigger_is_capped_before_the_formula():
    """12 partitions a topic at a lagThreshold of 10 are 240 at most, and 3 pods of 100."""
    capped = composing(of_topics(10, "orders", "refunds", allowIdleConsumers="false").content, "a + b", 100)
    assert simulate(TWO, capped).replicas.max() == 4  # its floor


def test_a_cpu_trigger_stays_beside_the_formula():
    """The larger proposal wins."""
    alone = simulate(used(BUSY, 180, 1100), lag_150_with(CPU, alone=True))
    beside = lag_150_with(asking("sum(kafka_consumergroup_lag)", 1), CPU, alone=True)
    assert simulate(used(BUSY, 180, 1100), composing(beside.content, "a * 0", 1)).replicas.max() == alone.replicas.max()


def test_tune_tries_other_targets():
    """In place of a lagThreshold, of which there are two; whole ones where it is whole."""
    content = of_topics(150, "orders", "refunds").content
    for target, others in (
        (200, {50, 70, 100, 142, 200, 282, 400, 566, 800}),
        ("2.5", {0.625, 0.875, 1.25, 1.77, 2.5, 3.52, 5.0, 7.08, 10.0}),
    ):
        scaled = composing(content, "max(a, b)", target)
        tried = {one.scaled.modifiers.target for one in variants.variants(scaled, TWO, 60.0)}
        assert tried == others
        assert all(one.scaled.triggers == scaled.triggers for one in variants.variants(scaled, TWO, 60.0, 20))


def test_every_refused_query_is_named_at_once():
    """Beside the trigger that is simulated."""
    queries = [asking("up", 1), asking("sum(kafka_consumergroup_lag)", 1), asking("down", 1)]
    with pytest.raises(InputError) as error:
        Scaler(lag_150_with(*queries), TWO)
    lines = str(error.value).splitlines()
    assert [line.partition(" is not")[0] for line in lines] == [
        "so.yaml: spec.triggers[1].metadata.query: 'up'",
        "so.yaml: spec.triggers[3].metadata.query: 'down'",
    ]


def test_the_caps_before_a_formula_are_told():
    """In place of what is said of triggers that ask for pods by themselves."""
    capped = composing(of_topics(10, "orders", "refunds", allowIdleConsumers="false").content, "a + b", 100)
    (note,) = notes(TWO, capped, simulate(TWO, capped))
    assert note.endswith("which is 240 at all the caps and asks for 3 pods, whatever the lag")
    free = composing(of_topics(10, "orders", "refunds").content, "a + b", 100)
    assert notes(TWO, free, simulate(TWO, free)) == []
