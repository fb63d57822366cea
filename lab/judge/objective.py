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


REACTION_REAL = Objective(
    "reaction at real time", "<", 90, "s", "the same with the wait for KEDA and the HPA stretched back to real time"
)
FLOOR = Objective("replicas above the floor at the end", "==", 0, "pods", "the group gives back what it took")
FLIPS = Objective("flips", "==", 0, "flips", "a flip is a scale-down followed by a scale-up")
UNPROCESSED = Objective("produced but not processed", "==", 0, "messages", "processed == produced, from below")
DOUBLED = Objective("processed more than once", "==", 0, "messages", "processed == produced, from above")
MISMATCHED = Objective("receipts that disagree with the events", "==", 0, "receipts", "the same messages, not just as many")
UNKNOWN = Objective("events of unknown or failed fate", "==", 0, "events", "produced = acknowledged")


# Experiment 3: the dip.
DIP = Objective(
    "worst dip in a rolling second", "<", 0.2, "of the rate before", "a step costs less than a fifth of the throughput"
)
RECOVERED = Objective("slowest recovery to 95 %", "<", 5, "s", "and not for long")
STALLED = Objective(
    "median dip of the stock client", ">=", 0.2, "of the rate before", "the stock client breaches the objective"
)
DRY = Objective("partitions that ran dry during a step", "==", 0, "partitions", "a dip is measured where there is work for all")
EAGER_PAYS = Objective(
    "messages range forgoes over cooperative's", ">", 1, "x", "eager pays for all partitions, not for those that move"
)
CONTROL = Objective("median dip of pods that start but don't join", "<", 0.2, "of the rate before", "cores, not the rebalance")
# Experiment 6: scale-down safety.
SCALED_DOWN = Objective("scale-downs", ">", 0, "steps", "or the experiment has shown nothing")
UNCOMMITTED = Objective("offsets short of the log's end", "==", 0, "offsets", "committed == produced")
# Experiment 8: lagThreshold.
BEHIND = Objective("time behind at the recommended lagThreshold", "<=", 2, "s", "the objective lagThreshold is computed from")
# Experiment 9: the hand-rolled controller.
NOT_LOST = Objective("messages lost", "==", 0, "messages", "nothing committed without its receipt")
# Experiment 10: lag that lasts.
SCALED_UP = Objective("scale-ups", ">", 0, "steps", "or the experiment has shown nothing")
AS_MANY = Objective(
    "most replicas over those of the kafka trigger", ">=", 0.9, "x", "a true step is answered with as many pods"
)
AS_MANY_TOO = Objective("the same with lagSeconds", ">=", 0.9, "x", "said as a time it is the same lag")
LATER = Objective(
    "decision later than the kafka trigger's, over sustainSeconds",
    ">=",
    0.8,
    "x",
    "what must last is waited for, but for a sync and a sampling interval: 25 s of 120",
)
HIGHER_PEAK = Objective("peak lag over that of the kafka trigger", ">", 1, "x", "the lag of the wait is there to be worked off")
SCALED_FOR_NOTHING = Objective(
    "scale-ups of the kafka trigger on a stalled partition", ">", 0, "steps", "pods that can't take what one message holds"
)
EXCLUDED = Objective(
    "scale-ups with excludePersistentLag", "==", 0, "steps", "a partition whose offset stands still is left out"
)
LASTS_TOO = Objective(
    "scale-ups of the persistent-lag scaler on a stalled partition",
    ">",
    0,
    "steps",
    "nothing lasts longer: it is no remedy here",
)
AS_HIS = Objective(
    "lag at 12:01 and 12:02 over that at 12:00, furthest from the author's",
    "<=",
    0.2,
    "of it",
    "the same table, or no comparison",
)
SCALES_AT_ONCE = Objective("replicas above the floor at 12:01, kafka trigger", ">", 0, "pods", "it looks at the lag of now")
WAITS = Objective("the same, persistent-lag scaler", "==", 0, "pods", "the lag has not lasted yet")
BY_ITS_OWN_RULE = Objective(
    "its scale-ups by 12:03", ">", 0, "steps", "at 12:02 the lag has lasted for two minutes, and is 8,000"
)
NEVER_ACTS = Objective("scaling events with sustainSeconds 300", "==", 0, "events", "the group has caught up before")
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
