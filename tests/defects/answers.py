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
        question="Which lagThreshold do I set?",
        threads=("kedacore/keda-docs#1595",),
        answer="Two decades around the rate of one replica x the seconds that you allow x 0.75 are compared.",
        where=f"{EXPERIMENTS}/test_8_lag_threshold.py",
    ),
    Answer(
        question="What do replicas beyond the partitions do, under load?",
        threads=("kedacore/keda#4483", "kedacore/keda#4791"),
        answer="Nothing: they own no partition. The cap leaves a working group at 22 of 24, and takes it to 25 when lag falls.",
        where=f"{EXPERIMENTS}/test_4_past_p.py",
    ),
    Answer(
        question="How long does it take until a new replica works, and which part of it is polling?",
        threads=("kedacore/keda#5695",),
        answer="The HPA's sync and the pod's start; pollingInterval only with cached metrics.",
        where=f"{EXPERIMENTS}/test_2_reaction_and_drain.py",
    ),
    Answer(
        question="How do I end flapping on lag?",
        threads=("kedacore/keda#1556",),
        answer="A window that outlasts all bursts hides it. A tolerance ends it where syncs are out of step with commits. "
        "A trigger on arrivals beside lag ended it in the runs it has.",
        where=f"{EXPERIMENTS}/test_5_flapping.py",
    ),
    Answer(
        question="Is an averaged or persistent lag a better signal?",
        threads=("kedacore/keda#1556", "kedacore/keda#7516"),
        answer="On spikes that the floor works off, yes. On bursts that need pods it takes no fewer steps, and it is later.",
        where=f"{EXPERIMENTS}/test_10_persistent_lag.py",
    ),
    Answer(
        question="Does a scale-down lose or repeat the work of a busy pod?",
        threads=("kedacore/keda#5096", "kedacore/keda#6719"),
        answer="Not with a drain that commits before it leaves, within the grace period; each other setting is counted.",
        where=f"{EXPERIMENTS}/test_6_scale_down.py",
    ),
    Answer(
        question="What is lost when partitions are added and auto.offset.reset is latest?",
        threads=("KIP-1327",),
        answer="All that was written to a new partition before it was assigned; nothing with earliest.",
        where=f"{EXPERIMENTS}/test_7_repartition.py",
    ),
    Answer(
        question="Why are messages processed twice while the group rebalances?",
        threads=("confluentinc/librdkafka#4059",),
        answer="The client takes a refused commit for a lost assignment when it sees new partitions while it rejoins.",
        where=f"{EXPERIMENTS}/test_7_repartition.py",
    ),
    Answer(
        question="What does a poison message do to scaling?",
        threads=("kedacore/keda#3904",),
        answer="Its partition stands still and its lag buys pods that can't help; only a dead-letter topic lets it go on.",
        where=f"{PAYMENTS}/test_payments_poison.py",
    ),
    Answer(
        question="What do two HPAs on one Deployment do?",
        threads=("kedacore/keda-docs#469",),
        answer="Both stop, with AmbiguousSelector, where their bounds overlap. Where they don't, each undoes the other's step.",
        where="tests/scenarios/ride_hailing/test_ride_hailing_edges.py",
    ),
)
