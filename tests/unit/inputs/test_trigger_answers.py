"""The answers of a Prometheus query and of a cron schedule are KEDA's."""

import math
from datetime import UTC, datetime

import pytest

from lab.inputs.triggers import cron, prometheus
from lab.inputs.triggers.common import ScalerError
from tests.unit.inputs.written import CRON, PROMETHEUS, one

# Prometheus.


@pytest.mark.parametrize(
    ("elements", "metric", "active"),
    [
        ([500.0], 500, True),
        ([10.0], 10, False),
        ([], 0, False),
        ([math.nan], 0, False),
        ([-5.0], 0, False),
        ([0.1234], 0.123, False),
    ],
)
def test_the_answer_of_a_query(elements, metric, active):
    """Nothing, NaN and what is negative are 0; active is strictly above the threshold."""
    found = prometheus.read(one(PROMETHEUS, activationThreshold="10"), elements)
    assert (found.metric, found.active) == (metric, active)


@pytest.mark.parametrize("elements", [[], [math.inf], [1.0, 2.0]])
def test_a_query_fails_where_null_values_are_not_ignored(elements):
    """More than one element is always an error."""
    with pytest.raises(ScalerError):
        prometheus.read(one(PROMETHEUS, ignoreNullValues="false"), elements)
    if len(elements) < 2:
        assert prometheus.read(one(PROMETHEUS), elements).metric == 0


# Cron.


@pytest.mark.parametrize(
    ("now", "replicas"),
    [
        (datetime(2026, 3, 2, 6, 59, 59, tzinfo=UTC), 0),  # Monday, 7:59:59 in Berlin
        (datetime(2026, 3, 2, 7, 0, 0, tzinfo=UTC), 10),
        (datetime(2026, 3, 2, 16, 59, 59, tzinfo=UTC), 10),
        (datetime(2026, 3, 2, 17, 0, 0, tzinfo=UTC), 0),
        (datetime(2026, 7, 6, 6, 0, 0, tzinfo=UTC), 10),  # summer time: 8:00 is an hour earlier
        (datetime(2026, 3, 7, 12, 0, 0, tzinfo=UTC), 0),  # Saturday
    ],
)
def test_the_replicas_of_office_hours(now, replicas):
    """From the start's minute to the end's, in the trigger's zone, on its days."""
    found = cron.read(one(CRON), now)
    assert (found.metric, found.active) == (replicas, bool(replicas))
    assert "next start" in found.reasons[0]


def test_an_interval_may_span_midnight():
    """The end comes before the next start."""
    night = one(CRON, start="0 22 * * *", end="0 6 * * *", timezone="Etc/UTC")
    active = [hour for hour in range(24) if cron.read(night, datetime(2026, 1, 15, hour, 30, tzinfo=UTC)).active]
    assert active == [0, 1, 2, 3, 4, 5, 22, 23]


def test_a_day_that_never_comes_leaves_the_trigger_active():
    """A start that is never due doesn't come before any end; an end alone that never comes doesn't come before any start."""
    now = datetime(2026, 1, 15, tzinfo=UTC)
    assert cron.read(one(CRON, start="0 0 30 2 *"), now).active
    assert not cron.read(one(CRON, end="0 0 30 2 *"), now).active
