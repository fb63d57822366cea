"""The pods that a command simulates: what records of another scale tell of them, and what not."""

from types import SimpleNamespace

import pytest

from lab.commands import pods, situation
from lab.flags import Flags
from lab.foresee.group import Consumers
from lab.inputs import scale as scales
from lab.inputs.workload import Workload
from tests.unit.commands.files import OBJECT, TRAFFIC


@pytest.mark.parametrize(
    ("scale", "start_s", "in_flight_s", "swing", "told"),
    [
        ("quick", 4.0, 0.11, None, "as measured"),
        ("real", 62.0, 2.55, (0.05, 5.05), "0.05 to 5.05 s by commit_interval_ms 5000 and a poll's work"),
    ],
)
def test_what_a_scale_divides_is_measured_for_that_scale_alone(scale, start_s, in_flight_s, swing, told):
    """At quick a start of 60 s is one of 2 s, and commits come every 0.17 s: at real time both are as declared."""
    workload = Workload(start_s=60, poll_ms=50)
    inputs = SimpleNamespace(pod_rate=100.0, workload=workload, partitions=12)
    record = SimpleNamespace(inputs=inputs, scale=scales.load("quick"))
    measured = SimpleNamespace(consumers=Consumers(100.0, 4.0, in_flight_s=0.11, stop_s=0.7))
    parser = Flags("elastic-lab simulate", None, environment=False)
    situation.add_flags(parser)
    found = pods.read(parser.parse_args([OBJECT, TRAFFIC]), None, scales.load(scale), [record], measured)
    assert (found.consumers.start_s, found.consumers.in_flight_s, found.consumers.stop_s) == (start_s, in_flight_s, 0.7)
    assert (found.in_flight, found.swing, found.partitions) == (told, swing, 12)
