"""What the play page shows follows from a state: as the query of a link, and a policy's YAML as the fields of a form. Pure."""

from __future__ import annotations

import base64
import functools
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import parse_qs, urlencode

from lab.commands.play.traffic import number_in
from lab.errors import InputError, report, together
from lab.foresee import queries
from lab.foresee.in_flight import CLIENTS_COMMIT_S
from lab.foresee.variants import (
    DOWN_POLICIES,
    DOWN_WINDOW,
    LEAST,
    MOST,
    THRESHOLD,
    UP_POLICIES,
    UP_WINDOW,
    rules_of,
    with_changes,
)
from lab.inputs import scaledobject_file, yaml_edit
from lab.inputs.hpa_spec import DOWNSCALE_STABILIZATION_S, Policy
from lab.inputs.scaledobject import ScaledObject

START = """\
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  name: orders
spec:
  scaleTargetRef:
    name: orders  # the Deployment whose pods read the topic
  minReplicaCount: 4
  maxReplicaCount: 24
  advanced:
    horizontalPodAutoscalerConfig:
      behavior:
        scaleUp:
          stabilizationWindowSeconds: 0
          policies:
            - {type: Pods, value: 8, periodSeconds: 30}
        scaleDown:
          stabilizationWindowSeconds: 300
          policies:
            - {type: Percent, value: 50, periodSeconds: 60}
  triggers:
    - type: kafka
      metadata:
        bootstrapServers: kafka:9092
        consumerGroup: orders
        topic: orders
        lagThreshold: "4500"
        offsetResetPolicy: earliest
        allowIdleConsumers: "true"
"""
TRAFFIC = "spike"
_MOST_BYTES = 100_000  # of a policy in a link
_LONGEST_QUERY = 60_000


@dataclass(frozen=True)
class State:
    """What is shown: the YAML of a ``policy``, and of a ``second`` one ("" for none), on ``traffic``, which is the name of a
    committed profile or steps (:mod:`lab.commands.play.traffic`). ``pod_rate`` is in messages/s, times are in s."""

    policy: str = START
    second: str = ""
    traffic: str = TRAFFIC
    pod_rate: float = 100.0
    partitions: float = 24.0
    start_s: float = 30.0
    commit_s: float = CLIENTS_COMMIT_S
    objective_s: float = 60.0


@dataclass(frozen=True)
class Slider:
    """A number of the state, ``field``, which is in words and ``unit`` what a slider moves from ``least`` to ``most``."""

    field: str
    words: str
    unit: str
    least: float
    most: float
    step: float


SLIDERS = (
    Slider("pod_rate", "one pod reads at most", "messages/s", 10, 1000, 10),
    Slider("partitions", "the topic has", "partitions", 1, 100, 1),
    Slider("start_s", "a new pod is at work after", "s", 0, 300, 5),
    Slider("commit_s", "a pod commits every", "s", 0.5, 30, 0.5),
    Slider("objective_s", "late is a message older than", "s", 5, 600, 5),
)


@dataclass(frozen=True)
class Field:
    """A number of a policy that the form shows: ``name`` is its place in the YAML, ``words`` say what it is, in ``unit``."""

    id: str
    words: str
    unit: str
    name: str
    least: int
    most: int


FORM: Mapping[str, Sequence[Field]] = {
    "How many pods": (
        Field("threshold", "what each pod may leave waiting", "messages", THRESHOLD, 1, 100_000_000),
        Field("least", "never fewer than", "pods", LEAST, 0, 1000),
        Field("most", "never more than", "pods", MOST, 1, 1000),
    ),
    "Adding pods": (
        Field("up_window", "only if more were needed throughout", "s", UP_WINDOW, 0, 3600),
        Field("up_pods", "in a period at most", "pods", f"{UP_POLICIES}, Pods", 1, 1000),
        Field("up_percent", "in a period at most", "% of them", f"{UP_POLICIES}, Percent", 1, 10_000),
    ),
    "Taking pods away": (
        Field("down_window", "only if fewer were enough throughout", "s", DOWN_WINDOW, 0, 3600),
        Field("down_pods", "in a period at most", "pods", f"{DOWN_POLICIES}, Pods", 1, 1000),
        Field("down_percent", "in a period at most", "% of them", f"{DOWN_POLICIES}, Percent", 1, 100),
    ),
}
FIELDS = tuple(one for group in FORM.values() for one in group)


@functools.lru_cache(maxsize=64)
def scaled_of(text: str, where: str) -> ScaledObject:
    """The ScaledObject in a YAML ``text``, which ``where`` names. Raises :class:`InputError` for all that can't be used."""
    return scaledobject_file.read(text, where, also=queries.check).scaled


