"""The panels and marks of every board: title, unit, queries. Pure, and the one place a query is written.

Queries hold Grafana's variables; :func:`filled` puts values in their place for a program that asks Prometheus directly. They
are made for the lab's Prometheus, which scrapes every second, and lag every half second.
"""

from __future__ import annotations

from dataclasses import dataclass

SCRAPE_S = 1
# Okabe and Ito's colours, as in the report: orange is demand, blue is supply.
ASKED, DELIVERED, BETWEEN = "#D55E00", "#0072B2", "#56B4E9"
UP, DOWN, FAULT, QUIET, INK = "#009E73", "#AA4499", "#E69F00", "#6b6b6b", "#222222"

FLAG = "0 or 1"  # the unit of what is so or not


@dataclass(frozen=True)
class Query:
    """One PromQL expression, and its series' names, with ``{{label}}``. Without a ``colour`` each series gets one of its
    own."""

    expr: str
    legend: str
    colour: str = ""
    dashed: bool = False
    width: float = 1.8


@dataclass(frozen=True)
class Panel:
    """One graph. ``stepped``: values that jump and hold; ``stacked``: series that add up; ``many``: too many for a legend."""

    title: str
    unit: str
    about: str
    queries: tuple[Query, ...]
    stepped: bool = False
    stacked: bool = False
    many: bool = False


@dataclass(frozen=True)
class Mark:
    """A moment drawn over every panel. The expression's value is the moment itself, in milliseconds of the epoch."""

    title: str
    expr: str
    colour: str


def _moment(condition: str) -> str:
    """The first second within a step at which ``condition`` held: exact however wide the step of a board is."""
    return f"1000 * min_over_time(timestamp({condition})[$__interval:1s])"


# Namespaces in which a trial has run. The values of the variable $namespace.
NAMESPACES = 'kube_deployment_spec_replicas{deployment="consumer", namespace=~"trial-.*"}'

_DEPLOYMENT = '{namespace="$namespace", deployment="consumer"}'
_SPEC = f"kube_deployment_spec_replicas{_DEPLOYMENT}"
_READY = f"kube_deployment_status_replicas_ready{_DEPLOYMENT}"
_HERE = '{namespace="$namespace"}'
_AVERAGE = '{namespace="$namespace", metric_target_type="average"}'  # lagThreshold is one, a CPU target is not
_TRIGGER = "{{scaler}}, trigger {{triggerIndex}}"
_SENT = 'producer_events_total{namespace="$namespace", outcome="sent"}'


def _rate(metric: str, labels: str = _HERE) -> str:
    """The rate of a counter, all its series together."""
    return f"sum(rate({metric}{labels}[$__rate_interval]))"


def _keda(metric: str) -> str:
    """A metric of KEDA's, whose own label is renamed where the scraped target has a namespace too."""
    return f'({metric}{{namespace="$namespace"}} or {metric}{{exported_namespace="$namespace"}})'


def _doubled(ago_s: int) -> str:
    """The rate is twice that of three seconds before, and the traffic did not just start; seen ``ago_s`` seconds ago."""
    now, before, begun = (f" offset {ago_s + more}s" if ago_s + more else "" for more in (0, 3, 5))
    return f"(sum(rate({_SENT}[3s]{now})) > 2 * sum(rate({_SENT}[3s]{before})) and sum({_SENT}{begun}) > 0)"


