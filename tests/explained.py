"""``python -m tests.explained RECORDS``: how often ``explain`` gives the reason of the HPA's own log, by scrape interval.

The truth is the sealed log of the HPA controller and the model's decision on each sync's own inputs, where the two agree. What
``explain`` gets is what Prometheus would have had: the statuses that the API's watch saw, or the lag, at one scrape in so many
seconds. Of a compressed trial the interval is compressed like its sync period.
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path
from statistics import median

from lab.commands import scrapes
from lab.commands.text import table
from lab.errors import InputError, NoData
from lab.flags import Flags
from lab.foresee import live_hpa
from lab.foresee.explain import Explanation, between, decided_by, explain
from lab.foresee.live_hpa import Sample, Series
from lab.foresee.situation import controller_of
from lab.inputs.scale import HPA_SYNC_S
from lab.inputs.scaledobject import ScaledObject
from lab.inputs.triggers.kafka import Kafka
from lab.model.hpa_log import replayed
from lab.record import store
from lab.record.store import Record

SCRAPES_S = (5, 15, 30, 60)
PHASES = 4  # of a scrape against the sync
WORDS = RIGHT, WRONG, REFUSED, UNSEEN = ("right", "wrong", "not told", "not seen")


@dataclass(frozen=True)
class Truth:
    """A sync at ``t`` (epoch s), its replicas before and after, and what decided."""

    t: float
    before: int
    after: int
    by: str


def truths(record: Record, caps: live_hpa.Totals) -> list[Truth]:
    """The syncs that the model decides as the log has them."""
    found = []
    for one in replayed(record.hpa_syncs, controller_of(record.scale)):
        seen = one.sync.seen[0].observed if one.sync.seen else None
        totals = tuple(sum(value) / 1000 if isinstance(value, tuple) else None for value in seen or ())
        totals = totals or (None,) * len(caps)
        if one.agrees:
            found.append(Truth(one.sync.at, one.sync.current, one.sync.desired, decided_by(one.decision, totals, caps)[0]))
    return found


def of_lag(record: Record, every_s: float, phase_s: float) -> list[Sample]:
    """What a lag exporter would have shown to one scrape in ``every_s``."""
    assert isinstance(record.policy, ScaledObject)
    if [type(one) for one in record.policy.triggers] != [Kafka]:
        raise NoData("not one trigger on lag")
    replicas, known = record.replicas, record.lag
    times, wanted = replicas["t"].tolist(), replicas["desired"].tolist()
    found: list[Sample] = []
    for t, value in known.itertuples(index=False, name=None):
        if t < times[0] + phase_s or (found and t < found[-1].t + 0.98 * every_s):
            continue
        if found and t > found[-1].t + 1.5 * every_s:
            raise NoData("lag was scraped more rarely")
        found.append(Sample(t, wanted[bisect_right(times, t) - 1], (float(value),)))
    return found


def judge(truth: Truth, found: Sequence[Explanation], sync_s: float) -> str:
    """What ``found`` says of a step, within one sync of it."""
    about = [one for one in found if one.since - sync_s <= truth.t <= one.until + sync_s]
    same = [one for one in about if one.by and (one.before, one.after) == (truth.before, truth.after)]
    if same:
        nearest = min(same, key=lambda one: abs(one.at - truth.t))
        return RIGHT if nearest.by == truth.by else WRONG
    if any(one.by is None for one in about):
        return REFUSED
    return WRONG if about else UNSEEN


def compare(
    record: Record,
    scrape_s: float,
    phase: float,
    *,
    exporter: bool = False,
    events: bool = False,
    most_syncs: int | None = None,
) -> Iterator[tuple[str, Truth, str]]:
    """For each step, and each fifth sync that changed nothing: its kind, the truth, and the word for what is said of it."""
    policy = record.policy
    assert isinstance(policy, ScaledObject)
    every_s = scrape_s * record.scale.hpa_sync_s / HPA_SYNC_S
    samples = (of_lag if exporter else scrapes.of_record)(record, every_s, phase * every_s)
    ats = [one.at for one in record.hpa_syncs]
    sync_s = median(other - one for one, other in pairwise(ats))
    series = live_hpa.series(policy, samples, sync_s, record.inputs.partitions, controller_of(record.scale))
    known = [one for one in truths(record, series.caps) if samples[0].t < one.t < samples[-1].t]
    steps = [one for one in known if one.before != one.after]
    if events:
        series = series.pinned((math.floor(one.t), one.after) for one in steps)
    found = explain(series, most_syncs=most_syncs)
    for one in steps:
        yield "steps", one, judge(one, found, sync_s)
    for one in [one for one in known if one.before == one.after][::5]:
        yield "holds", one, held(one, series, most_syncs)


def held(truth: Truth, series: Series, most_syncs: int | None) -> str:
    """What is said of a sync that changed nothing."""
    said = between(series, series.place(truth.t), most_syncs)
    if said[0].before != said[0].after:
        return UNSEEN
    return REFUSED if said[0].by is None else RIGHT if said[0].by == truth.by else WRONG


def suited(folder: Path) -> Iterator[Record]:
    """The records of ScaledObjects without cpu or memory that have the HPA's log."""
    folders = [folder] if (folder / "trial.json").exists() else list(store.stored(folder).values())
    for path in folders:
        try:
            record = store.opened(path)
            if isinstance(record.policy, ScaledObject) and len(record.hpa_syncs) > 2 and not record.policy.pause:
                live_hpa.series(record.policy, scrapes.of_record(record, record.scale.hpa_sync_s), 1.0)
                yield record
        except (InputError, NoData):
            continue