def form_of(scaled: ScaledObject) -> dict[str, int | None]:
    """The number of each field, by its id, defaults included; None for a policy that is not written and for no lagThreshold."""
    up, down = rules_of(scaled)
    down_s = DOWNSCALE_STABILIZATION_S if down.window_s is None else down.window_s
    found = {"threshold": scaled.lag_threshold, "least": scaled.min_replicas, "most": scaled.max_replicas}
    found |= {"up_window": up.window_s or 0, "down_window": down_s}
    for direction, rules in (("up", up), ("down", down)):
        for kind in ("Pods", "Percent"):
            found[f"{direction}_{kind.lower()}"] = next((one.value for one in rules.policies if one.type == kind), None)
    return {field.id: found[field.id] for field in FIELDS}


def edited(text: str, where: str, form: Mapping[str, float | None]) -> str:
    """``text`` with what is another number in the ``form``; comments elsewhere stay. A number of None is left as it is.

    Raises :class:`InputError` for a text that can't be used, and for numbers that don't fit together.
    """
    scaled = scaled_of(text, where)
    before = form_of(scaled)
    new = {name: int(value) for name, value in form.items() if value is not None and value != before[name]}
    changes: dict[str, float | tuple[Policy, ...]] = {
        field.name: new[field.id] for field in FIELDS if field.id in new and ", " not in field.name
    }
    for direction, name, rules in zip(("up", "down"), (UP_POLICIES, DOWN_POLICIES), rules_of(scaled), strict=True):
        policies = rules.policies
        for kind in ("Pods", "Percent"):
            if (value := new.get(f"{direction}_{kind.lower()}")) is not None:
                policies = _with_value(policies, kind, value)
        if policies != rules.policies:
            changes[name] = policies
    if not changes:
        return text
    made = with_changes(scaled, changes).scaled
    return yaml_edit.edited(text, scaled.content, made.content)


def _with_value(policies: Sequence[Policy], kind: str, value: int) -> tuple[Policy, ...]:
    """``policies`` with the ``value`` in the first of this ``kind``, or in a new one with the period of the others."""
    place = next((place for place, one in enumerate(policies) if one.type == kind), None)
    if place is None:
        return (*policies, Policy(kind, value, policies[0].period_s))
    return (*policies[:place], replace(policies[place], value=value), *policies[place + 1 :])


def query_of(state: State) -> str:
    """The query of a link that holds ``state``, "" for the one that a page begins with."""
    start, found = State(), {}
    for name in ("policy", "second"):
        if (text := getattr(state, name)) != getattr(start, name):
            found[name] = _packed(text)
    if state.traffic != start.traffic:
        found["traffic"] = ",".join(line.strip() for line in state.traffic.splitlines())
    for one in SLIDERS:
        if (value := getattr(state, one.field)) != getattr(start, one.field):
            found[one.field] = f"{value:.10g}"
    return f"?{urlencode(found)}" if found else ""


def state_of(query: str) -> State:
    """The state in the ``query`` of a link; what is not in it is as a page begins. Raises :class:`InputError` for a number out
    of its range, and for a policy that is cut short; what the policies and the traffic say is not read."""
    if len(query) > _LONGEST_QUERY:
        raise InputError("link", "length", len(query), f"at most {_LONGEST_QUERY:,} characters")
    try:
        given = {name: values[0] for name, values in parse_qs(query.removeprefix("?"), max_num_fields=20).items()}
    except ValueError as error:
        raise InputError("link", "query", str(error), "at most 20 fields") from None
    found: dict[str, str | float] = {}
    with together():
        for name in ("policy", "second"):
            if name in given:
                found[name] = _unpacked(name, given[name])
        if "traffic" in given:
            found["traffic"] = given["traffic"].replace(",", "\n")
        for one in SLIDERS:
            if one.field not in given:
                continue
            value = number_in(given[one.field])
            if value is None or not one.least <= value <= one.most or (one.step == 1 and value != int(value)):
                report(InputError("link", one.field, given[one.field], f"{one.least:g} to {one.most:g} {one.unit}"))
            else:
                found[one.field] = value
    return replace(State(), **found)  # type: ignore[arg-type]


def _packed(text: str) -> str:
    return base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode().rstrip("=")


def _unpacked(name: str, word: str) -> str:
    try:
        unpacking = zlib.decompressobj()
        raw = unpacking.decompress(base64.urlsafe_b64decode(word + "=" * (-len(word) % 4)), _MOST_BYTES)
        if not unpacking.eof:
            raise ValueError
        return raw.decode()
    except (ValueError, zlib.error):  # binascii's and Unicode's errors are ValueErrors
        report(InputError("link", name, word, "a policy as this page writes it in a link; was the link cut?"))
        return ""
