"""Random walks: a metric's values in the order they are asked for, and the ScaledObject that is to follow them."""

import json
from dataclasses import dataclass

from hypothesis import strategies as st

MOST_VALUES = 24  # of one walk
MOST_S = 6  # the longest window or period: so that some edges are crossed within a walk
METRIC = "s0-metric-api-value"  # KEDA's name for the first trigger's value at "value"
TARGETS = (100_000, 1_000, 7_000, 2_500, 333, 97_000)


@dataclass(frozen=True)
class Walk:
    """What one HPA is given.

    ``steps`` hold a value and how often it is handed out; values and ``target`` are in milli-units, and a value of None is a
    source that fails. ``replicas`` are those of the Deployment at first, ``behavior`` is JSON, "null" for none.
    """

    replicas: int
    least: int
    most: int
    target: int
    behavior: str
    steps: tuple[tuple[int | None, int], ...]

    @property
    def values(self):
        """What is handed out, in order."""
        return [value for value, times in self.steps for _ in range(times)][:MOST_VALUES]

    def deployment(self, name):
        """A Deployment whose pods do nothing: no scheduler knows them, so they never run, and exist all the same."""
        pod = {
            "metadata": {"labels": {"app": name}},
            "spec": {
                "schedulerName": "none",
                "automountServiceAccountToken": False,
                "terminationGracePeriodSeconds": 0,
                "containers": [{"name": "nothing", "image": "nothing"}],
            },
        }
        spec = {"replicas": self.replicas, "selector": {"matchLabels": {"app": name}}, "template": pod}
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}

    def scaled_object(self, name, url):
        """The ScaledObject on the metric at ``url``; KEDA itself has nothing to poll above a floor of 0."""
        metadata = {"targetValue": f"{self.target / 1000:.3f}", "url": url, "valueLocation": "value"}
        spec = {
            "scaleTargetRef": {"name": name},
            "minReplicaCount": self.least,
            "maxReplicaCount": self.most,
            "triggers": [{"type": "metrics-api", "metricType": "AverageValue", "metadata": metadata}],
        }
        behavior = json.loads(self.behavior)
        if behavior is not None:
            spec["advanced"] = {"horizontalPodAutoscalerConfig": {"behavior": behavior}}
        return {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": name}, "spec": spec}

    def hpa(self):
        """The HPA that KEDA must make of it."""
        target = {"type": "AverageValue", "averageValue": f"{self.target}m"}
        spec = {
            "minReplicas": self.least,
            "maxReplicas": self.most,
            "metrics": [{"type": "External", "external": {"metric": {"name": METRIC}, "target": target}}],
            "behavior": json.loads(self.behavior),
        }
        return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "spec": spec}


POLICIES = st.one_of(
    st.fixed_dictionaries({"type": st.just("Pods"), "value": st.integers(1, 6), "periodSeconds": st.integers(1, MOST_S)}),
    st.fixed_dictionaries(
        {"type": st.just("Percent"), "value": st.sampled_from((100, 10, 33, 50, 250)), "periodSeconds": st.integers(1, MOST_S)}
    ),
)
RULES = st.fixed_dictionaries(
    {},
    optional={
        "stabilizationWindowSeconds": st.integers(0, MOST_S),
        "selectPolicy": st.sampled_from(("Max", "Min", "Min", "Disabled")),
        "tolerance": st.sampled_from(("0.1", "0", "50m", "333m", "1", "0.0007")),
        "policies": st.lists(POLICIES, min_size=1, max_size=3),
    },
)
# Without a window down the controller's own stands, which is longer than a walk: so that one is written in most cases.
DOWN = st.tuples(st.integers(0, MOST_S), RULES).map(lambda drawn: {"stabilizationWindowSeconds": drawn[0]} | drawn[1])
BEHAVIORS = st.one_of(
    st.none(),
    st.fixed_dictionaries({"scaleDown": DOWN}, optional={"scaleUp": RULES}),
    st.fixed_dictionaries({"scaleDown": DOWN, "scaleUp": RULES}),
    st.fixed_dictionaries({}, optional={"scaleUp": RULES, "scaleDown": RULES}),
)


@st.composite
def walks(draw):
    """A walk; the simplest asks for nothing once."""
    least = draw(st.integers(1, 3))
    most = least + draw(st.sampled_from((1, 11, 8, 5, 0)))
    target = draw(st.sampled_from(TARGETS))
    behavior = json.dumps(draw(BEHAVIORS))
    value = st.one_of(
        st.tuples(st.integers(0, most + 2), st.sampled_from((10, 11, 9)), st.sampled_from((0, 1, -1))).map(
            lambda drawn: max(0, drawn[0] * target * drawn[1] // 10 + drawn[2])  # what replicas would have; tolerance's edges
        ),
        st.integers(0, (most + 2) * target),
    )
    held = st.tuples(st.integers(0, 19), value, st.sampled_from((1, 2, 1, 4, 8))).map(
        lambda drawn: (None, 2) if drawn[0] == 19 else drawn[1:]  # KEDA asks a source that fails a second time
    )
    steps = draw(st.lists(held, min_size=draw(st.sampled_from((1, 12, 9, 6))), max_size=12))
    return Walk(draw(st.integers(1, most + 2)), least, most, target, behavior, tuple(steps))
