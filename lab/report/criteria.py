"""The criteria of text 1, section 12, and the quantities that answer each, over all runs of the acceptance. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lab.inputs.consumer import Balancer
from lab.judge.measure import Runs
from lab.judge.quantity import Quantity
from lab.measure.cost import SurplusReplicas, cost, surplus_replicas
from lab.measure.delivery import delivery, unaccounted
from lab.measure.dip import WorstStep, worst_dip
from lab.measure.drain import best_drain, drain
from lab.measure.lateness import oldest
from lab.measure.reaction.step import PARTS, reaction
from lab.measure.scaling import PolicyExcess, policy_excess, scale_events
from lab.measure.scaling_cost import scaling_cost
from lab.record.store import Record
from lab.report.session import Case, Row

BACKLOG = 20_000_000  # events, text 1, section 12
BEFORE = "flips with a short window"
ACCEPTANCE, ON_RANGE, PAST_P, SHORT_WINDOW = "A", "B", "C", "D"  # the trials
ABSENT = {
    ON_RANGE: "no trial of this session is the same on range",
    PAST_P: "no trial of this session goes past P: tests/experiments/test_4_past_p.py does",
    SHORT_WINDOW: "no trial of this session has a short window: tests/experiments/test_5_flapping.py has",
}


@dataclass(frozen=True)
class Trial:
    """The ``runs`` of one trial, or of all that one test compares, and the ``test`` that judged them."""

    runs: Runs[Record]
    test: Case

    @property
    def given(self) -> Any:
        """The runs as measures take them: each like a single record."""
        return self.runs

    def row(self, objective: str, operator: str = "") -> Row | None:
        """The test's verdict of that ``objective`` on these runs, with that ``operator`` if one is given."""
        names = [one.name for one in self.runs]
        rows = (row for row in self.test.rows if row.objective == objective and list(row.trials) == names)
        return next((row for row in rows if operator in ("", row.operator)), None)


@dataclass(frozen=True)
class Line:
    """A ``quantity`` of the ``trial``, by its letter, that answers the ``criterion``; ``row`` is the verdict on it, if any."""

    criterion: str
    trial: str
    quantity: Quantity
    row: Row | None


def trials(test: Case, runs: Runs[Record], tests: Sequence[Case], records: Sequence[Record]) -> dict[str, Trial]:
    """The trials that answer section 12, by their letters: the acceptance, and those of ``tests`` that stand beside it."""
    known = {record.name: record for record in records}
    found = {ACCEPTANCE: Trial(runs, test)}
    if on_range := Runs(one for one in known.values() if _is_on_range(one, runs[0])):
        judging = [one for one in tests if on_range[0].name in one.trials]
        found |= {ON_RANGE: Trial(on_range, judging[0])} if judging else {}
    wanted = {PAST_P: (SurplusReplicas.messages_by_surplus.name, "=="), SHORT_WINDOW: (PolicyExcess.flips.name, ">")}
    for letter, (objective, operator) in wanted.items():
        for one in tests:
            rows = [row for row in one.rows if (row.objective, row.operator) == (objective, operator)]
            if rows and letter not in found and known.keys() >= set(rows[0].trials):
                found[letter] = Trial(Runs(known[name] for name in rows[0].trials), one)
    return found


def _is_on_range(one: Record, other: Record) -> bool:
    """Whether ``one`` is the trial of ``other`` but for the balancer, which is range."""
    mine, theirs = one.inputs, other.inputs
    same = replace(mine.workload, balancer=theirs.workload.balancer) == theirs.workload and mine.scale == theirs.scale
    named = (mine.profile_name, mine.policy_name) == (theirs.profile_name, theirs.policy_name)
    return same and named and mine.workload.balancer == Balancer.RANGE != theirs.workload.balancer


def lines(found: Mapping[str, Trial]) -> list[Line]:
    """Every line of section 12 by the trials ``found``, in its order; then what sections 1 and 5 ask beside it."""
    runs = found[ACCEPTANCE].given
    reacted, drained, events, excess = reaction(runs), drain(runs), scale_events(runs), policy_excess(runs)
    worst, up, down = (worst_dip(runs, kind) for kind in ("", "up", "down"))
    ranged = worst_dip(found[ON_RANGE].given) if ON_RANGE in found else WorstStep.missing(ABSENT[ON_RANGE])
    surplus = surplus_replicas(found[PAST_P].given) if PAST_P in found else SurplusReplicas.missing(ABSENT[PAST_P])
    sent, paid, scaling = delivery(runs), cost(runs), scaling_cost(runs)
    answers: dict[str, list[Quantity]] = {
        "One run, out on lag and back": [
            drained.peak_lag,
            _backlog(drained.peak_lag),
            events.most_replicas,
            excess.above_floor_at_end,
        ],
        "Reaction": [reacted.total_s, *(reacted.part(part) for part in PARTS)],
        "Drain": [drained.seconds, best_drain(runs).over_best, drained.rise_over_commits],
        "Dip, cooperative": [
            worst.depth,
            *(one.depth.named(f"worst dip of a step {kind}") for kind, one in (("up", up), ("down", down))),
            worst.recovery_s,
            *(one.recovery_s.named(f"slowest recovery of a step {kind}") for kind, one in (("up", up), ("down", down))),
            worst.noise,
        ],
        "Dip, range": [ranged.depth, ranged.recovery_s],
        "Surplus pods": [
            surplus.surplus,
            surplus.assigned_to_surplus,
            surplus.messages_by_surplus,
            surplus.rebalances_beyond,
        ],
        "Flips": [excess.flips],
        "Flips before": [_flips_before(found.get(SHORT_WINDOW))],
        "Processed == produced": [sent.stored, sent.processed, unaccounted(runs)],
        "Bounds (section 5)": [
            events.above_floor_at_baseline,
            excess.outside_bounds,
            excess.beyond_partitions,
        ],
        "Cost (section 1)": [scaling.share, oldest(runs), paid.pod_minutes, paid.idle_ratio],
    }
    of = {"Dip, range": ON_RANGE, "Surplus pods": PAST_P, "Flips before": SHORT_WINDOW}
    listed = [(criterion, of.get(criterion, ACCEPTANCE), one) for criterion, several in answers.items() for one in several]
    return [Line(criterion, letter, one, _row(found.get(letter), one)) for criterion, letter, one in listed]


def _row(trial: Trial | None, quantity: Quantity) -> Row | None:
    """The verdict on the ``quantity`` of ``trial``; of the flips before it is the one that there are some."""
    if trial is None:
        return None
    return trial.row(PolicyExcess.flips.name, ">") if quantity.name == BEFORE else trial.row(quantity.name)


def _backlog(peak: Quantity) -> Quantity:
    """The peak of lag, if it is as large as section 12 asks: no run of the acceptance alone is."""
    if peak.value is not None and peak.value >= BACKLOG:
        return peak.named("backlog of 20 million events or more")
    why = "its peak is smaller: tests/experiments/test_backlog.py builds it"
    return Quantity("backlog of 20 million events or more", peak.unit, None, why)


def _flips_before(trial: Trial | None) -> Quantity:
    """The flips with a short window, as they were judged: the test compares them with those of another policy."""
    row = trial.row(PolicyExcess.flips.name, ">") if trial else None
    if row is None:
        return Quantity(BEFORE, PolicyExcess.flips.unit, None, ABSENT[SHORT_WINDOW])
    return Quantity(BEFORE, row.unit, row.measured, row.note)
