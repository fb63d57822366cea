"""Pods that start each at its own time: some pull their image, and some wait for a node."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab import yamlfile
from lab.commands import pods, situation
from lab.errors import InputError
from lab.flags import Flags
from lab.foresee.group import Consumers
from lab.foresee.simulate import simulate
from lab.foresee.situation import Situation
from lab.foresee.starts import DRAWS, Starts
from lab.inputs import scale as scales
from lab.inputs import workload
from lab.inputs.starts import Nodes, Quantiles
from tests.thoroughness import examples
from tests.unit.commands.files import OBJECT, TRAFFIC
from tests.unit.foresee.groups import EVEN, P, lag_150, step
from tests.unit.inputs.written import refused

SPIKE_S = 150.0
SHARES = (0.0, 0.5, 0.9, 1.0)
TIMES = st.lists(st.integers(1, 300), min_size=len(SHARES), max_size=len(SHARES)).map(sorted)
SPIKES = st.integers(1000, 4000)
DRAWN = st.sampled_from(DRAWS)
BALANCERS = st.sampled_from(["cooperative-sticky", "range", "consumer"])


def alike(seconds):
    """Quantiles that are all the same."""
    return Quantiles(((0.5, seconds),))


def of(times):
    """Quantiles of these times."""
    return Quantiles(tuple(zip(SHARES, map(float, times), strict=True)))


def curve(spike, draw=0.5, balancer="cooperative-sticky", start_s=8.0, **pods):
    """A step on 4 pods that is answered, held for 10 minutes and over for as long as gives all pods back."""
    here = Situation(step(180, spike), EVEN, Consumers(100.0, start_s, balancer, **pods), tail_s=3600.0, draw=draw)
    return simulate(here, lag_150())


def reaction(one):
    """From the spike until one more pod is at work, s."""
    return one.working_from(5, SPIKE_S) - SPIKE_S


@settings(max_examples=examples(20), deadline=None)
@given(SPIKES, st.integers(0, 300), DRAWN, BALANCERS)
def test_starts_that_are_all_alike_are_the_number(spike, seconds, draw, balancer):
    """Whatever is drawn."""
    number = curve(spike, start_s=float(seconds), balancer=balancer)
    spread = curve(spike, draw, balancer, start_s=1e9, starts=of([seconds] * len(SHARES)))
    assert spread.log == number.log
    assert all((getattr(spread, name) == getattr(number, name)).all() for name in ("t", "lag", "replicas", "working"))


@settings(max_examples=examples(20), deadline=None)
@given(SPIKES, TIMES, TIMES, DRAWN, BALANCERS)
def test_slower_starts_never_make_the_reaction_smaller(spike, times, more, draw, balancer):
    """Each quantile is as late or later."""
    slower = [one + other for one, other in zip(times, more, strict=True)]
    first, second = (reaction(curve(spike, draw, balancer, starts=of(one))) for one in (times, slower))
    assert times[0] < first <= second


@settings(max_examples=examples(20), deadline=None)
@given(SPIKES, st.integers(4, P), st.integers(1, 8), TIMES, DRAWN)
def test_pods_beyond_the_room_wait_for_a_node(spike, room, each, times, draw):
    """None is at work before the first node is there; with room for all nothing changes; in the end all were given back."""
    arrives = of([60 + one for one in times])
    found = curve(spike, draw, nodes=Nodes(room, each, arrives))
    asked = next((at for at, _, after in found.changes if after > room), None)
    if asked is None:
        assert found.log == curve(spike, draw).log
        return
    early = found.t < asked + arrives.at(0) + 8
    assert found.working[early].max() <= room < found.working.max()
    assert (found.replicas[-1], found.working[-1]) == (4, 4)
    assert curve(spike, draw, nodes=Nodes(P, each, arrives)).log == curve(spike, draw).log


def test_the_ninth_pod_needs_a_node_by_hand():
    """Room for 8, 4 a node; a node is empty from 100 s on and used again at 200 s, empty from 300 s on and gone by 900 s."""
    starts = Starts(Consumers(100.0, 8.0, nodes=Nodes(8, 4, alike(150.0))), 0.5, 4)
    assert starts.scale(0, 4, 13) == [8] * 4 + [158] * 5
    assert starts.scale(100, 13, 6) == []
    assert starts.scale(200, 6, 12) == [208] * 6
    assert starts.scale(300, 12, 8) == []
    assert starts.scale(899, 8, 9) == [907]
    assert starts.scale(900, 9, 8) == []
    assert starts.scale(1500, 8, 9) == [1658]
    assert Starts(Consumers(100.0, 8.0, nodes=Nodes(2, 4, alike(150.0))), 0.5, 4).scale(0, 4, 7) == [8, 8, 158]


def test_pods_are_drawn_by_strata_by_hand():
    """A golden section further each: 0.5, 0.118, 0.736, 0.354, 0.972 of 0 to 100 s; of five in a row four fifths at least."""
    pods = Consumers(100.0, 50.0, starts=Quantiles(((0.0, 0.0), (1.0, 100.0))))
    assert Starts(pods, 0.5, 4).scale(1000, 4, 9) == pytest.approx([1011.8, 1035.4, 1050, 1073.6, 1097.2], abs=0.05)
    for draw in DRAWS:
        assert len({ready // 20 for ready in Starts(pods, draw, 0).scale(0, 0, 5)}) >= 4
    apart = replace(pods, start_each_s=2.0)  # they share cores: each of five takes 2 s more
    assert Starts(apart, 0.5, 4).scale(1000, 4, 9)[0] == pytest.approx(1021.8, abs=0.05)


def test_what_has_not_started_is_deleted_first():
    """By a ReplicaSet: 8 of 12 pods wait for a node when the spike is over, so those at work stay at work."""
    never = Nodes(8, 4, alike(3600.0))
    here = Situation(step(180, 3000, hold=40.0), EVEN, Consumers(100.0, 8.0, nodes=never), tail_s=2000.0)
    found = simulate(here, lag_150())
    shed = next((at, after) for at, before, after in found.changes if after < before)
    assert (found.replicas.max(), found.working.max()) == (24, 8)
    assert shed[1] >= 8
    assert (found.working[found.t > shed[0]][:3] == 8).all()


WRONG = """kind: Workload
start_s: {q50: 8, p75: 4000, p90: 5m}
nodes: {rom: 8, pods: 0, arrives_s: {p50: 9, p90: 5}, unneeded_s: -1}
"""


def test_all_that_is_wrong_with_starts_and_nodes_is_said_at_once(tmp_path):
    """Line, field, value, range, and what was probably meant."""
    file = tmp_path / "w.yaml"
    file.write_text(WRONG)
    with pytest.raises(InputError) as error:
        workload.parse(yamlfile.document(file))
    assert [str(one).partition("w.yaml:")[2] for one in error.value.each] == [
        "2: start_s.q50: 8 is not allowed; did you mean p50?",
        "2: start_s.p75: 4000 is not allowed; allowed: a number from 0 to 3600 s",
        "2: start_s.p90: '5m' is not allowed; did you mean 300? allowed: a number from 0 to 3600 s",
        "3: nodes.rom: 8 is not allowed; did you mean room?",
        "3: nodes.pods: 0 is not allowed; allowed: a whole number from 1 to 100000",
        "3: nodes.arrives_s.p90: 5 is not allowed; allowed: at least 9 s, which p50 is",
        "3: nodes.unneeded_s: -1 is not allowed; allowed: a number from 0 to 86400 s",
    ]
    file.write_text("kind: Workload\nstart_s: {}\n")
    line = "start_s: {} | a number, or quantiles as {p50: 8, p90: 45}, in s"
    assert refused(workload.parse, yamlfile.document(file)).endswith(line)


@pytest.mark.parametrize(
    ("scale", "start_s", "in_flight_s", "swing", "told"),
    [
        ("quick", 4.0, 0.11, None, "as measured"),
        ("real", 62.0, 2.55, (0.05, 5.05), "0.05 to 5.05 s by commit_interval_ms 5000 and a poll's work"),
    ],
)
def test_what_a_scale_divides_is_measured_for_that_scale_alone(scale, start_s, in_flight_s, swing, told):
    """At quick a start of 60 s is one of 2 s, and commits come every 0.17 s: at real time both are as declared."""
    work = workload.Workload(start_s=60, poll_ms=50)
    inputs = SimpleNamespace(pod_rate=100.0, workload=work, partitions=12)
    record = SimpleNamespace(inputs=inputs, scale=scales.load("quick"))
    measured = SimpleNamespace(consumers=Consumers(100.0, 4.0, in_flight_s=0.11, stop_s=0.7))
    parser = Flags("elastic-lab simulate", None, environment=False)
    situation.add_flags(parser)
    found = pods.read(parser.parse_args([OBJECT, TRAFFIC]), None, scales.load(scale), [record], measured)
    assert (found.consumers.start_s, found.consumers.in_flight_s, found.consumers.stop_s) == (start_s, in_flight_s, 0.7)
    assert (found.in_flight, found.swing, found.partitions) == (told, swing, 12)
