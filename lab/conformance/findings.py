"""What a consumer fulfils of the contract, rung by rung, by what was seen of it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from typing import Any

from lab.conformance.seen import COMMIT, FINISH, JOIN, LEAVE, RECOVER, SHARE, TAKE_OVER, Owned, Seen
from lab.inputs.own_consumer import BLACK_BOX, RECEIPTS, REPORTS, RUNGS

HELD, BREACHED, NO_DATA, NOTE = "held", "breached", "no data", "note"
SLACK_S = 1.0  # a receipt may be stamped a little before or after what was written down of the rehearsal
LEFT_S = 3.0  # a group whose member says that it leaves is at rest by then


@dataclass(frozen=True)
class Finding:
    """What the contract asks for on ``rung``, the verdict, and why. A note says what a trial will show: it fails nothing."""

    rung: str
    what: str
    verdict: str
    text: str

    @property
    def fails(self) -> bool:
        """Whether the rung is not fulfilled by it."""
        return self.verdict in (BREACHED, NO_DATA)


def fulfilled(found: Sequence[Finding]) -> str:
    """The highest rung of which nothing fails, and nothing of those below it; "" for none."""
    best = ""
    for rung in RUNGS:
        if any(one.fails for one in found if one.rung == rung):
            break
        best = rung
    return best


def findings(seen: Seen) -> list[Finding]:
    """All that is judged, in the order of the rungs."""
    return [*_black_box(seen), *_reports(seen), *_receipts(seen)]


def resolution(seen: Seen) -> tuple[float, float] | None:
    """Median and longest time between two commits of a partition while messages came, s; None without two."""
    gaps = [later[0] - earlier[0] for rows in seen.commits.values() for earlier, later in pairwise(rows)]
    return (median(gaps), max(gaps)) if gaps else None


def _black_box(seen: Seen) -> Iterator[Finding]:
    yield _waited(seen, "joins its group", JOIN, _stranger(seen))
    if seen.strangers:
        text = f"{seen.strangers[0]} is no $POD_NAME, which is to be the client id: else a trial's reaction has no data"
        yield Finding(BLACK_BOX, "names its members", NOTE, text)
    yield _waited(seen, "commits", COMMIT, _last_words(seen))
    if found := resolution(seen):
        text = f"a partition's commits are up to {found[1]:.1f} s apart (median {found[0]:.1f}): a trial sees its work no finer"
        yield Finding(BLACK_BOX, "resolution", NOTE, text)
    yield _waited(seen, "shares its partitions", SHARE, seen.ended or _last_words(seen))
    yield _stopped(seen)
    if LEAVE in seen.waits:
        took, ended = seen.took(LEAVE), max((one.seconds or 0.0 for one in seen.stops), default=0.0)
        after = f"more than {seen.waits[LEAVE].limit_s:g} s" if took is None else f"{took:.1f} s"
        silent = "" if took is not None and took <= ended + LEFT_S else ": it does not say that it leaves"
        yield Finding(BLACK_BOX, "leaves its group", NOTE, f"the other one had its partitions {after} after SIGTERM{silent}")
    finish = _waited(seen, "commits all of it", FINISH, _left(seen, FINISH))
    if finish.verdict == HELD and seen.took(LEAVE) is None:
        finish = replace(
            finish, text=f"{finish.text}, in its own partitions: the others' stand still until the session timeout"
        )
    yield finish
    if (wait := seen.waits.get(TAKE_OVER)) is not None:
        late = f"more than {wait.limit_s:g} s: they stand still until the session timeout"
        text = late if wait.seconds is None else f"{wait.seconds:.1f} s: a session timeout, a start, a rebalance"
        yield Finding(BLACK_BOX, "after a SIGKILL", NOTE, f"its partitions wait for another {text}")
    if RECOVER in seen.waits:
        yield _waited(seen, "commits all after a SIGKILL", RECOVER, _left(seen, RECOVER))
    if seen.ended and seen.took(JOIN) is not None:
        yield Finding(BLACK_BOX, "goes on", BREACHED, seen.ended)


def _waited(seen: Seen, what: str, stage: str, why: str) -> Finding:
    """Whether ``stage`` came; ``why`` it may not have."""
    wait = seen.waits.get(stage)
    if wait is None:
        return Finding(BLACK_BOX, what, NO_DATA, "not tried")
    if wait.seconds is None:
        return Finding(BLACK_BOX, what, BREACHED, f"{stage}: {'' if seen.ended else f'not within {wait.limit_s:g} s; '}{why}")
    return Finding(BLACK_BOX, what, HELD, f"{stage} after {wait.seconds:.1f} s")


def _stranger(seen: Seen) -> str:
    """Why no member of the group owned the topic's partitions."""
    login = "Kafka asks for the login in $KAFKA_SETTINGS (without one: --no-login)" if seen.login else ""
    if seen.ended:
        return "; ".join(filter(None, (seen.ended, login)))
    if seen.elsewhere:
        return f"its members read {', '.join(seen.elsewhere)}, not {seen.topic}: it is to take $TOPIC; {_last_words(seen)}"
    if seen.groups:
        return f"{', '.join(seen.groups)} has members, {seen.group} has none: it is to take $GROUP; {_last_words(seen)}"
    return "; ".join(filter(None, (f"{seen.group} has no such member", login, _last_words(seen))))


def _last_words(seen: Seen) -> str:
    return f"its last line: {seen.last_words}" if seen.last_words else "it wrote no line"


def _left(seen: Seen, stage: str) -> str:
    """The partition with most messages that were not committed in ``stage``."""
    number, count = max(seen.left.get(stage, {}).items(), key=lambda one: one[1], default=(0, 0))
    return f"{count} messages of partition {number} are not"