PANELS = (
    Panel(
        "Lag",
        "messages",
        "Messages not yet committed. Above the dashed line the HPA asks for more replicas: lagThreshold x replicas.",
        (
            Query(f"sum(kafka_consumergroup_lag_sum{_HERE})", "total lag", ASKED),
            Query(
                f"max(kube_horizontalpodautoscaler_spec_target_metric{_AVERAGE}) * max({_SPEC})",
                "lag the replicas may hold",
                QUIET,
                dashed=True,
            ),
        ),
    ),
    Panel(
        "Replicas",
        "replicas",
        "What the HPA desires, what the Deployment is told, what is Ready. Above the partitions a replica has nothing to do.",
        (
            Query(f"max(kube_horizontalpodautoscaler_status_desired_replicas{_HERE})", "HPA desired", ASKED, width=4.5),
            Query(f"max({_SPEC})", "spec", BETWEEN, width=2.6),
            Query(f"max({_READY})", "ready", DELIVERED),
            Query(f"count(kafka_consumergroup_lag{_HERE})", "partitions", QUIET, dashed=True),
        ),
        stepped=True,
    ),
    Panel(
        "Throughput",
        "messages/s",
        "What the producer was acknowledged, and what the group has processed: its receipt is durable.",
        (
            Query(_rate("producer_events_total", '{namespace="$namespace", outcome="acked"}'), "produced", ASKED),
            Query(_rate("messages_processed_total"), "consumed", DELIVERED),
        ),
    ),
    Panel(
        "Lag by partition",
        "messages",
        "One line a partition: a hot one drains last, and one that nobody owns climbs alone.",
        (Query(f"sum by (partition) (kafka_consumergroup_lag{_HERE})", "partition {{partition}}"),),
        many=True,
    ),
    Panel(
        "Rebalances",
        "rebalances/s",
        "Rebalances that members took part in, all members together: each of N members counts one.",
        (Query(_rate("rebalances_total"), "rebalances of members", DOWN),),
    ),
    Panel(
        "Duration of a rebalance",
        "s",
        "From a member's first callback to its assignment.",
        (
            Query(
                f"{_rate('rebalance_duration_seconds_sum')} / ({_rate('rebalance_duration_seconds_count')} > 0)",
                "mean",
                DELIVERED,
            ),
            Query(
                f"histogram_quantile(0.95, sum by (le) (rate(rebalance_duration_seconds_bucket{_HERE}[$__rate_interval])) > 0)",
                "95th percentile",
                ASKED,
            ),
        ),
    ),
    Panel(
        "Assigned partitions by pod",
        "partitions",
        "Partitions each pod owns, stacked: a sum below P is partitions nobody reads, a pod without a band is idle.",
        (Query(f"sum by (pod) (assigned_partitions{_HERE})", "{{pod}}"),),
        stepped=True,
        stacked=True,
        many=True,
    ),
    Panel(
        "KEDA's metric",
        "messages",
        "The lag KEDA measured, as the HPA is given it.",
        (Query(f"sum by (scaler, triggerIndex) {_keda('keda_scaler_metrics_value')}", _TRIGGER),),
        stepped=True,
    ),
    Panel(
        "KEDA's scaler active",
        FLAG,
        "1 while the lag is above activationLagThreshold; at 0 through the cooldownPeriod KEDA may scale to zero.",
        (Query(f"max by (scaler, triggerIndex) {_keda('keda_scaler_active')}", _TRIGGER),),
        stepped=True,
    ),
)

MARKS = (
    Mark("spike", _moment(f"{_doubled(0)} unless {_doubled(1)}"), INK),
    Mark("scale-up decided", _moment(f"{_SPEC} > ({_SPEC} offset 1s)"), ASKED),
    Mark(
        "first new pod Ready",
        # One more Ready than the group had replicas before the decision.
        _moment(f"{_READY} > ({_READY} offset 1s) and ({_READY} offset 1s) == min_over_time({_SPEC}[2m])"),
        UP,
    ),
)


def filled(expr: str, namespace: str, step_s: int) -> str:
    """``expr`` with Grafana's variables replaced, as Grafana would for steps of ``step_s`` seconds."""
    rate_interval = max(step_s + SCRAPE_S, 4 * SCRAPE_S)
    values = {"$__rate_interval": f"{rate_interval}s", "$__interval": f"{step_s}s", "$namespace": namespace}
    for variable, value in values.items():
        expr = expr.replace(variable, value)
    return expr