def main(arguments: list[str] | None = None) -> int:
    """Print the curve. Returns 0."""
    parser = Flags("python -m tests.explained", "explain against the HPA's own log, by scrape interval", environment=False)
    parser.add_argument("records", nargs="+", type=Path, help="records, or folders of them")
    parser.add_argument("--exporter", action="store_true", help="scrape the lag alone, and not the HPA's status")
    parser.add_argument("--events", action="store_true", help="with the HPA's events; of records at real time alone")
    parser.add_argument("--wrong", action="store_true", help="name what is not right")
    parser.add_argument("--all", action="store_true", help="tell also where too many syncs fit between two scrapes")
    options = parser.parse_args(arguments)
    records = [record for folder in options.records for record in suited(folder)]
    how = {"exporter": options.exporter, "events": options.events, "most_syncs": 100 if options.all else None}
    rows = [("scrape (s)", "of", "number", *(f"{word} (%)" for word in WORDS), "right of told (%)")]
    for scrape_s in SCRAPES_S:
        counts: Counter[tuple[str, str]] = Counter()
        for record, phase in product(records, range(PHASES)):
            with suppress(InputError, NoData):  # too short, or its lag was scraped more rarely
                for kind, truth, word in compare(record, scrape_s, phase / PHASES, **how):
                    counts[kind, word] += 1
                    if options.wrong and word != RIGHT:
                        print(scrape_s, phase, record.id, kind, word, truth)
        rows += [_row(scrape_s, kind, [counts[kind, word] for word in WORDS]) for kind in ("steps", "holds")]
    print(f"{len(records)} records, {PHASES} phases of the scrape each", table(rows, numbers=range(2, len(rows[0]))), sep="\n")
    return 0


def _row(scrape_s: int, kind: str, counts: Sequence[int]) -> tuple[str, ...]:
    total, told = sum(counts), counts[0] + counts[1]
    shares = [f"{100 * number / total:.1f}" if total else "no data" for number in counts]
    return str(scrape_s), kind, str(total), *shares, f"{100 * counts[0] / told:.1f}" if told else "no data"


if __name__ == "__main__":
    sys.exit(main())
