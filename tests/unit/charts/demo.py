"""A made-up trial for the report's tests: a tenfold spike met by 4 to 24 pods, with rebalances and one fault."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from lab.charts.timeline import Timeline

SCALING = ((28.0, 4, 8), (43.0, 8, 16), (58.0, 16, 24), (430.0, 24, 12), (490.0, 12, 6), (550.0, 6, 4))


def trial(*, step_s: float = 1.0, seed: int = 7, fault: bool = True, title: str = "Step 10x for 240 s, policy lag") -> Timeline:
    """A timeline of 720 s sampled every ``step_s`` seconds."""
    random = np.random.default_rng(seed)
    t = np.arange(-60.0, 660.0, step_s)
    produced = np.where((t >= 0) & (t < 240), 20_000.0, 2_000.0)
    replicas, ready, current = [], [], []
    pods = np.full_like(t, 4.0)
    for when, before, after in SCALING:
        replicas.append({"t": when, "kind": "desired", "replicas": after})
        current.append({"t": when + 1.5, "kind": "current", "replicas": after})
        delay = 9.0 if after > before else 4.0
        for n, value in enumerate(np.linspace(before, after, 3, dtype=int)):
            ready.append({"t": when + delay + 2 * n, "kind": "ready", "replicas": int(value)})
        pods[t >= when + delay] = after
    begin = [{"t": -60.0, "kind": kind, "replicas": 4} for kind in ("desired", "current", "ready")]
    end = [{"t": 660.0, "kind": kind, "replicas": 4} for kind in ("desired", "current", "ready")]
    rebalances = [when + 9 + k * 1.7 for when, before, after in SCALING for k in range(abs(after - before))]
    dip = sum(np.exp(-(((t - at) / 2.0) ** 2)) for at in rebalances)
    lag, consumed = np.zeros_like(t), np.zeros_like(t)
    held = 300.0
    for n in range(len(t)):
        able = pods[n] * 1_100.0 * (1 - 0.55 * min(1.0, float(dip[n])))
        if fault and 150 <= t[n] < 175:
            able *= 0.15
        consumed[n] = min(able, held / step_s + produced[n]) * random.normal(1, 0.02)
        held = max(0.0, held + (produced[n] - consumed[n]) * step_s)
        lag[n] = held
    marks = [
        {
            "t": when,
            "kind": "scale up" if after > before else "scale down",
            "label": f"{before}→{after}",
            "detail": f"HPA: desired {before} -> {after}",
        }
        for when, before, after in SCALING
    ] + [{"t": at, "kind": "rebalance", "label": "rebalance", "detail": "cooperative: 3 partitions moved"} for at in rebalances]
    rates = [
        pd.DataFrame({"t": t, "series": name, "rate": rate}) for name, rate in (("produced", produced), ("consumed", consumed))
    ]
    faults = [{"start": 150.0, "end": 175.0, "label": "broker paused"}] if fault else []
    return Timeline(
        title=title,
        subtitle="scale quick: 1 s of the chart is 4 s of the profile; rates are not · cluster binary · seed 7",
        lag=pd.DataFrame({"t": t, "lag": lag}),
        lag_objective=24_000.0,
        replicas=pd.DataFrame([*begin, *replicas, *current, *ready, *end]),
        throughput=pd.concat(rates, ignore_index=True),
        spans=pd.DataFrame([{"start": 0.0, "end": 240.0, "label": "spike 10x"}]),
        marks=pd.DataFrame(marks, columns=["t", "kind", "label", "detail"]),
        events=pd.DataFrame(faults, columns=["start", "end", "label"]),
    )


def reaction() -> pd.DataFrame:
    """The parts of a reaction of about 71 s, two of them tiny."""
    rows = [
        ("lag visible to the exporter", 4.8, "signal"),
        ("KEDA polls the scaler", 11.2, "signal"),
        ("HPA reads the metric", 0.2, "autoscaler"),
        ("HPA decides (sync period)", 13.9, "autoscaler"),
        ("deployment updated", 0.05, "control plane"),
        ("pods scheduled", 0.7, "control plane"),
        ("consumer process starts", 6.1, "consumer"),
        ("group rebalances", 21.4, "consumer"),
        ("lag falls", 12.9, "consumer"),
    ]
    return pd.DataFrame(rows, columns=["part", "seconds", "group"])


if __name__ == "__main__":
    from lab.charts import breakdown, drawing, timeline

    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, made in (("timeline", timeline.timeline(trial())), ("breakdown", breakdown.breakdown(reaction()))):
        (folder / f"{name}.html").write_text(drawing.html(made), encoding="utf-8")
        (folder / f"{name}.svg").write_text(drawing.svg(made), encoding="utf-8")
        (folder / f"{name}.png").write_bytes(drawing.png(made))
