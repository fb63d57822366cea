"""Gates of validity: what a trial must show of itself, and of the machine, before its numbers are evidence.

A trial that fails a gate is invalid. It is neither a pass nor a breach, since what it measured may be the machine's
(docs/decisions/12-an-invalid-trial-is-no-evidence.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from lab.judge.bounds import DIP
from lab.judge.claim import BREACHED, INVALID, NO_DATA, Verdict, judge
from lab.judge.quantity import Bound, Comparison, Quantity

VALID = "valid"


@dataclass(frozen=True)
class Gate:
    """The quantity ``name`` of a trial may be at most ``bound``, since ``why``.

    A gate that ``decides`` makes a trial invalid. The others are shown: no pilot has set their bounds yet (docs/decisions/12).
    """

    name: str
    bound: Bound
    why: str
    decides: bool = True

    def judge(self, quantity: Quantity) -> Verdict:
        """The verdict on ``quantity``: a control where the gate decides whether the trial can be judged, else a claim."""
        return judge(Comparison(quantity, "<=", self.bound), self.why, kind="control" if self.decides else "claim")


QUARTER_OF_DIP = DIP / 4
SCRAPE_GAP = 3.0

GATES = (
    Gate(
        "lateness",
        Bound(1, "the lab's own: 100 ms at real time, and a tenth of the trial's shortest time where time is compressed"),
        "the offered load was the profile's: an event that is sent late makes another profile",
    ),
    Gate(
        "steal",
        Bound(QUARTER_OF_DIP, "the lab's own: a quarter of the smallest dip that is judged, 20 %"),
        "the machine had its cores: what the hypervisor takes lowers every rate",
    ),
    Gate(
        "cpu_pressure",
        Bound(0.9, "the lab's own, of no pilot yet: tasks waited in 41 % of five minutes of a session on two cores"),
        "the cores had time left: where a task always waits, the machine's capacity is measured and not the policy",
        decides=False,
    ),
    Gate(
        "io_pressure",
        Bound(0.2, "the lab's own: the share of time by which a dip is judged; 0.4 % in five minutes of a session"),
        "the disk did not hold the brokers up",
    ),
    Gate(
        "memory_pressure",
        Bound(QUARTER_OF_DIP, "the lab's own: a quarter of the smallest dip that is judged; 0 % in five minutes of a session"),
        "the memory was enough: a machine that swaps stalls every program",
    ),
    Gate(
        "foreign_load",
        Bound(0.1, "the lab's own: as much as rounding may change a time; both accounts of CPU time agree within 4 %"),
        "the machine was the trial's: another program takes cores and caches at moments of its own",
    ),
    Gate(
        "scrape_gap",
        Bound(SCRAPE_GAP, "the lab's own: a slope or a median is made of three samples at least"),
        "no peak of lag was missed between two scrapes",
        decides=False,
    ),
    Gate(
        "clock",
        Bound(1, "the lab's own, of no pilot yet on a machine whose clock is set as it runs: as late as the producer may be"),
        "all times are of one clock: those of other programs follow a wall clock that is set, and the lab's own do not",
        decides=False,
    ),
    Gate(
        "lag_sum",
        Bound(0, "lab.programs.exporter: both are of one reading of Kafka"),
        "the lag that is judged is that of the partitions, whole at every scrape",
        decides=False,
    ),
    Gate(
        "order",
        Bound(0, "the lab's own: none of 400,000 receipts of 40 real trials"),
        "a partition's messages are processed one after the other, so its receipts' times are those of its offsets",
        decides=False,
    ),
    Gate(
        "rounding",
        Bound(0.1, "lab.inputs.fidelity: a scale may change a time or a lag by a tenth"),
        "the policy that ran is the one that is written",
    ),
    Gate(
        "schedule",
        Bound(0, "lab.trial.nemesis: each injection leaves one row; so did all 2,160 of the archive"),
        "the faults that are judged are those of the schedule: copies are explained by them",
    ),
    Gate(
        "settle",
        Bound(0.5, "the lab's own: a baseline settles in 2 to 19 s of some 95 s on a quiet machine"),
        "the trial began at rest: what settles late may settle still",
        decides=False,
    ),
)


def judge_gates(quantity: Callable[[str], Quantity]) -> tuple[Verdict, ...]:
    """The verdict on every gate of a trial whose quantities ``quantity`` returns by name."""
    return tuple(gate.judge(quantity(gate.name)) for gate in GATES)


def word(gates: Iterable[Verdict]) -> str:
    """Whether a trial with these verdicts on its gates is valid, invalid, or not known to be either ("no data")."""
    words = {gate.verdict for gate in gates if gate.kind == "control"}
    return INVALID if BREACHED in words else NO_DATA if NO_DATA in words else VALID


def reason(gates: Iterable[Verdict]) -> str:
    """Why a trial is invalid: every gate that it failed, with its number and its bound; "" for none."""
    return _failed(gates, "control")


def remark(gates: Sequence[Verdict]) -> str:
    """Why a trial is not valid, and the failed gates that do not decide, with their numbers and bounds; "" for none."""
    seen, lacking = _failed(gates, "claim"), ", ".join(gate.objective for gate in gates if gate.verdict == NO_DATA)
    return "; ".join(filter(None, [reason(gates), seen and f"shown: {seen}", lacking and f"no data: {lacking}"]))


def _failed(gates: Iterable[Verdict], kind: str) -> str:
    failed = [gate for gate in gates if gate.verdict == BREACHED and gate.kind == kind]
    return "; ".join(f"{one.objective} {one.measured:.3g} {one.unit}, at most {one.bound:g}" for one in failed)


def invalid(verdict: Verdict, why: str) -> Verdict:
    """The ``verdict`` of a claim on an invalid trial, and ``why``: its number stays, and it neither held nor was breached."""
    return replace(verdict, verdict=INVALID, note="; ".join(filter(None, [verdict.note, why])))
