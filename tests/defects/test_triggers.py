"""Several triggers, formulas, and pausing."""

from tests.defects.behaviour import behaviour, judge

REST_S = 4  # several polls and syncs: long enough for what must not happen to happen


@behaviour(
    question="How do two triggers for two topics of one group add up?",
    threads=("kedacore/keda#828",),
    reported="A consumer reads several topics; each trigger is scaled on by itself, and the largest wins.",
    shown="Lags of 50 and 30 at lagThreshold 10 give 5 replicas, not 8: the HPA takes the largest proposal.",
    cure="scalingModifiers with the formula 'orders + refunds' and target 10: 8 replicas. Or one trigger without "
    "`topic`, which counts every topic that the group has committed: 8 as well.",
    price="With a formula there is no metric at all while one of its triggers has an error. Without `topic`, a "
    "topic that the group no longer reads counts for ever.",
)
def test_keda_828_two_topics_are_not_added(topic, target):
    """5 of 8; 8 by a formula, and 8 by one trigger for all topics of the group."""
    orders, refunds = topic(), topic()
    orders.produce(50)
    refunds.produce(30)
    refunds.commit([0] * 10, group=orders.name)
    triggers = orders.trigger(name="orders"), refunds.trigger(name="refunds", consumerGroup=orders.name)
    largest = target(*triggers)
    formula = {"scalingModifiers": {"formula": "orders + refunds", "target": "10"}}
    summed = target(*triggers, advanced=largest.spec["advanced"] | formula)
    every = orders.trigger()
    del every["metadata"]["topic"]
    whole = target(every)
    judge(largest.steady(), known=5, cured=8)
    assert (summed.steady(), whole.steady()) == (8, 8)


@behaviour(
    question="Where does the empty scalingModifiers in my ScaledObject come from?",
    threads=("kedacore/keda#6770",),
    reported="A ScaledObject with `advanced` and without scalingModifiers has an empty one after KEDA has taken it.",
    shown="KEDA adds its finalizer by an update of the whole object, and so writes the empty struct. A tool that "
    "compares the object with its file sees a difference that nobody made.",
    cure="Let the tool ignore the field. It means the same as none.",
    price="None.",
)
def test_keda_6770_an_empty_scaling_modifiers_is_written(topic, target):
    """The applied object has no such field; the stored one does."""
    scaled = target(topic().trigger())
    scaled.ready()
    assert "scalingModifiers" not in scaled.spec["advanced"]
    judge(scaled.scaled_object()["spec"]["advanced"].get("scalingModifiers"), known={}, cured=None)


@behaviour(
    question="What does the annotation paused do to the HPA?",
    threads=("kedacore/keda#4253", "kedacore/keda#944"),
    reported="While a ScaledObject is paused its HPA is not there; who watches HPAs is alarmed.",
    shown="KEDA deletes the HPA and makes a new one afterwards, with another uid, whose windows begin anew. The "
    "replicas stay meanwhile.",
    cure='`autoscaling.keda.sh/paused-scale-in: "true"`, paused-scale-out, or both: the HPA stays the same one.',
    price="The HPA goes on asking the trigger's source.",
)
def test_keda_4253_pausing_deletes_the_hpa(topic, target):
    """Gone while paused, and another one afterwards; the same one with paused-scale-in."""
    group = topic()
    group.produce(50)
    paused, kept = (target(group.trigger()) for _ in range(2))
    for one in (paused, kept):
        one.reach(5)
    before = [one.hpa().metadata.uid for one in (paused, kept)]
    paused.apply({"autoscaling.keda.sh/paused": "true"})
    kept.apply({"autoscaling.keda.sh/paused-scale-in": "true"})
    for one in (paused, kept):
        one.wait(lambda one=one: one.condition("Paused")[0] == "True", "the pause")
    judge(paused.within(10, lambda: paused.hpa() is None), known=True, cured=False)
    group.leave(0)
    assert (paused.rest(REST_S), kept.steady()) == (5, 5)
    for one in (paused, kept):
        one.apply({})
        one.reach(1)
    assert [one.hpa().metadata.uid == uid for one, uid in zip((paused, kept), before, strict=True)] == [False, True]
