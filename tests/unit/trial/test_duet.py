"""A duet on stand-in stages: both sides are put up, one producer starts, and each leaves a record that names the other."""

import threading
from types import SimpleNamespace

import pytest

from lab.errors import LabFault
from lab.inputs import inputs
from lab.inputs import scale as scales
from lab.inputs.duet import sides
from lab.record.store import opened
from lab.record.trial import Deadlines, Turn
from lab.trial import phases, runner
from lab.trial.closing import Closing, Part, close
from lab.trial.record_parts import _concerns
from tests.experiments.workloads import light
from tests.unit.measure import whole


class Stage:
    """A side that settles at once; what is done to any is in ``said``."""

    said: list = []
    broken = ""

    def __init__(self, cluster, journal, folder, lead=None, brokers=None):
        self.journal, self.inputs, self.folder = journal, journal.trial.inputs, folder
        self.lead, self.name, self.deadlines = lead or self, self.inputs.side.name, Deadlines(1, 1, 1, 1)
        journal.mark = self.mark
        self.lag = SimpleNamespace(read=dict)  # asked by the live line where a run takes more than 5 s
        self.baseline = SimpleNamespace(replicas=4, why="")
        self.names, self.stop, self.produced = {}, threading.Event(), threading.Event()
        self.transitions = SimpleNamespace(wait=self.wait, gaps=[])
        self.reports = SimpleNamespace(last=self.last, owned=lambda: {str(n): 6 for n in range(4)})
        self.say("made")

    def say(self, what):
        """Note it."""
        Stage.said.append((self.name, what))

    def mark(self, phase):
        """Enter a phase."""
        self.journal.note(times=self.journal.trial.times | {phase: float(len(Stage.said))})
        self.say(phase)

    def wait(self, condition, deadline_s, what, check):
        """Nothing comes later."""
        if Stage.broken == self.name and what == "profile replayed":
            raise LabFault("etcd died")
        if Stage.broken and what == "profile replayed":
            assert self.stop.wait(5)
            raise LabFault("the other side of the duet could not go on")
        assert condition(), what

    def last(self, event):
        """What the producer of the lead reported."""
        return {"event": event} if self.lead.produced.is_set() else None

    def produce(self):
        """Start the producer."""
        self.produced.set()
        (self.folder / "inputs" / "job-producer.yaml").write_text("kind: Job\n")
        self.say("produce")

    def apply(self, wanted):
        """Put it up."""
        self.say("apply")

    def ready(self, *_):
        """At once."""
        return True

    def line(self):
        """Nothing to tell."""
        return ""

    def check(self):
        """All is well."""

    def close(self):
        """Take it down."""
        self.say("close")


@pytest.fixture
def stages(monkeypatch):
    """Stand-ins in the place of stages; what was done to them."""
    Stage.said, Stage.broken = [], ""
    monkeypatch.setattr(runner, "Stage", Stage)
    monkeypatch.setattr("lab.host.machine.describe", lambda: whole.MACHINE)
    monkeypatch.setattr(phases, "is_active", lambda _: True)

    def parts(stage, spark, missing):
        return [Part(name, lambda into, name=name: (into / name).write_text(stage.name), 5) for name in ("rest", "ledger")]

    monkeypatch.setattr(runner, "parts", parts)
    return Stage


@pytest.fixture(scope="module")
def pair():
    """The sides of a duet of two policies."""
    scale = scales.load("quick")
    read = [inputs.read("plateau", name, light(), 1, scale, "binary", until="replayed") for name in ("lag-4500", "cpu")]
    return sides(*read)


def run(results, chosen):
    """Execute a duet."""
    return runner.run(SimpleNamespace(versions={}), chosen, results, lambda: None, Turn(1, 2, 1, 1))


