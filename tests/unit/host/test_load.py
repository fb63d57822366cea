"""The load of the machine: the kernel's text is read as it stands, and no CPU time is counted twice or lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.host import load
from lab.host.load import Process, cpu_times, descendants, growth, parse_process, stalled

STAT = "cpu  200 100 300 5000 60 7 8 50 0 0\ncpu0 1 2 3\n"
PRESSURE = "some avg10=0.00 avg60=0.17 avg300=0.41 total=2500000\nfull avg10=0.00 avg60=0.01 avg300=0.11 total=1301601\n"
TEXT = "42 (a) b (c) S 7 42 42 0 -1 4194304 1 0 0 0 30 20 400 100 20 0 1 0 9876 1 2 3"


def test_the_kernels_text():
    """Interrupts are no task's time; a process' name may hold a bracket."""
    assert cpu_times(STAT) == (600 / load.TICKS, 50 / load.TICKS)
    assert stalled(PRESSURE) == 2.5
    assert parse_process(TEXT) == (9876, Process(7, 50 / load.TICKS, 500 / load.TICKS, 2 * load.PAGE))


def tree(**parents):
    """Processes of pid and start 1 to 9 whose parent is given, without CPU time."""
    return {(int(name[1:]), int(name[1:])): Process(parent, 0, 0) for name, parent in parents.items()}


def test_descendants_are_found_through_all_generations():
    """Also one whose parent has gone, if it was known before; a stranger, and a new process of an old pid, are none."""
    seen = tree(p1=0, p2=1, p3=2, p4=3, p5=1)
    assert descendants(seen, {2}) == {(2, 2), (3, 3), (4, 4)}
    orphan = tree(p1=0, p2=1, p4=1, p5=1)
    assert descendants(orphan, {2}) == {(2, 2)}
    assert descendants(orphan, {2}, [(3, 3), (4, 4), (5, 9)]) == {(2, 2), (4, 4)}


def test_a_child_that_nobody_waited_for_takes_nothing_off():
    """Its last moments are lost, and no one else's."""
    before = {(1, 1): Process(0, 10, 0), (2, 2): Process(1, 5, 0)}
    assert growth(before, {(1, 1): Process(0, 12, 0)}) == 2


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0, 5)), max_size=30), st.integers(1, 5))
def test_the_growth_of_a_tree_is_what_its_processes_took(work, every):
    """Children come, work, end and are waited for, between readings or across them: the sum is what all of them took."""
    root, children, took, counted = [0.0, 0.0], {}, 0.0, 0.0
    shown = {(1, 1): Process(0, 0, 0)}
    for moment, (child, amount) in enumerate(work, 2):
        if child == 0 and children:  # the oldest ends
            root[1] += children.pop(next(iter(children)))
        elif child == 1:
            children[moment] = amount
            took += amount
        else:
            root[0] += amount
            took += amount
        if moment % every == 0 or moment == len(work) + 1:
            now = {(1, 1): Process(0, *root)} | {(one, one): Process(1, own, 0) for one, own in children.items()}
            counted += growth(shown, now)
            shown = now
    assert counted == pytest.approx(took)


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["/env/bin/python", "-m", "lab.programs.producer", "--topic=x"], "lab.programs.producer"),
        (["/env/bin/python", "/env/bin/pytest", "-m", "spike"], "pytest"),
        (["/env/bin/python", "-P", "/lab/kubelet/zygote.py", "7"], "zygote.py"),
        (["python -m lab.programs.consumer"], "lab.programs.consumer"),
        (["/usr/bin/java", "-Xmx512m", "-cp", "a.jar", "kafka.Kafka", "server.properties"], "kafka"),
        (["/usr/bin/java", "-cp", "x", "org.apache.spark.deploy.SparkSubmit"], "spark"),
        (["/usr/bin/java", "-jar", "other.jar"], "java"),
        (["/usr/bin/java", "-cp", "/jars/kafka-clients.jar", "lab.Program"], "consumer-java"),
        (["/cache/kube-apiserver", "--etcd-servers=x"], "kube-apiserver"),
        ([], "ended"),
    ],
)
def test_a_process_is_named_by_its_command(words, what):
    """A module, a Java program or a file; one that has ended has no command any more."""
    assert load.what(words) == what
