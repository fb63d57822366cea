"""The traffic of the play page: a committed profile by its name, or steps in lines; a handle in the picture moves a step.

Pure but for the committed profiles.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

from lab import paths
from lab.errors import InputError, report, together
from lab.foresee.variants import LONGEST_WINDOW
from lab.inputs import profile
from lab.inputs.profile import BASELINE, MAX_RATE, Profile

SHORTEST_S, LONGEST_S = 600.0, 4 * 3600.0  # of the committed profiles that are offered: enough to scale, and drawn at once
MOST_STEPS, MOST_S = 200, 86_400.0
MOST_HANDLES = 40  # more are too near to each other for a pointer
STANDS = 0.01  # of the length of an axis: who drags a handle along one axis means no such move along the other


@functools.lru_cache(maxsize=1)
def profiles() -> dict[str, Profile]:
    """The committed profiles that are offered, by name: what a group at real time has time to scale on."""
    found = {file.stem: profile.load(file) for file in sorted(paths.PROFILES.glob("*.yaml")) if file.stem != "scales"}
    return {name: one for name, one in found.items() if not one.real_time and SHORTEST_S <= one.duration <= LONGEST_S}


@functools.lru_cache(maxsize=16)
def profile_of(traffic: str) -> Profile:
    """The profile that ``traffic`` names or writes. Raises :class:`InputError`."""
    return profiles().get(traffic) or traffic_of(traffic)


def traffic_of(text: str) -> Profile:
    """The profile in lines, or parts between commas, such as ``300 2500 spike``: seconds, messages/s, and a phase if there is
    one. The last is the end, as ``1200 end``. A line ``zipf 0.7`` says how uneven the keys are, 0 without it, and
    ``begins_at 2026-01-15T07:54:00+00:00`` the time of day. Raises :class:`InputError` naming each line that can't be used.
    """
    lines = [line.split() for line in text.replace(",", "\n").splitlines() if line.strip()]
    found: dict[str, object] = {"kind": "steps", "zipf": 0, "duration": None}
    steps: list[dict[str, object]] = []
    with together():
        if len(lines) > MOST_STEPS:
            raise InputError("traffic", "lines", len(lines), f"at most {MOST_STEPS}")
        for number, words in enumerate(lines, 1):
            at, rate = number_in(words[0]), number_in(words[1]) if len(words) > 1 else None
            if words[0] in ("zipf", "begins_at") and len(words) == 2:
                found[words[0]] = words[1] if rate is None else rate
            elif words[1:] == ["end"] and number == len(lines) and at is not None and at <= MOST_S:
                found["duration"] = at
            elif at is None or rate is None or len(words) > 3 or at > MOST_S or rate > MAX_RATE:
                allowed = "seconds and messages/s, as 300 2500; the last line has the end, as 1200 end"
                report(InputError("traffic", f"line {number}", " ".join(words), allowed))
            else:
                steps.append({"at": at, "rate": rate, "phase": words[2] if len(words) > 2 else "step" if steps else BASELINE})
        if found["duration"] is None:
            report(InputError("traffic", "the last line", " ".join(lines[-1]) if lines else None, "the end, as 1200 end"))
    return profile.build(found | {"steps": steps}, "traffic")


def number_in(word: str) -> float | None:
    """The number that ``word`` writes, None where it writes none that is finite and at least 0."""
    try:
        found = float(word)
    except ValueError:
        return None
    return found if 0 <= found < float("inf") else None


def steps_of(traffic: Profile) -> str:
    """``traffic`` in the lines that :func:`traffic_of` reads."""
    lines = [f"zipf {traffic.zipf:g}"] if traffic.zipf else []
    lines += [f"begins_at {traffic.begins_at.isoformat()}"] if traffic.begins_at else []
    lines += [f"{one.at:.10g} {one.rate:.10g} {'-'.join(one.phase.split()) or 'step'}" for one in traffic.steps]
    return "\n".join([*lines, f"{traffic.duration:.10g} end"])


def length_of(traffic: Profile) -> float:
    """How much of ``traffic`` is simulated and drawn, s."""
    return traffic.duration + LONGEST_WINDOW


def handles(traffic: Profile) -> list[dict[str, Any]]:
    """A shape of Plotly's at the beginning of each step, which a pointer drags; none where there are too many steps.

    It is a path, because any other shape may be dragged to another size too.
    """
    look: dict[str, Any] = {
        "type": "path",
        "path": "M-10,0L0,10L10,0L0,-10Z",
        "xsizemode": "pixel",
        "ysizemode": "pixel",
        "yref": "y3",
    }
    look |= {"fillcolor": "white", "line": {"color": "#444444", "width": 1.5}}
    steps = traffic.steps if len(traffic.steps) <= MOST_HANDLES else ()
    return [look | {"xanchor": one.at / 60, "yanchor": one.rate} for one in steps]


def moved(traffic: Profile, place: int, minutes: float, rate: float) -> Profile:
    """``traffic`` whose step at ``place`` begins after ``minutes`` and has ``rate`` messages/s, as far as its neighbours allow.

    The first step stays at the beginning.
    """
    steps, one, at = traffic.steps, traffic.steps[place], round(60 * minutes)
    least = steps[place - 1].at + 1 if place else 0
    most = (steps[place + 1].at if place + 1 < len(steps) else traffic.duration) - 1
    if place and least < most and abs(at - one.at) > STANDS * length_of(traffic):
        one = replace(one, at=min(max(at, least), most))
    if abs(rate - one.rate) > STANDS * max(step.rate for step in steps):
        one = replace(one, rate=min(max(0.0, float(f"{rate:.3g}")), MAX_RATE))
    return replace(traffic, steps=(*steps[:place], one, *steps[place + 1 :]))