def test_both_sides_go_through_the_same_phases_into_records_that_name_each_other(stages, tmp_path, pair):
    """Both are put up before traffic starts, once, by the first; the one that the other leans on goes last.

    Each record has its own inputs, the producer's among them, its own files, and its turn.
    """
    one, other = run(tmp_path, pair[::-1])
    begun = [(side, what) for what in ("made", "settling", "apply") for side in "ba"]
    assert stages.said[:7] == [*begun, ("b", "driving")]
    assert [one for one in stages.said if one[1] == "produce"] == [("b", "produce")]
    assert stages.said[-2:] == [("a", "close"), ("b", "close")]
    assert [one.id, other.id] == [side.id for side in pair[::-1]]
    assert (one.trial.duet.other, one.trial.duet.first) == (other.name, True)
    assert (other.trial.duet.other, other.trial.duet.first) == (one.name, False)
    for record, name in ((one, "b"), (other, "a")):
        again = opened(record.folder)
        assert (again.trial.ended, again.trial.turn, again.inputs.side.name) == ("complete", Turn(1, 2, 1, 1), name)
        assert (again.folder / "ledger").read_text() == name
        assert (again.folder / "inputs" / "job-producer.yaml").exists()


@pytest.mark.parametrize("broken", ["a", "b"])
def test_a_side_that_fails_ends_both_and_both_records_stay(stages, tmp_path, broken, pair):
    """Neither is of a trial that went to its end, and the first fault is raised; the next attempt is beside them."""
    stages.broken = broken
    with pytest.raises(LabFault, match="etcd died"):
        run(tmp_path, pair)
    left = [opened(folder) for folder in sorted((tmp_path / "records").iterdir())]
    assert [record.trial.ended for record in left] == ["fault: etcd died"] * 2
    assert {said for said in stages.said if said[1] == "close"} == {("a", "close"), ("b", "close")}
    stages.broken = ""
    assert [record.name for record in run(tmp_path, pair)] == [f"{side.id}.2" for side in pair]


def test_both_sides_come_to_an_event_before_it_happens(monkeypatch):
    """Once its phase has begun, and again before the next."""
    done = []
    monkeypatch.setattr(phases, "_await", lambda _, phase: done.append(f"await {phase}"))
    monkeypatch.setattr(phases, "happen", lambda _, phase, event: done.append(event))
    chosen = SimpleNamespace(schedule=(("spike", "kill"), (None, "step")), until="replayed")
    stage = SimpleNamespace(inputs=chosen, journal=SimpleNamespace(mark=lambda _: None))
    assert phases.follow(stage, lambda: done.append("meet")) == "complete"
    assert done == ["await spike", "meet", "kill", "await None", "meet", "step", "await None"]


def test_records_are_closed_part_by_part_of_all(tmp_path):
    """So that no side still runs while Spark settles the other's ledger; one that lacks a part costs the other none."""
    order = []

    def write(name, fails=False):
        def part(into):
            order.append(name)
            if fails:
                raise LabFault("gone")

        return Part(name[1:], part, 5)

    for name in "ab":
        (tmp_path / name).mkdir()
    a = Closing(tmp_path / "a", [write("a1"), write("a2", fails=True), write("a3")], {})
    b = Closing(tmp_path / "b", [write("b1"), write("b2")], {})
    close(a, b)
    assert order == ["a1", "b1", "a2", "b2", "a3"]
    assert (a.missing, b.missing) == ({"2": "gone"}, {})


@pytest.mark.parametrize(
    ("line", "concerns"),
    [
        ('"scaled" HPA="trial-plateau-lag-4500-aa-01/keda-hpa-consumer"', True),
        ('"scaled" HPA="trial-plateau-cpu-bb-01/keda-hpa-consumer"', False),
        ('"failed" keda-hpa-consumer: no metric for "trial-plateau-cpu-bb-01/consumer"', False),
        ('"failed to get" keda-hpa-consumer: no metric', True),
        ('"failed to get" other: no metric', False),
    ],
)
def test_a_line_of_the_controller_is_of_the_side_that_it_names(line, concerns):
    """The HPAs of a duet may have one name in two namespaces."""
    assert _concerns(line, "trial-plateau-lag-4500-aa-01", " keda-hpa-consumer:") is concerns
