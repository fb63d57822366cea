"""Objectives: named bounds on measures. A verdict carries the number, the bound and the unit."""

from __future__ import annotations

from dataclasses import dataclass

from lab.judge.claim import BREACHED, HELD, NO_DATA, Verdict
from lab.judge.quantity import HOLDS


@dataclass(frozen=True)
class Objective:
    """A bound: the measured number must stand in ``operator`` to ``bound``, in ``unit``; ``why`` is for the reader."""

    name: str
    operator: str
    bound: float
    unit: str
    why: str

    def judge(self, measured: float | None, note: str = "") -> Verdict:
        """The verdict on ``measured``. None is "no data", which is never a pass; ``note`` says what was missing."""
        if measured is None:
            verdict = NO_DATA
        else:
            verdict = HELD if HOLDS[self.operator](measured, self.bound) else BREACHED
        return Verdict(self.name, measured, self.operator, self.bound, self.unit, verdict, self.why, note)


REACTION = Objective(
    "reaction", "<", 90, "s", "spike start to the first receipt of the first new pod, as it was seen at this scale"
)
REACTION_REAL = Objective(
    "reaction at real time", "<", 90, "s", "the same with the wait for KEDA and the HPA stretched back to real time"
)
DRAINED = Objective(
    "drain time over the best the hottest partition allows",
    "<=",
    1.5,
    "x",
    "one pod alone serves a partition, so skew and not the number of pods bounds the drain",
)
MONOTONE = Objective(
    "rise of lag while draining at full parallelism", "<=", 1, "lagThreshold", "largest rise above the lowest lag so far"
)
BASELINE = Objective("replicas above the floor at baseline", "==", 0, "pods", "no pod is scaled on lag noise")
FLOOR = Objective("replicas above the floor at the end", "==", 0, "pods", "the group gives back what it took")
FLIPS = Objective("flips", "==", 0, "flips", "a flip is a scale-down followed by a scale-up")
BACKLOG = Objective("peak lag", ">=", 100_000, "messages", "a backlog worth draining was built")
UNPROCESSED = Objective("produced but not processed", "==", 0, "messages", "processed == produced, from below")
DOUBLED = Objective("processed more than once", "==", 0, "messages", "processed == produced, from above")
MISMATCHED = Objective("receipts that disagree with the events", "==", 0, "receipts", "the same messages, not just as many")
UNKNOWN = Objective("events of unknown or failed fate", "==", 0, "events", "produced = acknowledged")

