"""A trigger's metadata, where every value is a string: read by name, and refused by name.

A field that is blank counts as absent, as in KEDA (``configParamValue`` in ``pkg/scalers/scalersconfig/typed_config.go``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from lab.errors import InputError
from lab.inputs.triggers import common
from lab.yamlfile import Fields

MOST = 2**63 - 1
_WHOLE = re.compile(r"-?(0|[1-9]\d*)")
_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")


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


class Metadata(Fields):
    """The strings of one trigger."""

    @classmethod
    def read(cls, trigger: Mapping[str, object], where: object, place: str) -> Metadata:
        """The metadata of ``trigger``, which lies at ``place``; every value must be a string."""
        content = trigger.get("metadata")
        if not isinstance(content, dict):
            raise InputError(where, f"{place}metadata", content, "a mapping of strings")
        given = cls(content, where, f"{place}metadata.")
        for field, value in content.items():
            if not isinstance(field, str):
                raise given.error(field, "a field whose name is a string: quote it")
            if not isinstance(value, str):
                raise given.error(field, "a string: quote it")
        return replace(given, content={field: value.strip() for field, value in content.items()})

    def check(self, allowed: Iterable[str], mistaken: Mapping[str, str] | None = None) -> None:
        """Refuse the first field that is not ``allowed``; ``mistaken`` says what to write instead of a common error."""
        for field in self.content:
            if mistaken and field in mistaken:
                value = common.MASK if mistaken[field] == common.FROM_REFERENCE else self.content[field]
                raise InputError(self.where, f"{self.place}{field}", value, mistaken[field])
        self.known(*allowed)

    def error(self, field: str, allowed: str) -> InputError:
        """The error that says that what ``field`` holds is not ``allowed``; no secret is in it."""
        return InputError(self.where, f"{self.place}{field}", common.printable(field, self.content.get(field)), allowed)

    def named(self, field: str) -> Named:
        """The value of ``field`` or of the variable that ``<field>FromEnv`` names."""
        return Named(self.content.get(field, ""), self.content.get(f"{field}FromEnv", ""))

    def flag(self, field: str, default: bool = False) -> bool:
        """Whether ``field`` says "true"."""
        value = self.content.get(field, "")
        if value not in ("", "true", "false"):
            raise self.error(field, '"true" or "false"')
        return value == "true" if value else default

    def choice(self, field: str, *choices: str, default: str | None = None) -> str:
        """The one of ``choices`` that ``field`` names."""
        return super().choice(field, *choices) if self.content.get(field) or default is None else default

    def whole(self, field: str, least: int, most: int = MOST, default: int | None = None) -> int:
        """The whole number in ``field``, from ``least`` to ``most``."""
        text = self.content.get(field, "") or ("" if default is None else str(default))
        if not _WHOLE.fullmatch(text) or not least <= int(text) <= most:
            raise self.error(field, f"a whole number from {least}{f' to {most}' if most != MOST else ''}, as a string")
        return int(text)

    def number(self, field: str, least: float = -math.inf, most: float = math.inf, default: float | None = None) -> float:
        """The finite number in ``field``, from ``least`` to ``most``."""
        text = self.content.get(field, "") or ("" if default is None else f"{default:g}")
        value = float(text) if _NUMBER.fullmatch(text) else math.nan
        if not math.isfinite(value) or not least <= value <= most:
            bounds = f"{f' from {least:g}' if least > -math.inf else ''}{f' to {most:g}' if most < math.inf else ''}"
            raise self.error(field, f"a number{bounds}, as a string")
        return value
