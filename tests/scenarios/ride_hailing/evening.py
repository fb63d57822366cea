"""Friday evening as the text has it, beside the model's at real time: row by row."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from lab import paths, yamlfile
from lab.evidence import Evidence
from lab.foresee.curve import Curve
from lab.foresee.group import Consumers
from lab.foresee.simulate import simulate
from lab.foresee.situation import Situation
from lab.inputs import profile, scaledobject
from lab.inputs.keys import shares
from lab.inputs.profile import Profile
from lab.measure.lag import Moment, moments
from lab.record.store import Record
from tests.scenarios.ride_hailing import claims
from tests.scenarios.ride_hailing.programs.shape import rate_at
from tests.scenarios.ride_hailing.trials import TRIPS, policy

COLD_START_S = 30.0  # of a pod at real time: the text's own least (image, JVM, group)
SLOW = replace(TRIPS, start_s=COLD_START_S)
TABLE = "text 4, the expected scaling timeline"


@cache
def simulated(phase_s: float = 0.0) -> Curve:
    """The evening as the model of KEDA, HPA and group has it at real time; the first sync comes ``phase_s`` after its start."""
    scaled = scaledobject.parse(yamlfile.read(policy("trip-analytics")), policy("trip-analytics"))
    pods = Consumers(rate=claims.POD_RATE, start_s=COLD_START_S)
    situation = Situation(_traffic(), shares(_traffic(), 1, claims.PARTITIONS), pods, phase_s=phase_s, tail_s=600)
    return simulate(situation, scaled)


def foretold(phase_s: float = 0.0) -> list[Moment]:
    """The model's evening at each row of the text's timeline; ``phase_s`` as in :func:`simulated`."""
    traffic = _traffic()
    start = next(step.at for step in traffic.steps if step.phase != profile.BASELINE)
    curve, found = simulated(phase_s), []
    for at in (row.at for row in claims.TIMELINE):
        place = max(0, int(np.searchsorted(curve.t, start + at, side="right")) - 1)
        lag, rate = float(np.interp(start + at, curve.t, curve.lag)), rate_at(traffic, start + at - 0.001)
        pods = {"wanted": int(curve.replicas[place]), "ready": int(curve.working[place])}
        found.append(Moment(at=at, rate=rate, lag=lag, real_lag=lag, **pods))
    return found


def report_timeline(evidence: Evidence, record: Record, model: list[Moment]) -> None:
    """Add a column for each row of the text's timeline to the evidence."""
    at = [row.at for row in claims.TIMELINE]
    for row, own_lag, one, predicted in zip(
        claims.TIMELINE, claims.implied(claims.TIMELINE), moments(record, at), model, strict=True
    ):
        evidence.report(
            f"T+{row.at:g}",
            {
                "rate: text": row.rate,
                "rate: measured": one.rate,
                "lag: text": row.lag,
                "lag: its own rates and replicas": own_lag,
                "lag: model at real time": predicted.lag,
                "lag: measured": one.real_lag,
                "replicas: text": row.replicas,
                "replicas: model at real time": predicted.wanted,
                "replicas: measured": one.wanted,
            },
        )


@cache
def _traffic() -> Profile:
    return profile.load(paths.PROFILES / "trips.yaml")
