"""The schedule of a session: when it ends, from what its tests are known to take."""

from lab.inputs import scale as scales
from lab.report.schedule import CLUSTER_S, Planned, Progress, Schedule

QUICK, REAL = scales.load("quick"), scales.load("real")
TESTS = (Planned("a", "1: CPU", 90), Planned("b", "the centre", 300, "standard"), Planned("c", "another"))


def test_the_plan_is_printed_with_its_time():
    """Tests of two scales need a cluster each; a test of unknown length is said to be one."""
    first, *rows = Schedule(TESTS, QUICK, 1).lines
    assert Schedule(TESTS, QUICK, 1).seconds == 390 + 2 * CLUSTER_S
    assert first == "plan: 3 tests, about 7 min 00 s, and 1 of which nobody has said how long they take"
    assert [row.strip() for row in rows] == ["1 min 30 s  1: CPU", "5 min 00 s  the centre"]
    assert Schedule(TESTS[2:], QUICK, 1).lines == ["plan: 1 test; nobody has said how long they take"]


def test_repeats_and_scales_take_their_time():
    """At real time a quick trial takes thirty times as long, one of standard five times; each repeat as long again."""
    assert Schedule(TESTS, REAL, 2).seconds == 2 * (90 * 30 + 300 * 5) + CLUSTER_S


def test_what_is_left_follows_from_what_was_slow():
    """A session that is twice as slow as planned stays so; a faster one is not believed."""
    schedule = Schedule(TESTS, QUICK, 1)
    assert schedule.progress({"a"}, 2 * (90 + CLUSTER_S)) == "1 of 3 tests have ended after 3 min 30 s; about 10 min 00 s to go"
    assert schedule.progress({"a"}, 10).endswith("about 5 min 00 s to go")
    assert schedule.progress({"a", "b", "c"}, 500) == "3 of 3 tests have ended after 8 min 20 s"


def test_a_test_without_trials_is_not_counted():
    """The session's summary has none."""
    said = []
    progress = Progress(Schedule(TESTS, QUICK, 1), said.append)
    for test in ("a", "summary"):
        progress.pytest_runtest_logfinish(test)
    assert [line.partition(" tests")[0] for line in said[3:]] == ["1 of 3"]
