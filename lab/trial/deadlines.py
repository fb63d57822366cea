"""How long a trial may take for each of its parts: what its policy and profile ask for, as applied, and what a machine needs.

What no scale compresses is a constant: pods start and leave, groups rebalance. A deadline bounds nothing that is measured: a
trial whose end condition holds ends then, and one that reaches a deadline says so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lab.inputs import hpa_spec
from lab.inputs.controller import LagController
from lab.inputs.failures import Backoff
from lab.inputs.inputs import Inputs
from lab.inputs.policy import PlainHpa, Policy, behavior
from lab.inputs.producer import DELIVERY_S
from lab.inputs.scale import Scale
from lab.inputs.scaledobject import ScaledObject
from lab.inputs.triggers.external import PersistentLag
from lab.inputs.triggers.parsing import Trigger
from lab.inputs.triggers.prometheus import Prometheus
from lab.model.hpa_replicas import Controller
from lab.record.trial import Deadlines

SETTLE_S = 90.0  # 10 s on a quiet machine
END_S = 90.0  # the last pods leave, the group's last rebalances
REPLAY_S = 60.0 + DELIVERY_S  # the producer reports the fate of its last event before this deadline
LEDGER_S = 300.0  # Spark starts in 4 s, and settles 80,000 events/s on two cores
LEDGER_RATE = 20_000.0  # events/s
SYNCS = 3  # that a change may wait for: to be seen, to be decided, to be repeated when the first was too early
SLACK = 2.0  # times what a group takes at its full rate
_RANGE = re.compile(r"\[(\d+)([smhd])")
_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def deadlines(inputs: Inputs) -> Deadlines:
    """The deadlines of a trial with these ``inputs``, which are as applied."""
    policy, profile = inputs.policy, inputs.profile
    sync = policy.sync_s if isinstance(policy, LagController) else inputs.scale.hpa_sync_s
    seen = _seen_s(policy) + SYNCS * sync
    asleep = _window_s(policy, inputs.scale) if isinstance(policy, PlainHpa) and not policy.min_replicas else 0.0
    scaled = seen + _window_s(policy, inputs.scale) + _descent_s(policy, sync)
    start = SLACK * inputs.workload.start_at(inputs.scale.time)
    window_open = max((max(0.0, one.end_s - profile.duration) for one in inputs.windows), default=0.0)  # of a cron trigger
    processed = _backlog_s(inputs) + _retries_s(inputs)
    return Deadlines(
        settle_s=SETTLE_S + start + seen + asleep,
        replay_s=profile.duration * 1.2 + REPLAY_S,
        end_s=END_S + start + inputs.workload.grace_s + scaled + processed + window_open,
        ledger_s=LEDGER_S + profile.total / LEDGER_RATE,
    )


def _seen_s(policy: Policy) -> float:
    """How long it takes until what decides can know of a change: polls, cool-downs from zero, windows of the triggers."""
    if not isinstance(policy, ScaledObject):
        return 0.0
    zero = policy.cooldown_s + policy.initial_cooldown_s if policy.min_replicas == 0 or policy.idle_replicas == 0 else 0
    return 2 * policy.polling_s + zero + max(_remembered_s(trigger) for trigger in policy.triggers)


def _remembered_s(trigger: Trigger) -> float:
    """How much of the past a trigger's metric holds."""
    if isinstance(trigger, PersistentLag):
        rule = trigger.settings.rule
        return rule.sustain_s + max(rule.up_s, rule.down_s) + rule.interval_s
    if isinstance(trigger, Prometheus):
        return float(max((int(count) * _UNITS_S[unit] for count, unit in _RANGE.findall(trigger.query)), default=0))
    return 0.0


def _window_s(policy: Policy, scale: Scale) -> float:
    """The scale-down's stabilization window."""
    rules = behavior(policy)
    if policy.hpa is None and rules is None:
        return 0.0
    window = rules.down.window_s if rules else None
    return float(scale.seconds(Controller().downscale_stabilization_s) if window is None else window)


def _descent_s(policy: Policy, sync: float) -> float:
    """From the most replicas to the fewest, as fast as the scale-down's policies let it."""
    rules = behavior(policy)
    if rules is None or rules.down.select == "Disabled":
        return 0.0
    taken, replicas = 0.0, policy.max_replicas
    while replicas > max(1, policy.min_replicas):
        after, period = _step(replicas, rules.down.policies, fastest=rules.down.select == "Max")
        replicas, taken = after, taken + max(period, sync)
    return taken


def _step(replicas: int, policies: Sequence[hpa_spec.Policy], *, fastest: bool) -> tuple[int, float]:
    """(the replicas after one period of the policy that counts, its period in s)."""
    left = [
        (replicas - one.value if one.type == "Pods" else int(replicas * (1 - one.value / 100)), one.period_s)
        for one in policies
    ]
    return min(left) if fastest else max(left)


def _backlog_s(inputs: Inputs) -> float:
    """What the smallest group would have left of the profile, processed by the largest."""
    work, bounds = inputs.workload, (inputs.policy.min_replicas, inputs.policy.max_replicas)
    least, most = (work.group_rate(min(count, inputs.partitions)) * inputs.scale.rate for count in bounds)
    steps, left = inputs.profile.steps, 0.0
    for step, end in zip(steps, [*(one.at for one in steps[1:]), inputs.profile.duration], strict=True):
        left = max(0.0, left + (step.rate - least) * (end - step.at))
    return SLACK * left / most


def _retries_s(inputs: Inputs) -> float:
    """The failing messages of a partition, which wait one after the other."""
    workload = inputs.workload
    delays = Backoff.parse(workload.retry_ms).compressed(inputs.scale.time).delays_ms
    failing = inputs.profile.total / inputs.partitions * min(1.0, workload.fail_rate + workload.poison_rate)
    failing += bool(workload.poison)
    return SLACK * failing * sum(delays) / 1000
