"""Questions that a test elsewhere answers already; the page of known behaviours links it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Answer:
    """A question from public ``threads``, its answer in a sentence, and the test that shows it (a path of the project)."""

    question: str
    threads: tuple[str, ...]
    answer: str
    where: str


EXPERIMENTS, PAYMENTS = "tests/experiments", "tests/scenarios/payments"
ANSWERS = (
    Answer(
        "Which lagThreshold do I set?", ("kedacore/keda-docs#1595",),
        "Two decades around the rate of one replica x the seconds that you allow x 0.75 are compared.",
        f"{EXPERIMENTS}/test_8_lag_threshold.py",
    ),
    Answer(
        "What do replicas beyond the partitions do, under load?", ("kedacore/keda#4483", "kedacore/keda#4791"),
        "Nothing: they own no partition. The cap leaves a working group at 22 of 24, and takes it to 25 when lag falls.",
        f"{EXPERIMENTS}/test_4_past_p.py",
    ),
    Answer(
        "How long does it take until a new replica works, and which part of it is polling?", ("kedacore/keda#5695",),
        "The HPA's sync and the pod's start; pollingInterval only with cached metrics.",
        f"{EXPERIMENTS}/test_2_reaction_and_drain.py",
    ),
    Answer(
        "How do I end flapping on lag?", ("kedacore/keda#1556",),
        "A window that outlasts all bursts hides it. A tolerance ends it where syncs are out of step with commits. A "
        "trigger on arrivals beside lag ended it in the runs it has.",
        f"{EXPERIMENTS}/test_5_flapping.py",
    ),
    Answer(
        "Is an averaged or persistent lag a better signal?", ("kedacore/keda#1556", "kedacore/keda#7516"),
        "On spikes that the floor works off, yes. On bursts that need pods it takes no fewer steps, and it is later.",
        f"{EXPERIMENTS}/test_10_persistent_lag.py",
    ),
    Answer(
        "Does a scale-down lose or repeat the work of a busy pod?", ("kedacore/keda#5096", "kedacore/keda#6719"),
        "Not with a drain that commits before it leaves, within the grace period; each other setting is counted.",
        f"{EXPERIMENTS}/test_6_scale_down.py",
    ),
    Answer(
        "What is lost when partitions are added and auto.offset.reset is latest?", ("KIP-1327",),
        "All that was written to a new partition before it was assigned; nothing with earliest.",
        f"{EXPERIMENTS}/test_7_repartition.py",
    ),
    Answer(
        "Why are messages processed twice while the group rebalances?", ("confluentinc/librdkafka#4059",),
        "The client takes a refused commit for a lost assignment when it sees new partitions while it rejoins.",
        f"{EXPERIMENTS}/test_7_repartition.py",
    ),
    Answer(
        "What does a poison message do to scaling?", ("kedacore/keda#3904",),
        "Its partition stands still and its lag buys pods that can't help; only a dead-letter topic lets it go on.",
        f"{PAYMENTS}/test_payments_poison.py",
    ),
    Answer(
        "What do two HPAs on one Deployment do?", ("kedacore/keda-docs#469",),
        "Both stop, with AmbiguousSelector, where their bounds overlap. Where they don't, each undoes the other's step.",
        "tests/scenarios/ride_hailing/test_ride_hailing_edges.py",
    ),
)  # fmt: skip
