"""Records that are similar without fault: one trial at real time, and the same with every time over a factor."""

from dataclasses import replace

import numpy as np
import pandas as pd

from lab.inputs.inputs import Side
from lab.record.trial import Duet, Turn

from . import built, whole
from .built import deployment, report

PHASES = ((0, "baseline"), (150, "spike"), (750, "drain"))
DURATION, END = 960, 1200  # s at real time
THRESHOLD = 4500
STEPS = ((195, 4, 12), (870, 12, 4))  # (s, before, after) of the replicas at real time
EVERY = 15  # s between samples of lag at real time
RATE, BATCH_S = 20, 0.02  # events/s and what one takes, at any scale
LAG = {0: 300, 135: 300, 165: 30_000, 300: 90_000, 600: 30_000, 750: 9_000, 840: 3_000, 1185: 0}


def curve(peak):
    """Samples of lag at real time, {s: messages}, up to ``peak`` of the usual one."""
    times = np.arange(0, END, EVERY)
    return dict(zip(times.tolist(), (np.interp(times, list(LAG), list(LAG.values())) * peak).tolist(), strict=True))


def write(folder, factor, *, scale="made up", peak=1.0, late_s=60.0, steps=STEPS, profile="plateau", **ran):
    """The record in ``folder`` of a trial with times over ``factor``; ``ran`` has its ``side`` of a duet, and its ``block``.

    ``peak`` multiplies lag, ``late_s`` is the age of each event when it is processed, at real time.
    """
    folder.mkdir(parents=True, exist_ok=True)

    def at(real):
        return 1000.0 + real / factor

    curves = [deployment(at(0), 4, 4)]
    pods = [(f"p{n}", at(-30), None) for n in range(4)]
    handovers = []
    for step, before, after in steps:
        curves += [deployment(at(step), after, before), deployment(at(step + 60), after, after)]
        handovers += [built.assigned(at(step + 45), "p4", 0), built.assigned(at(step + 45) + 0.3, "p4", 0)]
        if after > before:
            pods += [(f"p{n}", at(step + 6), at(step + 36)) for n in range(before, after)]
    transitions = list(curves)
    for name, added, ready in pods:
        transitions.append(built.pod(added, name, "ADDED", ready is None))
        if ready:
            transitions.append(built.pod(ready, name))
            handovers.append(report(at(230), name, "started", created=added + 15 / factor))
            handovers.append(report(at(240), name, "assigned", partitions=[0], owned=1))
    told = [report(at(-1), "producer", "profile", start=at(0))]
    told += [report(at(since), "producer", "phase", phase=phase, at=at(since)) for since, phase in PHASES]
    born = 1000.0 + np.arange(DURATION * RATE / factor) / RATE
    done = born + late_s / factor
    receipts = [
        built.receipt("p0" if end < at(250) else "p4", end - BATCH_S, end, 1) | {"first": n, "last": n, "checksum": 1}
        for n, end in enumerate(done.tolist())
    ]
    content = {"kind": "steps", "steps": [{"at": a / factor, "rate": RATE, "phase": p} for a, p in PHASES]}
    content["duration"] = DURATION / factor
    chosen = whole.inputs(
        scale={"name": scale, "time": factor},
        profile=content,
        profile_name=profile,
        policy=whole.scaled(THRESHOLD // factor, minReplicaCount=4, maxReplicaCount=12),
        repetition=ran.get("block", 1),
    )
    identity = f"{profile}-{scale}-{ran.get('block', 1)}"
    more = {"turn": Turn(1, ran.get("block", 1), 1, 1)}
    if side := ran.get("side"):
        chosen = replace(chosen, side=Side(side, "alone"))
        other = {"a": "b", "b": "a"}[side]
        identity, more["duet"] = f"{identity}-{side}", Duet(f"{identity}-{other}", side == "a")
    waiting = {at(real): value / factor for real, value in curve(peak).items()}
    samples = built.lags(waiting) + [
        built.sample(t, "kafka_consumergroup_lag", lag, partition="0") for t, lag in waiting.items()
    ]
    rates = [
        (0.2, round(t, 1), series, "", RATE * 0.2)
        for t in np.arange(at(0), at(END), 0.2)
        for series in ("produced", "consumed")
    ]
    ledger = folder / "ledger" / "events"
    ledger.mkdir(parents=True)
    rows = {"partition": 0, "offset": range(len(born)), "ts": (born * 1e9).round().astype("int64")}
    pd.DataFrame(rows).to_parquet(ledger / "part.parquet")
    tables = {"transitions": transitions, "group_events": told + handovers, "samples": samples, "rates": rates}
    more |= {"times": {"settling": at(-20), "driving": at(-5), "ended": at(END)}, "finished": at(END) + 1, "begun": at(-25)}
    more |= {"id": identity, "versions": {"commit": "0123456789abcdef"}}
    return built.record(folder, inputs=chosen, receipts=receipts, **tables, **more)