def _stopped(seen: Seen) -> Finding:
    what = "ends at SIGTERM"
    if not seen.stops:
        return Finding(BLACK_BOX, what, NO_DATA, "not tried")
    if stuck := sum(one.code is None for one in seen.stops):
        there = f"{stuck} of {len(seen.stops)} processes were there {seen.grace_s:g} s after it"
        text = f"{there}, which goes to the command itself: a script execs its program; {_last_words(seen)}"
        return Finding(BLACK_BOX, what, BREACHED, text)
    codes = ", ".join(sorted({str(one.code) for one in seen.stops}))
    return Finding(BLACK_BOX, what, HELD, f"after {max(one.seconds or 0.0 for one in seen.stops):.1f} s at most, code {codes}")


def _reports(seen: Seen) -> Iterator[Finding]:
    what = "reports what it owns"
    if seen.bad_report:
        yield Finding(REPORTS, what, BREACHED, seen.bad_report)
    elif not seen.reports:
        yield Finding(REPORTS, what, NO_DATA, "no line of JSON with an event on stdout, and none on $REPORTS_TOPIC")
    elif LEAVE not in seen.told:
        yield Finding(REPORTS, what, NO_DATA, "not tried to the end")
    else:
        wrong = next(filter(None, (_untrue(stage, owned, seen) for stage, owned in seen.told.items())), "")
        text = wrong or f"{seen.reports} reports, which say who owned what with one, three and again one at work"
        yield Finding(REPORTS, what, BREACHED if wrong else HELD, text)


def _untrue(stage: str, owned: Owned, seen: Seen) -> str:
    """What is wrong with what reports say that each pod owns when ``stage`` was seen; "" where each partition has one owner."""
    owners = Counter(number for held in owned.values() for number in held)
    if twice := sorted(number for number, count in owners.items() if count > 1):
        return f"when {stage}, partitions {twice} have several owners by its reports: what was revoked is missing"
    if lacking := sorted(set(range(seen.partitions)) - owners.keys()):
        return f"when {stage}, partitions {lacking} have no owner by its reports: what was assigned is missing"
    return ""


def _receipts(seen: Seen) -> Iterator[Finding]:
    written = "writes receipts"
    if seen.bad_receipt:
        yield Finding(RECEIPTS, written, BREACHED, seen.bad_receipt)
        return
    if not seen.receipts:
        yield Finding(RECEIPTS, written, NO_DATA, "no record on $RECEIPTS_TOPIC")
        return
    yield Finding(RECEIPTS, written, HELD, f"{len(seen.receipts)}, as the schema says")
    if seen.ahead:
        number, committed, covered = seen.ahead[0]
        text = f"partition {number} was committed up to {committed} when its receipts had come to {covered}"
        yield Finding(RECEIPTS, "commits after the receipt", BREACHED, text)
    else:
        yield Finding(RECEIPTS, "commits after the receipt", HELD, "no offset was seen committed before its receipt")
    yield from _coverage(seen)
    yield _content(seen)


def _coverage(seen: Seen) -> Iterator[Finding]:
    """Whether receipts cover what is committed, and how often they cover it again."""
    copies = _processed(seen.receipts)
    committed = [(number, offset) for number, end in sorted(seen.committed.items()) for offset in range(end)]
    gaps = [place for place in committed if place not in copies]
    text = f"{len(committed)} committed messages"
    if gaps:
        text = f"{len(gaps)} messages are committed and in no receipt, first offset {gaps[0][1]} of partition {gaps[0][0]}"
    yield Finding(RECEIPTS, "covers each message", BREACHED if gaps else HELD, text)
    early = _processed([row for row in seen.receipts if row["end"] < seen.killed])
    twice, before = (sum(count - 1 for count in each.values()) for each in (copies, early))
    if before:
        why = "it does not commit them at SIGTERM, or when it gives partitions up. A trial is breached by that"
        yield Finding(RECEIPTS, "copies without a kill", NOTE, f"{before} messages were processed again: {why}")
    if twice > before:
        text = f"{twice - before} messages were processed again; one consumer was killed at work"
        yield Finding(RECEIPTS, "copies", NOTE, text)


def _processed(receipts: Iterable[Mapping[str, Any]]) -> Counter[tuple[int, int]]:
    """How often each (partition, offset) is in one of ``receipts``."""
    return Counter((row["partition"], offset) for row in receipts for offset in range(row["first"], row["last"] + 1))


def _content(seen: Seen) -> Finding:
    """Whether counts, checksums and times of the receipts are true."""
    for row in seen.receipts:
        if wrong := _untrue_receipt(row["first"], row["last"], row, seen):
            where = f"partition {row['partition']}, offsets {row['first']} to {row['last']}"
            return Finding(RECEIPTS, "says what is true", BREACHED, f"{where}: {wrong}")
    return Finding(RECEIPTS, "says what is true", HELD, "counts, checksums and times")


def _untrue_receipt(first: int, last: int, row: dict[str, float], seen: Seen) -> str:
    checks = [seen.checks.get((int(row["partition"]), offset)) for offset in range(first, last + 1)]
    known = [one for one in checks if one is not None]
    if len(known) < len(checks):
        return "there are no such messages"
    if row["count"] != len(known):
        return f"count {row['count']}, and not {len(known)}"
    if row["checksum"] != sum(known):
        return f"checksum {row['checksum']}, and not {sum(known)}"
    if not seen.began - SLACK_S <= row["start"] <= row["end"] <= seen.over + SLACK_S:
        return f"from {row['start']:.3f} to {row['end']:.3f}; it was {seen.began:.0f} to {seen.over:.0f} (epoch s)"
    return ""
