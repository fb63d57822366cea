"""How late the producer was, as its tally says."""

import pytest

from lab.measure.punctuality import punctuality

from . import built
from .conftest import report

LATE = {"late_p50_ms": 0.4, "late_p99_ms": 7.5, "late_max_ms": 31.0}


def test_the_producers_lateness_is_its_tallys(tmp_path):
    """Of two tallies the worse counts."""
    told = [report(5, "producer", "produced", **LATE), report(9, "producer", "produced", **LATE | {"late_p99_ms": 2.0})]
    found = punctuality(built.record(tmp_path, group_events=told))
    assert (found.median_ms.value, found.p99_ms.value, found.worst_ms.value) == (0.4, 7.5, 31.0)


@pytest.mark.parametrize(
    ("told", "inputs", "why"),
    [
        ([], {}, "no tally"),
        ([report(5, "producer", "produced", acked=1)], {}, "no late_p50_ms"),
        ([report(5, "producer", "produced", **LATE)], {"driver": "ridehailing/locust"}, "keeps no schedule"),
    ],
)
def test_without_a_schedule_there_is_no_lateness(tmp_path, told, inputs, why):
    """No data, and not 0."""
    assert why in punctuality(built.record(tmp_path, group_events=told, inputs=inputs)).p99_ms.why
