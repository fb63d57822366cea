"""Takes the trial's raw samples out of Prometheus: every sample with its own scrape time, nothing interpolated."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from prometheus_api_client import PrometheusConnect
from prometheus_api_client.exceptions import PrometheusApiClientException
from requests.exceptions import RequestException
from urllib3.util import Retry

from lab.errors import LabFault
from lab.record.ledger.fold import arrow_schema

# What a dashboard of seed 1's board and an HPA post-mortem need.
METRICS = (
    *("kafka_consumergroup_lag", "kafka_consumergroup_lag_sum", "kafka_consumergroup_current_offset"),  # of the lag exporter
    *("consume_rate", "inflight", "assigned_partitions", "retrying_partitions"),  # of each consumer
    *("messages_processed_total", "messages_failed_total", "messages_dead_lettered_total"),
    *("rebalances_total", "rebalance_duration_seconds_sum", "rebalance_duration_seconds_count"),
    "producer_events_total",
    *("process_cpu_seconds_total", "process_resident_memory_bytes"),  # of every program
    *("kube_deployment_spec_replicas", "kube_deployment_status_replicas", "kube_deployment_status_replicas_ready"),
    "kube_horizontalpodautoscaler_status_current_replicas",
    "kube_horizontalpodautoscaler_status_desired_replicas",
    *("keda_scaler_metrics_value", "keda_scaler_active"),
    *("lagscaler_lag", "lagscaler_lasting", "lagscaler_metric"),  # of the persistent-lag scaler
)
CHUNK_S = 600
QUERY_S = 15  # one takes milliseconds; Prometheus' own limit is 120 s
COLUMNS = arrow_schema("t double, metric string, pod string, labels string, value double")


def write(file: Path, frames: Iterable[pd.DataFrame]) -> None:
    """Write ``frames``, as :func:`collect` yields them, into one Parquet file, each as it comes."""
    with pq.ParquetWriter(file, COLUMNS) as writer:
        for frame in frames:
            writer.write_table(pa.Table.from_pandas(frame, COLUMNS, preserve_index=False))


def collect(
    url: str, namespace: str, start: float, end: float, further: Sequence[str] = (), timeout_s: float = QUERY_S
) -> Iterator[pd.DataFrame]:
    """Samples of the namespace from ``start`` to ``end`` (epoch s) as columns t, metric, pod, labels (JSON), value.

    A frame for each of METRICS and of the ``further`` metrics that has samples, in order of name and time: an hour's are never
    held all at once. Raises :class:`LabFault` when Prometheus can't be asked, or has not answered a query after ``timeout_s``.
    """
    try:
        prometheus = PrometheusConnect(url=url, retry=Retry(total=1))
        for name in sorted({*METRICS, *further}):
            parts: list[pd.DataFrame] = []
            at = start
            while at < end:
                seconds = int(min(CHUNK_S, end - at + 1)) or 1
                at += seconds
                query = f'{name}{{namespace="{namespace}"}}[{seconds}s]'
                parts += map(_series, prometheus.custom_query(query, params={"time": at}, timeout=timeout_s))
            if parts:
                frame: pd.DataFrame = pd.concat(parts, ignore_index=True).assign(metric=name)[COLUMNS.names]
                yield frame.drop_duplicates(["t", "labels"]).sort_values("t", kind="stable", ignore_index=True)
    except (PrometheusApiClientException, RequestException) as error:
        raise LabFault(f"Prometheus could not be asked: {error}") from error


def _series(series: dict[str, Any]) -> pd.DataFrame:
    """The samples of one series; its labels are one text that all of them share."""
    labels = {key: value for key, value in series["metric"].items() if key != "__name__"}
    times, values = np.array(series["values"], dtype=float).reshape(-1, 2).T
    text = json.dumps(labels, sort_keys=True)
    return pd.DataFrame({"t": times, "pod": labels.get("pod", ""), "labels": text, "value": values})
