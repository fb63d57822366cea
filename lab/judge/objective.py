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

# Experiment 1: the signal.
UNTRIGGERED = Objective("CPU under load", "<", 70, "% of request", "an I/O-bound consumer never comes near the HPA's target")
BLIND = Objective("scale-ups on CPU", "==", 0, "steps", "a signal that does not move asks for nothing")
UNBOUNDED = Objective(
    "growth of lag late in the spike, on CPU", ">", 500, "messages/s", "without a reaction lag grows without bound"
)
BOUNDED = Objective(
    "growth of lag late in the spike, on lag", "<=", 50, "messages/s", "the lag trigger brings the growth to an end"
)
WORSE = Objective("peak lag on CPU over peak lag on lag", ">=", 2, "x", "what the right signal is worth")
# Experiment 2: what the HPA sees, and the longest part.
LIVE = Objective("age of what the HPA sees, over its sync period", "<=", 2, "x", "each sync asks Kafka itself")
CACHED = Objective(
    "age of what the HPA sees, over pollingInterval", ">=", 0.5, "x", "with cached metrics pollingInterval rules"
)
SHORTENED = Objective("created to subscribed, in portions over at once", "<", 0.9, "x", "the cold start, attacked")

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
REPEATED = Objective("messages processed twice without drain", ">", 0, "messages", "what graceful shutdown is for")
LOST = Objective("messages lost with auto-commit", ">", 0, "messages", "a commit ahead of the work loses it")
SCALED_DOWN = Objective("scale-downs", ">", 0, "steps", "or the experiment has shown nothing")
UNCOMMITTED = Objective("offsets short of the log's end", "==", 0, "offsets", "committed == produced")
CUT_SHORT = Objective("messages processed twice with a short grace", ">", 0, "messages", "a drain that is killed is no drain")
# Experiment 7: partitions.
CONSUMED = Objective("time until every new partition is consumed", "<", 10, "s", "with a metadata refresh of a second")
SKIPPED = Objective(
    "messages passed over with reset earliest", "==", 0, "messages", "new partitions are read from their beginning"
)
SKIPPED_DEFAULT = Objective("the same with the default refresh", "==", 0, "messages", "late, but whole")
SILENT_LOSS_DEFAULT = Objective(
    "the same with the default refresh", ">", 0, "messages", "the later it is seen, the more is lost"
)
SILENT_LOSS = Objective(
    "messages passed over with reset latest", ">", 0, "messages", "KIP-1327: what came before the assignment is lost"
)
UNSEEN = Objective("new partitions never consumed by a group at its ceiling", "==", 24, "partitions", "no rebalance, no look")
NEW_CEILING = Objective("most replicas after", ">", 24, "pods", "the ceiling is P, and P has grown")
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
SCALES_ON_SPIKES = Objective(
    "scale-ups of the kafka trigger on spikes that the floor works off", ">", 0, "steps", "or there is nothing to save"
)
IGNORES_SPIKES = Objective("scaling events on lag that does not last", "==", 0, "events", "nothing has lasted sustainSeconds")
SPIKED = Objective("peak lag over the lagThresholds of the floor", ">", 1, "x", "or there was nothing to ignore")
TOLD = Objective("syncs of its HPA without a metric", "==", 0, "syncs", "who is not told of lag ignores it as well")
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
REPLAYED_SYNCS = Objective("syncs replayed", ">=", 50, "syncs", "or the replay has shown nothing")
PEAK_PREDICTED = Objective("deviation of the predicted peak lag", "<=", 15, "%", "median over the session's trials")
AS_NEAR = Objective(
    "time within one pod of the recorded replicas: a second run's less the prediction's",
    "<=",
    10,
    "points",
    "median over three trials: no prediction can be nearer than the next run",
)
TUNED_CALM = Objective("flips of the tuned policy", "==", 0, "flips", "as predicted")
TUNED_SOONER = Objective(
    "time behind with the tuned policy over that of the given one", "<", 1, "x", "what the tuner was asked for"
)
GONE = Objective("messages lost or never reached", "==", 0, "messages", "the text's promise")
