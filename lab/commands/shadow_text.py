"""The answer of ``elastic-lab shadow`` as text: first how far the model can be trusted. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from lab.commands.text import number, table
from lab.foresee.candidate import CANDIDATE, LIVE, SIMULATED, Closed, Cost, Range
from lab.foresee.shadow import NEEDED, Candidate, Shadow, Trust
from lab.foresee.situation import POINTS


def lines(answer: Shadow) -> Iterator[str]:
    """The answer as text: first how far the model can be trusted."""
    trust = answer.trust
    seen = "watched" if answer.scrape_s is None else f"scraped every {answer.scrape_s:.3g} s"
    time = f"from {clock_text(answer.since)} to {clock_text(answer.until)} UTC"
    yield (
        f"{answer.scaledobject}: {answer.hpa} {seen} {time}; a sync every {answer.sync_s:.4g} s, {trust.syncs:,} in all, of "
        f"which {trust.silent:,} changed nothing"
    )
    yield f"trust: {agreement(trust)}"
    apart = {
        trust.warming: f"within the {trust.memory_s:,g} s that the HPA remembers of what was not seen",
        trust.edges: "at the edge of a window or a period" + (", or of a scrape" if answer.scrape_s else ""),
        trust.unread: "whose decision can't be read",
    }
    yield from (f"apart: {count:,} syncs {why}" for count, why in apart.items() if count)
    for one in answer.disagreements[:10]:
        reasons = "; ".join(one.reasons)
        yield f"otherwise: {clock_text(one.at)}  live {one.before} -> {one.live}, model {one.before} -> {one.model}: {reasons}"
    yield from (f"no verdict: {reason}" for reason in trust.reasons)
    if answer.candidate:
        yield from _candidate(answer.candidate)
    if answer.closed:
        yield from _closed(answer.closed)
    yield from (f"no data: {line}" for line in answer.missing)


def agreement(trust: Trust) -> str:
    """How far the model can be trusted there."""
    share = "no data" if trust.agreement is None else f"{trust.agreement:.4g} %"
    return (
        f"of {trust.judged:,} syncs the model decided {trust.agreed:,} as the live HPA did, {share}; "
        f"{NEEDED} % are needed; {trust.steps:,} of them changed the replicas"
    )


def asked_rows(asked: Candidate) -> list[list[str]]:
    """The table of what both ask for on the same metrics, its head first."""
    rows = [["", "pod-minutes", "flips", "steps", "most replicas"]]
    for name, one in (("live", asked.live), ("candidate", asked.asked)):
        rows.append([name, number(one.pod_minutes), str(one.flips), str(one.steps), str(one.most_replicas)])
    return rows


def _candidate(asked: Candidate) -> Iterator[str]:
    yield f"\n{asked.candidate} on the same metrics, from {clock_text(asked.since)} UTC on"
    yield table(asked_rows(asked), numbers=range(1, 5))
    if asked.exact_until is None:
        yield "its replicas never differ, so all of it is exact"
    else:
        until = f"{clock_text(asked.exact_until)}, {100 * asked.exact:.3g} % of the time"
        yield f"exact until {until}: then its replicas differ, by which another lag would follow"
    yield f"within one replica for {100 * asked.near:.3g} % of the time"
    if asked.hidden:
        yield f"at {asked.hidden:,} syncs KEDA's cap hid the lag: the candidate is taken to stay there"
    changes = [["time", "metrics", "live", "candidate"]]
    before: tuple[int, int] | None = None
    for row in asked.rows:
        if before != (row.live, row.candidate):
            values = ", ".join(map(number, row.metrics))
            changes.append([clock_text(row.at), values, str(row.live), str(row.candidate)])
        before = row.live, row.candidate
    yield table(changes, numbers=range(1, 4))


def _closed(closed: Closed) -> Iterator[str]:
    rates = f"{closed.lowest_rate:,.3g} to {closed.highest_rate:,.3g} messages/s"
    yield f"\nclosed loop, simulated on the traffic {'of --profile' if closed.measured else 'that the lag tells'}, {rates}"
    yield table(closed_rows(closed), numbers=range(1, 5))
    yield from errors(closed)


def closed_rows(closed: Closed) -> list[list[str]]:
    """The table of the closed loop, its head first."""
    each: list[tuple[str, Cost]] = [(LIVE, closed.live), (SIMULATED, closed.simulated)]
    each += [(CANDIDATE, closed.candidate)] if closed.candidate else []
    rows = [["", "pod-minutes", "flips", "peak lag", "oldest event (s)"]]
    for name, one in each:
        rows.append([name, number(one.pod_minutes), str(one.flips), number(one.peak_lag), number(one.worst_age_s)])
    return rows


def errors(closed: Closed) -> Iterator[str]:
    """How far the closed loop is from what the group did, and how much hangs on the point of a sync."""
    minutes, lag = f"{closed.pod_minutes_error:+.1%} of pod-minutes", f"{closed.peak_lag_error:+.1%} of peak lag"
    yield f"known error, that of the live one: {minutes}, {closed.flips_error:+d} flips, {lag}"
    ranges = (("live", closed.simulated_range), ("candidate", closed.candidate_range))
    if said := "; ".join(f"{name} {_range(one)}" for name, one in ranges if one):
        yield f"by the point of the HPA's sync and of the commits at which traffic comes ({len(POINTS)} points): {said}"


def _range(one: Range) -> str:
    (few, many), (least, most) = one.pod_minutes, one.flips
    return f"{number(few)} to {number(many)} pod-minutes, {least if least == most else f'{least} to {most}'} flips"


def clock_text(t: float) -> str:
    """The time of day ``t``, epoch s, in UTC."""
    return f"{datetime.fromtimestamp(t, UTC):%Y-%m-%d %H:%M:%S}"
