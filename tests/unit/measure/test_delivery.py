"""Delivery: every mutation between the profile and the receipts is seen."""

from dataclasses import asdict, replace

import pytest

from lab.errors import NoData
from lab.judge.claim import BREACHED, HELD, NO_DATA, judge
from lab.judge.measure import Runs
from lab.measure.delivery import DELIVERED, UNTOLD_ID, delivery, passed_over, unaccounted, undelivered
from lab.record.reconciliation import Range, Reconciliation
from lab.record.store import Record, write_json
from lab.record.trial import Offsets

from . import built
from .conftest import report

TOTAL = 100
TALLY = {"sent": TOTAL, "acked": TOTAL, "failed": 0, "unknown": 0, "completed": True}
LOG = {0: Offsets(50, 50), 1: Offsets(50, 50)}
COUNTS = dict.fromkeys(
    ("holes", "resent", "lost_messages", "unseen_messages", "doubled_messages", "phantom_messages", "mismatched_receipts"), 0
)
EXACT = Reconciliation(
    produced=TOTAL, processed=TOTAL, receipts=10, **COUNTS, lost=(), unseen=(), doubled=(), phantom=(), mismatched=()
)
IDS = ("9Qk", "9Qk")


def trial(folder, *, tallies=(TALLY,), ledger=EXACT, offsets=None, topic_ids=IDS, ended="complete", **inputs):
    """A trial of 100 events on two partitions, with what a test says is otherwise; the log ends where the ledger does."""
    offsets = offsets or LOG | {1: Offsets(ledger.produced + ledger.holes - 50, ledger.produced + ledger.holes - 50)}
    profile = {"steps": [{"at": 0, "rate": 1, "phase": "baseline"}], "duration": TOTAL}
    events = [report(1, "producer", "profile", start=1.0)]
    events += [report(99 + number, "producer", "produced", **tally) for number, tally in enumerate(tallies)]
    more = {"offsets": offsets, "topic_ids": topic_ids, "ended": ended}
    made = built.record(folder, inputs={"profile": profile} | inputs, group_events=events, **more)
    write_json(folder / "reconciliation.json", asdict(ledger))
    return Record(made.folder)


def stored(messages, **counts):
    """What the ledger says of so many messages on the topic, all of them processed."""
    return replace(EXACT, produced=messages, processed=messages, **counts)


def tail(partition, first, last):
    """What the ledger says of a partition whose last messages nobody processed."""
    gap = Range(partition, first, last, last - first + 1, ("a",))
    return replace(EXACT, processed=TOTAL - gap.count, unseen_messages=gap.count, unseen=(gap,))


def verdict(record):
    """The one invariant of the record."""
    return judge(unaccounted(record) == 0, DELIVERED, kind="invariant").verdict


def test_a_trial_without_a_fault_is_held(tmp_path):
    """What the profile schedules was sent, acknowledged, stored and processed once; nothing is named."""
    found = delivery(trial(tmp_path))
    assert (found.scheduled.value, found.sent.value, found.acked.value, found.stored.value) == (100, 100, 100, 100)
    assert (found.unaccounted.value, found.copies.value, found.topics.value, found.named) == (0, 0, 1, ())
    assert verdict(trial(tmp_path)) == HELD
    halves = tuple(TALLY | {"sent": part, "acked": part} for part in (60, 40))
    assert verdict(trial(tmp_path, tallies=halves)) == HELD, "of two producers each counts"


