"""A trigger's metadata, where every value is a string: read by name, and refused by name.

A field that is blank counts as absent, as in KEDA (``configParamValue`` in ``pkg/scalers/scalersconfig/typed_config.go``).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lab.errors import InputError, report
from lab.inputs.triggers import common
from lab.yamlfile import Fields, as_number

MOST = 2**63 - 1
WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,30})")
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
# How Go writes a truth value (``strconv.ParseBool``), as KEDA reads each.
TRUE, FALSE = ("1", "t", "T", "true", "TRUE", "True"), ("0", "f", "F", "false", "FALSE", "False")
_SECRET = re.compile(r"(?i)passw|secret|credential")  # in the name of a field that no trigger has
# What is meant in metadata by what people write, and where fields of another place belong.
MEANT = {
    **dict.fromkeys(("brokerList", "brokers", "bootstrapServer"), "bootstrapServers"),
    **dict.fromkeys(("group", "groupId", "group.id"), "consumerGroup"),
    **dict.fromkeys(("consumerOffset", "offsetReset", "autoOffsetReset"), "offsetResetPolicy"),
    "startThreshold": "activationLagThreshold",
    "topics": "topic, and a trigger for each",
}
ELSEWHERE = {
    **{name: f"spec.{name}" for name in ("minReplicaCount", "maxReplicaCount", "pollingInterval", "cooldownPeriod")},
    **{name: f"{name} beside metadata" for name in ("metricType", "useCachedMetrics", "authenticationRef")},
}


@dataclass(frozen=True)
class Named:
    """A value written in the trigger, or in a variable of the scale target's container."""

    literal: str
    variable: str

    @property
    def given(self) -> bool:
        """Whether it is written in either way."""
        return bool(self.literal or self.variable)

    def of(self, environment: Mapping[str, str]) -> str:
        """The value, which the trigger's own word decides before a variable does; "" when neither is there."""
        return self.literal or environment.get(self.variable, "").strip()


@dataclass(frozen=True)
class Metadata(Fields):
    """The strings of one trigger; ``written`` is what stands in the file.

    Where it is ``resolved``, a field ``...FromEnv`` holds the value of its variable, which may be a secret.
    """

    written: Mapping[str, object] = field(default_factory=dict)
    resolved: bool = False

    @classmethod
    def read(cls, trigger: Mapping[str, object], where: object, place: str, resolved: bool = False) -> Metadata:
        """The metadata of ``trigger``, which lies at ``place``. :meth:`check` refuses a value that is no string."""
        written = trigger.get("metadata")
        if not isinstance(written, dict):
            report(InputError(where, f"{place}metadata", written, "a mapping of strings"))
            written = {}
        return cls({name: _words(value) for name, value in written.items()}, where, f"{place}metadata.", written, resolved)

    def check(self, allowed: Iterable[str], mistaken: Mapping[str, str] | None = None) -> None:
        """Refuse each field that is not ``allowed``, and each value that is no string.

        ``mistaken`` says what to write instead of a common error.
        """
        fields, wrong = tuple(allowed), mistaken or {}
        for name in (name for name in self.content if name in wrong):
            value = common.MASK if wrong[name] == common.FROM_REFERENCE else self.written[name]
            report(InputError(self.where, f"{self.place}{name}", value, wrong[name]))
        meant = {name: other for name, other in MEANT.items() if other.split(",")[0] in fields}
        self.known(*fields, mistaken=meant | ELSEWHERE)
        for name, value in self.written.items():
            if isinstance(value, list | dict):
                self.refuse(name, "one string; commas separate several")
            elif value is None:
                report(InputError(self.where, f"{self.place}{name}", "", "a string, or no such line"))
            elif not isinstance(value, str):
                self.refuse(name, "a string: quote it", json.dumps(_words(value)))

    def error(self, field: str, allowed: str, meant: str = "") -> InputError:
        """The error that says that what ``field`` holds is not ``allowed``; no secret is in it."""
        written = self.written.get(field)
        value = common.printable(field, self.content.get(field) if isinstance(written, str) else written)
        if value is not None and (_SECRET.search(str(field)) or (self.resolved and str(field).endswith("FromEnv"))):
            value = common.MASK
        return InputError(self.where, f"{self.place}{field}", value, allowed, "" if value == common.MASK else meant)

    def named(self, field: str) -> Named:
        """The value of ``field`` or of the variable that ``<field>FromEnv`` names."""
        return Named(self.content.get(field, ""), self.content.get(f"{field}FromEnv", ""))

    def flag(self, field: str, default: bool = False) -> bool:
        """Whether ``field`` says true."""
        value = self.content.get(field, "")
        if value not in ("", *TRUE, *FALSE):
            self.refuse(field, '"true" or "false"')
            return default
        return value in TRUE if value else default

    def choice(self, field: str, *choices: str, default: str | None = None) -> str:
        """The one of ``choices`` that ``field`` names."""
        return super().choice(field, *choices) if self.content.get(field) or default is None else default

    def whole(self, field: str, least: int, most: int = MOST, default: int | None = None, unit: str = "") -> int:
        """The whole number in ``field``, from ``least`` to ``most``, in ``unit``."""
        text = self.content.get(field, "") or ("" if default is None else str(default))
        if not WHOLE.fullmatch(text) or not least <= int(text) <= most:
            bounds, meant = f"{least}{f' to {most}' if most != MOST else ''}{unit and f' {unit}'}", as_number(text, unit)
            meant = f'"{meant}"' if meant.isdecimal() and least <= int(meant) <= most else ""
            self.refuse(field, f"a whole number from {bounds}, as a string", meant)
            return least if default is None else default
        return int(text)

    def number(
        self, field: str, least: float = -math.inf, most: float = math.inf, default: float | None = None, unit: str = ""
    ) -> float:
        """The finite number in ``field``, from ``least`` to ``most``, in ``unit``."""
        text = self.content.get(field, "") or ("" if default is None else f"{default:g}")
        value = float(text) if NUMBER.fullmatch(text) else math.nan
        if not math.isfinite(value) or not least <= value <= most:
            bounds = f"{f' from {least:g}' if least > -math.inf else ''}{f' to {most:g}' if most < math.inf else ''}"
            self.refuse(field, f"a number{bounds}{unit and f' {unit}'}, as a string")
            return max(least, 0.0) if default is None else default
        return value


def _words(value: object) -> str:
    """``value`` as the string that it should have been."""
    if isinstance(value, list):
        return ",".join(map(str, value))
    return value.strip() if isinstance(value, str) else "" if value is None else json.dumps(value, default=str)