# Experiment 2: what the HPA sees, and the longest part.
LIVE = Objective("age of what the HPA sees, over its sync period", "<=", 2, "x", "each sync asks Kafka itself")
CACHED = Objective(
    "age of what the HPA sees, over pollingInterval", ">=", 0.5, "x", "with cached metrics pollingInterval rules"
)
SHORTENED = Objective("created to subscribed, in portions over at once", "<", 0.9, "x", "the cold start, attacked")
# Experiment 4: past P.
SURPLUS = Objective("replicas beyond P", ">=", 24, "pods", "the trial went where it was meant to")
UNASSIGNED = Objective("partitions owned by the surplus", "==", 0, "partitions", "a partition has one owner")
IDLE = Objective("messages processed by the surplus", "==", 0, "messages", "a pod without a partition does nothing")
NO_GAIN = Objective("group rate beyond P over the rate at P", "<=", 1.05, "x", "pods beyond P add no throughput")
STANDSTILL = Objective("replicas KEDA's cap leaves the group at", "==", 22, "pods", "22 of 24 is within the HPA's tolerance")
ONE_TOO_MANY = Objective("replicas asked for as lag falls past the cap", "==", 25, "pods", "P + 1: the cap rounds down")
CURED = Objective("most replicas with the cure", "==", 24, "pods", "all of P, and no more")
# Experiment 5: flapping.
FLAPS = Objective("flips with the short window", ">", 0, "flips", "or the experiment has shown nothing")
STILL_FLAPS = Objective("flips with the usual window", ">", 0, "flips", "longer than a lull is not long enough")
CALM = Objective("flips with the tuned window", "==", 0, "flips", "a window longer than a lull")
CAUGHT_UP = Objective("lag back at one lagThreshold after the last burst", "<=", 10, "s", "calm does not cost the drain")
# Experiment 6: scale-down safety.
SCALED_DOWN = Objective("scale-downs", ">", 0, "steps", "or the experiment has shown nothing")
UNCOMMITTED = Objective("offsets short of the log's end", "==", 0, "offsets", "committed == produced")
# Experiment 8: lagThreshold.
BEHIND = Objective("time behind at the recommended lagThreshold", "<=", 2, "s", "the objective lagThreshold is computed from")
TOO_LATE = Objective("time behind at ten times that", ">", 2, "s", "the high end breaches it")
ON_NOISE = Objective(
    "replicas above the floor at baseline, at the low end", ">", 0, "pods", "a low lagThreshold scales on noise"
)
OPTIMUM = Objective(
    "largest lagThreshold within the objective over the computed", "==", 1, "x", "the formula is the measured optimum"
)
# Experiment 9: the hand-rolled controller.
NO_WAIT = Objective(
    "the controller's decision after KEDA's, over a sync period", "<=", 1, "x", "both wait for a sync, and for little else"
)
NOT_LOST = Objective("messages lost", "==", 0, "messages", "nothing committed without its receipt")
ALSO_FLAPS = Objective(
    "flips of the controller with the HPA's hysteresis", ">", 0, "flips", "it is not the hand that flaps, but the rule"
)
HELD_CALM = Objective("flips with the controller's own hysteresis", "==", 0, "flips", "a busy pod is no surplus")
CHEAPER = Objective(
    "pod-minutes of the hysteresis over those of the long window", "<", 1, "x", "pods are given back when they are idle"
)
# Experiment 10: lag that lasts.
SCALED_UP = Objective("scale-ups", ">", 0, "steps", "or the experiment has shown nothing")
# Acceptance: any policy, on any profile.
WITHIN = Objective("replicas wanted outside of the policy's bounds", "==", 0, "pods", "the policy's own minimum and maximum")
BEYOND = Objective("replicas wanted beyond the partitions", "==", 0, "pods", "a pod without a partition does nothing")
KEPT_UP = Objective(
    "drain time over the best the policy's ceiling and the hottest partition allow",
    "<=",
    1.5,
    "x",
    "from the last burst's end to one lagThreshold; the best counts as 5 s at least, which new pods need to be at work",
)
# The model and the simulator.
AGREES = Objective("HPA decisions that the model takes too", "==", 100, "%", "the same inputs, the same replicas, every sync")
# Scenario payments: the advanced patterns.
INERT = Objective("flips with inertia", "==", 0, "flips", "a window down longer than the bursts are apart")
RESTLESS = Objective("flips without inertia", ">", 0, "flips", "or the scenario has shown nothing")
FEWER_REBALANCES = Objective("rebalance rounds with inertia over those without", "<", 1, "x", "what inertia is for")
FEWER_MOVES = Objective(
    "partitions handed over with inertia over those without", "<", 1, "x", "each is a pause of that partition"
)
TOLD_APART = Objective(
    "syncs at which the highest recommendation would have scaled up", ">", 0, "syncs", "or the scenario has shown nothing"
)
NOT_HIGHEST = Objective("of those, syncs that scaled up", "==", 0, "syncs", "the smallest recent recommendation decides")
SMALLEST = Objective(
    "steps up within the smallest recommendation of the window",
    "==",
    100,
    "%",
    "of the syncs at which all of the window asked for more",
)
SHORT_SPIKE = Objective("steps up on a spike shorter than the window", "==", 0, "steps", "the window is there to sit it out")
SHORT_SPIKE_SEEN = Objective("steps up on the same spike without a window", ">", 0, "steps", "or the spike was too small")
TRIPLES = Objective("replicas after a period of Percent 200, over those before", "==", 3, "x", "200 % are added: 3 x, not 2 x")
AGED = Objective("95th percentile of age when processed", "<=", 2, "s", "each message against the objective, late in the spike")
OVER_SLO = Objective("time behind at ten times the computed lagThreshold", ">", 2, "s", "the high end breaches it")
CPU_FIRST = Objective("first step up that the CPU trigger won", "==", 1, "step", "before lag asks for anything")
LARGEST = Objective("steps up to another number than the largest proposal", "==", 0, "steps", "the maximum of the triggers")
LOW_LAG = Objective("largest proposal of the lag trigger", "<=", 3, "pods", "the consumers keep up: lag asks for the floor")
LAG_ALONE = Objective("steps up on the lag trigger alone", "==", 0, "steps", "what lag does not see")
STALL = Objective("messages of the poisoned partition committed past the poison", "==", 0, "messages", "no pod can help it")
RUNAWAY = Objective(
    "most replicas on lag alone over the partitions", ">=", 1, "x", "as many pods as can own a partition, for nothing"
)
CONTAINED = Objective("steps up on a stalled partition", "==", 0, "steps", "it buys no pods")
PAST_PARTITIONS = Objective(
    "most replicas with allowIdleConsumers over the partitions and one", ">", 1, "x", "pods that can't even own a partition"
)
UNLIMITED = Objective("steps up with limitToPartitionsWithLag", ">", 0, "steps", "a message in flight makes a partition lag")
MOVES_ON = Objective(
    "messages waiting on the poisoned partition", "<=", 250, "messages", "one lagThreshold: the poison is out of the way"
)
TAKEN = Objective("pods that a scale-down took from their work", ">", 0, "pods", "or the scenario has shown nothing")
ORDERLY = Objective("pods that left out of order", "==", 0, "pods", "signal, in-flight work, commit, leave, exit")
CLEAN = Objective("pods that exited with another code than 0", "==", 0, "pods", "an orderly exit")
IN_GRACE = Objective("longest shutdown", "<=", 60, "s", "terminationGracePeriodSeconds of the text")
ANSWERED = Objective(
    "queries of the dashboard without data", "==", 0, "queries", "a panel that shows nothing is a board that broke"
)
# Scenario zero loss: retries, dead letters, a kill.
ACCOUNTED = Objective("produced, neither processed nor dead", "==", 0, "messages", "produced == processed + dead")
GONE = Objective("messages lost or never reached", "==", 0, "messages", "the text's promise")
INJECTED = Objective("dead letters", ">", 0, "messages", "or nothing was put to the test")
NOT_BURIED = Objective("injected, but no dead letter", "==", 0, "messages", "each that never succeeds is one")
BURIED_ALIVE = Objective("dead letters that were not injected", "==", 0, "messages", "a transient failure recovers in time")
PROCESSED_TOO = Objective("messages processed and dead", "==", 0, "messages", "one end for each, but for what a kill repeats")
REASONED = Objective("dead letters without a right reason", "==", 0, "letters", "attempts, source, times, and the message")
ONLY_THE_KILL = Objective("processed twice, but not by the killed pod", "==", 0, "messages", "scaling repeats nothing")
LEFT_UNCOMMITTED = Objective(
    "age of the oldest message that the kill made be repeated",
    "<=",
    1,
    "s",
    "a commit interval of 250 ms, a poll of 50 ms, and a commit on its way: what a kill leaves uncommitted",
)
UNBLOCKED = Objective(
    "rate of a pod's other partitions while one retries, over the second before",
    ">=",
    0.9,
    "x",
    "a retry stops its own partition and no other",
)
PAST_P = Objective("most replicas", "<=", 25, "pods", "KEDA's own cap without allowIdleConsumers: P, or P + 1 as lag falls")
NEAR_P = Objective(
    "replicas it stood at, while lag was above P lagThresholds",
    ">=",
    22,
    "pods",
    "22 to 24 of 24 are within the HPA's tolerance: the cap is what held it there, and not a group that never came near",
)