@pytest.mark.parametrize(
    ("change", "wrong", "words"),
    [
        ({"ledger": stored(93)}, 7, "7 messages acknowledged and not on the topic"),
        # The producer ran twice, or half before it ran whole; the topic was made anew; it stopped early; an unknown fate.
        ({"tallies": (TALLY, TALLY), "ledger": stored(200, resent=100)}, 200, "100 messages on the topic a second time"),
        ({"ledger": stored(150, resent=50)}, 100, "50 messages on the topic and not acknowledged"),
        ({"topic_ids": ("9Qk", "7fL")}, 100, "100 messages on another topic than the one that was made"),
        ({"tallies": (TALLY | {"sent": 60, "acked": 60},), "ledger": stored(60)}, 40, "40 messages scheduled and not sent"),
        ({"tallies": (TALLY | {"acked": 97, "unknown": 3},), "ledger": stored(97)}, 3, "3 messages sent and not acknowledged"),
        ({"ledger": tail(1, 40, 49)}, 10, "10 messages lost"),
        ({"ledger": tail(1, 40, 49), "offsets": LOG | {1: Offsets(50, 40)}}, 10, "10 messages never reached"),
        # The log ends elsewhere than the ledger. A group that had drained is behind its log, or ahead of it.
        ({"offsets": {0: Offsets(50, 50)}}, 50, "50 offsets of the logs' ends that the ledger does not have"),
        ({"offsets": LOG | {1: Offsets(57, 57)}}, 7, "7 offsets of the logs' ends that the ledger does not have"),
        ({"offsets": LOG | {1: Offsets(50, 47)}}, 3, "3 messages not committed, though the group had drained"),
        ({"offsets": {0: Offsets(50, 54), 1: Offsets(50, 46)}}, 8, "8 messages not committed, though the group had drained"),
        (
            {"ledger": tail(1, 40, 49), "offsets": {0: Offsets(50, 47), 1: Offsets(50, 40)}},
            13,
            "3 messages not committed, though the group had drained",
        ),
        (
            {"ledger": stored(100, holes=2), "offsets": LOG | {1: Offsets(55, 55)}},
            5,
            "3 offsets of the logs' ends that the ledger does not have",
        ),
        ({"ledger": stored(100, holes=-1, resent=1)}, 2, "1 offsets missing in the log"),
        ({"ledger": stored(101, resent=1)}, 2, "1 messages on the topic and not acknowledged"),
        # The log ends before what was never reached: all of it is committed, and no more.
        (
            {"ledger": tail(1, 45, 49), "offsets": LOG | {1: Offsets(45, 45)}},
            10,
            "5 offsets of the logs' ends that the ledger does not have",
        ),
    ],
)
def test_a_mutation_breaches(tmp_path, change, wrong, words):
    """Each is counted, and named."""
    found = delivery(trial(tmp_path, **change))
    assert found.unaccounted.value == wrong
    assert words in found.named
    assert verdict(trial(tmp_path, **change)) == BREACHED


@pytest.mark.parametrize(
    "field", ["lost", "unseen", "doubled", "phantom", "mismatched", "holes", "both", "buried_again", "stray"]
)
def test_what_is_not_exact_is_unaccounted(tmp_path, field):
    """Whatever makes a reconciliation inexact breaches the invariant of a drained trial; a kill may leave copies alone."""
    name = next(one for one in vars(EXACT) if one.startswith(field) and isinstance(getattr(EXACT, one), int))
    ranges = {field: (Range(0, 1, 1, 1, ()),)} if field in ("lost", "unseen") else {}
    ledger = replace(EXACT, **{name: 1}, **ranges)
    assert not ledger.exact
    made = trial(tmp_path, ledger=ledger)
    copy = field in ("doubled", "both", "buried_again")
    assert (delivery(made).unaccounted.value, undelivered(made).value) == (1, 0 if copy else 1)


def test_what_is_not_committed_is_no_loss_where_the_trial_was_not_to_drain(tmp_path):
    """A backlog at the end is one; what is committed and was not processed is lost, in the very same range."""
    undrained = {"until": "replayed", "ledger": tail(1, 40, 49)}
    unfinished = trial(tmp_path / "late", offsets=LOG | {1: Offsets(50, 47)}, ended="deadline: 60 s")
    assert (verdict(unfinished), delivery(unfinished).uncommitted.value) == (HELD, 3)
    backlog = trial(tmp_path / "backlog", offsets=LOG | {1: Offsets(50, 40)}, **undrained)
    ahead = trial(tmp_path / "ahead", offsets=LOG | {1: Offsets(50, 44)}, **undrained)
    assert verdict(backlog) == HELD
    assert delivery(ahead).unaccounted.value == 4
    assert delivery(ahead).named == ("4 messages lost",)


