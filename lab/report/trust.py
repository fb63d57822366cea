"""How far one runtime stands for the other: sentences computed from the pairs, beside what differs by construction. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from lab.errors import NoData
from lab.host.machine import Machine
from lab.measure.reaction import POLICY
from lab.report import runtimes
from lab.report.dips import BOUND
from lab.report.runtimes import COLD, CONTROL, COST, INTEGRITY, LAG, REACTION, REPLICAS, UP, Comparison, Decisions, Pair, ratio
from lab.report.tables import number

SAME, SAME_OUT, SAME_TOP, VARIES, DIFFERENT = (
    "same",
    "same scale-out, other scale-in",
    "other steps, same most replicas",
    "varies between runs of one runtime",
    "different",
)
NO_SEQUENCE = "n/a"


@dataclass(frozen=True)
class Topic:
    """One part of a trial: what the pairs ``show`` (the first sentence sums up), and ``why`` the runtimes may differ in it."""

    heading: str
    show: tuple[str, ...]
    why: str


def topics(comparison: Comparison) -> tuple[Topic, ...]:
    """Every part in order; where no pair has it, that is what its sentence says."""
    return tuple(
        Topic(heading, tuple(show(comparison)) or ("No pair has data for this part: nothing is shown.",), why)
        for heading, show, why in TOPICS
    )


def decisions(pair: Pair) -> dict[str, tuple[Decisions, ...]]:
    """The replica sequence of every run that has one, by runtime."""
    found: dict[str, tuple[Decisions, ...]] = {}
    for runtime, records in pair.runs.items():
        known = []
        for record in records:
            try:
                known.append(runtimes.sequence(record))
            except NoData:
                continue
        found[runtime] = tuple(known)
    return found


def agreement(one: Sequence[Decisions], two: Sequence[Decisions]) -> str:
    """How the replica sequences of two runtimes agree; the runtime is blamed for nothing that its own runs do not agree on."""
    if not one or not two:
        return NO_SEQUENCE
    if len({run.replicas for run in (*one, *two)}) == 1:
        return SAME
    if any(len({run.replicas for run in side}) > 1 for side in (one, two)):
        return VARIES
    if one[0].scale_out == two[0].scale_out:
        return SAME_OUT
    return SAME_TOP if max(one[0].replicas) == max(two[0].replicas) else DIFFERENT


def _decided(comparison: Comparison) -> Iterable[str]:
    base, other = comparison.runtimes
    pairs = [pair for pair in comparison.pairs if pair.autoscaled]
    found = {pair.name: decisions(pair) for pair in pairs}
    words = {name: agreement(runs[base], runs[other]) for name, runs in found.items()}
    known = [name for name, word in words.items() if word != NO_SEQUENCE]
    if known:
        same = [name for name in known if words[name] == SAME]
        yield f"Same replica sequence in {len(same)} of {len(known)} autoscaled trials."
    for name in known:
        one, two = found[name][base], found[name][other]
        if words[name] == SAME:
            apart = _apart(one[0], two[0])
            when = "" if apart is None else f"; step for step at most {number(round(apart, 2))} s apart"
            yield f"{name}: same, {one[0]}{when}."
        else:
            yield f"{name}: {words[name]}; {base} {_distinct(one)}, {other} {_distinct(two)}."
    yield from _spans(comparison, REACTION, f"{POLICY} (s)", "KEDA and HPA decide")
    flips = [row for pair in pairs if (row := _both(pair, REPLICAS, runtimes.FLIPS, comparison.runtimes))]
    if flips:
        equal = sum(row[0] == row[1] for row in flips)
        yield f"Flips: equal in {equal} of {len(flips)} trials ({base} {_total(flips, 0)}, {other} {_total(flips, 1)} in all)."


def _apart(one: Decisions, two: Decisions) -> float | None:
    """The largest difference in s between equal steps; None without a step."""
    return max((abs(a - b) for a, b in zip(one.times, two.times, strict=True)), default=None)


def _distinct(runs: Sequence[Decisions]) -> str:
    return " or ".join(dict.fromkeys(map(str, runs)))


def _reacted(comparison: Comparison) -> Iterable[str]:
    yield from _times(
        comparison, REACTION, runtimes.TOTAL, "The reaction, from the spike to the first new pod's first receipt,"
    )
    dominant = []
    for pair in comparison.pairs:
        longest = [_longest(pair, runtime) for runtime in comparison.runtimes]
        if all(longest):
            dominant.append((pair.name, *longest))
    if dominant:
        same = [one for one in dominant if one[1] == one[2]]
        others = [f"{name} ({comparison.runtimes[0]} {a}, {comparison.runtimes[1]} {b})" for name, a, b in dominant if a != b]
        told = f"; not in {'; '.join(others)}" if others else ""
        yield f"The longest part is the same on both in {len(same)} of {len(dominant)} trials{told}."


def _longest(pair: Pair, runtime: str) -> str | None:
    parts = {row.name: row.middle(runtime) for row in pair.rows if row.part == REACTION and row.name != runtimes.TOTAL}
    known = {name: value for name, value in parts.items() if value is not None}
    return max(known, key=lambda name: known[name]).removesuffix(" (s)") if known else None


def _started(comparison: Comparison) -> Iterable[str]:
    yield from _times(comparison, COLD, runtimes.WORKING, "A median pod, from created to its first receipt,")
    yield from _times(comparison, COLD, runtimes.START, "Of that, the start, from created to subscribed,")
    yield from _times(comparison, COLD, runtimes.JOIN, "The join, from subscribed to the first partition,")


def _dipped(comparison: Comparison) -> Iterable[str]:
    base, other = comparison.runtimes
    worst = _values(comparison, UP, runtimes.WORST)
    if not worst:
        yield from _controlled(comparison)
        return
    bound = BOUND * 100
    verdicts = [(a <= bound, b <= bound) for a, b in worst.values()]
    yield (
        f"The objective of at most {number(bound)} % over 1 s at every scale-up has the same verdict on both runtimes in "
        f"{sum(a == b for a, b in verdicts)} of {len(worst)} trials."
    )
    for (name, (a, b)), (held, held_other) in zip(worst.items(), verdicts, strict=True):
        word = "held" if held else "breached"
        verdict = (
            f"{word} on both" if held == held_other else f"{word} on {base}, {'held' if held_other else 'breached'} on {other}"
        )
        yield f"{name}: worst step {_share(a)} on {base}, {_share(b)} on {other}; {verdict}."
    middle = _values(comparison, UP, runtimes.DEPTH)
    if len(middle) > 1:
        orders = [sorted(middle, key=lambda name, side=side: (middle[name][side], name)) for side in (0, 1)]  # type: ignore[misc]
        if orders[0] == orders[1]:
            yield f"By the depth of the median scale-up the {len(middle)} trials stand in the same order on both."
        else:
            swapped = _swapped(middle)
            yield f"By the depth of the median scale-up the order differs, for trials at most {_points(swapped)} apart."
    yield from _controlled(comparison)


def _controlled(comparison: Comparison) -> Iterable[str]:
    """What pods cost that start beside the group and never join it."""
    base, other = comparison.runtimes
    for name, (a, b) in _values(comparison, CONTROL, runtimes.DEPTH).items():
        yield f"{name}: pods that start but never join cost the median step {_share(a)} on {base}, {_share(b)} on {other}."


def _swapped(middle: Mapping[str, tuple[float, float]]) -> float:
    """The largest distance, in points, between two trials that the runtimes put in opposite order; the lesser of its two."""
    values = list(middle.values())
    return max(
        (min(abs(a[0] - b[0]), abs(a[1] - b[1])) for a in values for b in values if (a[0] - b[0]) * (a[1] - b[1]) < 0),
        default=0.0,
    )


def _worked(comparison: Comparison) -> Iterable[str]:
    yield from _times(comparison, LAG, runtimes.DRAIN, "The drain, from the last burst's end to one lagThreshold,")
    yield from _factors(comparison, LAG, runtimes.PEAK, "Peak lag")
    yield from _factors(comparison, LAG, runtimes.RATE, "The consumed rate while there is lag")


def _kept(comparison: Comparison) -> Iterable[str]:
    base, other = comparison.runtimes
    for name, words in ((runtimes.LOST, "lost or unseen"), (runtimes.DOUBLED, "processed more than once")):
        found = _values(comparison, INTEGRITY, name)
        if not found:
            continue
        pairs = list(found.values())
        clean = sum(a == b == 0 for a, b in pairs)
        equal = f"{clean} of {len(found)} trials have none on either runtime"
        unlike = [f"{pair}: {number(a)} on {base}, {number(b)} on {other}" for pair, (a, b) in found.items() if a or b]
        yield f"Messages {words}: {equal}" + (f"; {'; '.join(unlike)}." if unlike else ".")


def _cost(comparison: Comparison) -> Iterable[str]:
    yield from _factors(comparison, COST, runtimes.POD_MINUTES, "Pod-minutes")


def _times(comparison: Comparison, part: str, name: str, what: str) -> Iterable[str]:
    """A length on both, as a factor; and the seconds that the factor stands for."""
    found = {pair: both for pair, both in _values(comparison, part, name).items() if max(both) < float("inf")}
    factors = [factor for a, b in found.values() if (factor := ratio(a, b)) is not None]
    if not found:
        return
    base, other = comparison.runtimes
    word = "median " if len(found) > 1 else ""
    seconds = f"{word}{_seconds(a for a, _ in found.values())} on {base}, {_seconds(b for _, b in found.values())} on {other}"
    if factors:
        yield f"{what} takes {_factor(factors)} as long on {other} as on {base} ({_over(len(found))}; {seconds})."
    else:
        yield f"{what} takes, {_over(len(found))}, {seconds}."


def _factors(comparison: Comparison, part: str, name: str, what: str) -> Iterable[str]:
    factors = [factor for a, b in _values(comparison, part, name).values() if (factor := ratio(a, b)) is not None]
    if factors:
        base, other = comparison.runtimes
        yield f"{what}: on {other} {_factor(factors)} that on {base} ({_over(len(factors))})."


def _spans(comparison: Comparison, part: str, name: str, what: str) -> Iterable[str]:
    found = list(_values(comparison, part, name).values())
    if found:
        base, other = comparison.runtimes
        apart = number(round(max(abs(a - b) for a, b in found), 2))
        sides = [f"{runtime} {_range([one[n] for one in found])} s" for n, runtime in enumerate((base, other))]
        yield f"{what} within {apart} s of each other ({_over(len(found))}; {', '.join(sides)})."


def _values(comparison: Comparison, part: str, name: str) -> dict[str, tuple[float, float]]:
    """The figure on both runtimes, by the name of each pair that has it on both."""
    found = {
        pair.name: _both(pair, part, name, comparison.runtimes) for pair in comparison.pairs if not pair.withheld(part, name)
    }
    return {pair: both for pair, both in found.items() if both is not None}


def _both(pair: Pair, part: str, name: str, names: tuple[str, str]) -> tuple[float, float] | None:
    row = pair.row(part, name)
    if row is None:
        return None
    one, two = (row.middle(runtime) for runtime in names)
    return None if one is None or two is None else (one, two)


def _factor(factors: Sequence[float]) -> str:
    middle = f"{median(factors):.2f} times"
    return middle if len(factors) == 1 else f"{middle} ({_range(factors)})"


def _range(values: Sequence[float]) -> str:
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return low if low == high else f"{low} to {high}"


def _seconds(values: Iterable[float]) -> str:
    return f"{median(values):.2f} s"


def _over(count: int) -> str:
    return "1 trial" if count == 1 else f"{count} trials"


def _share(percent: float) -> str:
    return f"{percent:.0f} %"


def _points(points: float) -> str:
    return f"{points:.1f} percentage points"


def _total(rows: Iterable[tuple[float, float]], side: int) -> str:
    return number(sum(row[side] for row in rows))


TOPICS: tuple[tuple[str, Callable[[Comparison], Iterable[str]], str], ...] = (
    (
        "Scaling decisions",
        _decided,
        "The same KEDA, HPA and control plane decide on both. What can differ is the moment at which lag is read, the path of "
        "a call (on kind KEDA reaches the API through a ClusterIP, and the lab, which stamps what it watches, through a port "
        "mapping), and how soon new pods lower the lag.",
    ),
    (
        "Reaction",
        _reacted,
        "What KEDA and the HPA wait for is configuration, equal on both. What follows is the runtime: a process is "
        "started by the process node, a container by the kubelet through containerd, runc and CNI.",
    ),
    (
        "Cold start",
        _started,
        "A container needs a sandbox, a network namespace with a veth, a mounted image and a cgroup before the interpreter "
        "starts; a process needs none of them. The baseline's pods run from the same image, so no pull is in these numbers. "
        "Under contention a pod's CPU request is its cgroup's weight on kind; on binary all processes weigh the same. At a "
        "compressed scale a cold start, which is not compressed, costs more of everything that follows from it: lag, drain.",
    ),
    (
        "Rebalance and dip",
        _dipped,
        "Broker settings, client and protocol are the same. On kind the group reaches Kafka through veth pairs and the node's "
        "routing instead of loopback, the broker is a pod whose cgroup has a weight and limits, and starting containers takes "
        "CPU from members at work.",
    ),
    (
        "Lag, drain and throughput",
        _worked,
        "A message's work is the same simulated time on both. The path to Kafka is longer on kind, and cgroup weights "
        "and the limits of the broker's pod can hold back what runs on as a bare process.",
    ),
    (
        "Integrity",
        _kept,
        "Counts of messages from the same ledger: they depend on shutdown and commit, that is on SIGTERM and the grace period, "
        "which the kubelet and the process node both give. A count that differs is a finding, not noise.",
    ),
    (
        "Cost",
        _cost,
        "Pod-minutes follow from the decisions and from how long a pod takes to start and to end.",
    ),
)


def told_by_runs(comparison: Comparison) -> str:
    """What the number of runs allows to be said of a difference."""
    several = [pair for pair in comparison.pairs if all(len(runs) > 1 for runs in pair.runs.values())]
    single = len(comparison.pairs) - len(several)
    told = []
    if single:
        told.append(
            f"{single} of {len(comparison.pairs)} trials have one run on a runtime: a difference there can't be told from the "
            "spread between runs of the same runtime."
        )
    if several:
        rows = [row.values for pair in several for row in pair.rows if all(len(own) > 1 for own in row.values.values())]
        apart = sum(_apart_in_all_runs(*values.values()) for values in rows)
        told.append(
            f"{len(several)} of {len(comparison.pairs)} have several runs on both, shown as median, least and most: there "
            f"{apart} of {len(rows)} figures lie apart in every run, and the others within the spread of the runs."
        )
    return " ".join(told)


def _apart_in_all_runs(one: Sequence[float], two: Sequence[float]) -> bool:
    return max(one) < min(two) or max(two) < min(one)


def shared_machine(machines: Mapping[str, Iterable[Machine]]) -> str:
    """Whether all records were made on the same hardware, as far as they tell."""
    seen = {runtime: {(one.cpu, one.cores, one.kernel) for one in own} for runtime, own in machines.items()}
    every = set().union(*seen.values())
    if len(every) > 1 or not every:
        return "The records name different machines: ratios mix the runtime with the hardware."
    cpu, cores, _ = next(iter(every))
    return (
        f"All records were made on the same kind of machine ({cpu}, {cores} cores). On both runtimes the control plane, Kafka, "
        f"the producer and the pods share those {cores} cores."
    )
