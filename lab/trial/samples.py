"""Takes the trial's raw samples out of Prometheus: every sample with its own scrape time, nothing interpolated."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd
from prometheus_api_client import PrometheusConnect
from prometheus_api_client.exceptions import PrometheusApiClientException
from requests.exceptions import RequestException
from urllib3.util import Retry

from lab.errors import LabFault

# What a dashboard of seed 1's board and an HPA post-mortem need.
METRICS = (
    "kafka_consumergroup_lag",
    "kafka_consumergroup_lag_sum",
    "consume_rate",
    "inflight",
    "assigned_partitions",
    "rebalances_total",
    "rebalance_duration_seconds_sum",
    "rebalance_duration_seconds_count",
    "messages_processed_total",
    "messages_failed_total",
    "messages_dead_lettered_total",
    "retrying_partitions",
    "producer_events_total",
    "process_cpu_seconds_total",
    "process_resident_memory_bytes",
    "kube_deployment_spec_replicas",
    "kube_deployment_status_replicas",
    "kube_deployment_status_replicas_ready",
    "kube_horizontalpodautoscaler_status_current_replicas",
    "kube_horizontalpodautoscaler_status_desired_replicas",
    "keda_scaler_metrics_value",
    "keda_scaler_active",
    "lagscaler_lag",
    "lagscaler_lasting",
    "lagscaler_metric",
)
CHUNK_S = 600
QUERY_S = 15  # one takes milliseconds; Prometheus' own limit is 120 s


def collect(
    url: str, namespace: str, start: float, end: float, further: Sequence[str] = (), timeout_s: float = QUERY_S
) -> pd.DataFrame:
    """Samples of the namespace from ``start`` to ``end`` (epoch s) as columns t, metric, pod, labels (JSON), value.

    They are those of METRICS, which every trial records, and of the ``further`` metrics that this one's manifests declare.
    Raises :class:`LabFault` when Prometheus can't be asked, or has not answered a query after ``timeout_s``. A metric without
    samples is simply absent.
    """
    rows: list[dict[str, Any]] = []
    try:
        prometheus = PrometheusConnect(url=url, retry=Retry(total=1))
        for name in dict.fromkeys((*METRICS, *further)):
            for chunk_end, seconds in _chunks(start, end):
                query = f'{name}{{namespace="{namespace}"}}[{seconds}s]'
                for series in prometheus.custom_query(query, params={"time": chunk_end}, timeout=timeout_s):
                    rows.extend(_rows(name, series))
    except (PrometheusApiClientException, RequestException) as error:
        raise LabFault(f"Prometheus could not be asked: {error}") from error
    frame = pd.DataFrame(rows, columns=["t", "metric", "pod", "labels", "value"])
    return frame.drop_duplicates(["t", "metric", "labels"]).sort_values(["metric", "t"], ignore_index=True)


def _chunks(start: float, end: float) -> Iterator[tuple[float, int]]:
    at = start
    while at < end:
        seconds = int(min(CHUNK_S, end - at + 1)) or 1
        at += seconds
        yield at, seconds


def _rows(name: str, series: dict[str, Any]) -> Iterator[dict[str, Any]]:
    labels = {key: value for key, value in series["metric"].items() if key != "__name__"}
    text = json.dumps(labels, sort_keys=True)
    for t, value in series["values"]:
        yield {"t": float(t), "metric": name, "pod": labels.get("pod", ""), "labels": text, "value": float(value)}