def test_what_is_committed_and_was_not_processed_is_counted_by_partition(tmp_path):
    """From the gap's beginning up to the commit, which may be beyond it. Without a commit nothing is passed over."""
    ledger = replace(EXACT, processed=85, unseen_messages=15, unseen=(Range(0, 45, 49, 5, ()), Range(1, 40, 49, 10, ())))
    made = trial(tmp_path / "one", ledger=ledger, offsets={0: Offsets(50, None), 1: Offsets(50, 44)})
    assert [passed_over(made, among) for among in (None, {0}, {1}, {0, 1}, set())] == [4, 0, 4, 4, 0]
    assert passed_over(trial(tmp_path / "beyond", ledger=ledger, offsets={1: Offsets(50, 60)})) == 10
    behind = {0: Offsets(50, 44), 1: Offsets(50, 30)}  # other messages are not committed yet
    assert passed_over(trial(tmp_path / "behind", ledger=ledger, offsets=behind)) == 0
    many = replace(EXACT, unseen_messages=300, unseen=(Range(0, 0, 299, 300, ()),))
    assert passed_over(trial(tmp_path / "many", ledger=many, offsets={0: Offsets(300, 299)})) == 299
    none = replace(EXACT, processed=99, unseen_messages=1, unseen=(Range(0, 0, 0, 1, ()),))
    assert passed_over(trial(tmp_path / "none", ledger=none, offsets={0: Offsets(50, None)})) == 0
    for told in (14, 16):
        with pytest.raises(NoData, match="more ranges were never reached than are named"):
            passed_over(trial(tmp_path / f"{told}", ledger=replace(ledger, unseen_messages=told)))


def test_what_became_of_each_message_is_counted(tmp_path):
    """Of a tail that is committed in part, the rest may still be read; ranges are named with their pods."""
    ledger = replace(tail(1, 40, 49), lost_messages=4)
    found = delivery(trial(tmp_path, ledger=ledger, offsets=LOG | {1: Offsets(50, 44)}))
    assert (found.lost.value, found.unseen.value, found.uncommitted.value, found.processed.value) == (8, 6, 6, 90)
    assert found.ranges == ("unseen: partition 1, 40-49 (10): a",)


def test_copies_are_told_apart(tmp_path):
    """A kill may repeat work: what it repeats is unaccounted for, and a copy."""
    made = trial(tmp_path, ledger=replace(EXACT, doubled_messages=5, both_messages=1, buried_again=2))
    assert (delivery(made).copies.value, unaccounted(made).value, undelivered(made).value) == (8, 8, 0)


def test_of_a_record_of_before_all_but_the_topic_is_judged_and_that_is_said(tmp_path):
    """It has no id of its topic: the rest is judged, and the verdict says what is not."""
    old = trial(tmp_path, topic_ids=())
    assert delivery(old).topics.value is None
    made = judge(unaccounted(old) == 0, DELIVERED, kind="invariant")
    assert made.verdict == HELD
    assert "topic's id" in made.note
    assert (unaccounted(old, old).why, unaccounted(Runs([old, old])).why) == (UNTOLD_ID, UNTOLD_ID)


def test_where_something_is_missing_nothing_is_proved(tmp_path):
    """No tally, or an id that could not be read at the end: no data."""
    assert verdict(trial(tmp_path, tallies=())) == NO_DATA
    half = {name: count for name, count in TALLY.items() if name != "failed"}
    assert delivery(trial(tmp_path, tallies=(TALLY, half))).sent.why == "the producer's tally has no failed"
    assert verdict(trial(tmp_path, topic_ids=("9Qk",))) == NO_DATA
    less = {name: count for name, count in half.items() if name != "unknown"}
    assert delivery(trial(tmp_path, tallies=(less,))).sent.why == "the producer's tally has no unknown"


def test_several_records_are_judged_by_one_line(tmp_path):
    """Their sum, and no data when one has none."""
    one, other = trial(tmp_path / "a"), trial(tmp_path / "b", ledger=replace(EXACT, holes=2))
    assert unaccounted(one, other).value == 2
    (tmp_path / "b" / "reconciliation.json").unlink()
    assert unaccounted(one, Record(tmp_path / "b")).value is None


@pytest.mark.parametrize("driver", ["ridehailing/locust", "another/driver"])
def test_what_no_profile_schedules_is_judged_from_the_topic_on(tmp_path, driver):
    """Requests of Locust are not all events, and no profile schedules them."""
    requests = TALLY | {"sent": 300, "acked": 300}
    found = unaccounted(trial(tmp_path, driver=driver, tallies=(requests,)))
    assert found.value == 0
    assert driver in found.why
