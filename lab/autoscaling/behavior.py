"""The HPA's ``behavior`` block, which a ScaledObject and a plain HPA share: checked by name, compressed by a scale."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lab import yamlfile
from lab.errors import InputError
from lab.scale import Scale

_RULES = ("stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance")
# autoscaling/v2's defaults, written out so that a scale can compress them too (keys: window s, policies).
_DEFAULT: dict[str, tuple[int, list[dict[str, Any]]]] = {
    "scaleUp": (
        0,
        [{"type": "Pods", "value": 4, "periodSeconds": 15}, {"type": "Percent", "value": 100, "periodSeconds": 15}],
    ),
    "scaleDown": (300, [{"type": "Percent", "value": 100, "periodSeconds": 15}]),
}


def check(behavior: Mapping[str, Any], where: object, prefix: str) -> None:
    """Raise :class:`InputError` for the first field of ``behavior`` the HPA would refuse; ``prefix`` is its path."""
    yamlfile.known(behavior, tuple(_DEFAULT), where, prefix)
    for direction, rules in behavior.items():
        place = f"{prefix}{direction}."
        yamlfile.known(rules, _RULES, where, place)
        yamlfile.number(rules, "stabilizationWindowSeconds", where, 0, 3600, 0, place)
        if rules.get("selectPolicy", "Max") not in ("Max", "Min", "Disabled"):
            raise InputError(where, f"{place}selectPolicy", rules["selectPolicy"], "Max, Min or Disabled")
        for index, policy in enumerate(rules.get("policies", [])):
            at = f"{place}policies[{index}]."
            yamlfile.known(policy, ("type", "value", "periodSeconds"), where, at)
            if policy.get("type") not in ("Pods", "Percent"):
                raise InputError(where, f"{at}type", policy.get("type"), "Pods or Percent")
            yamlfile.number(policy, "value", where, 1, 1_000_000, prefix=at)
            yamlfile.number(policy, "periodSeconds", where, 1, 1800, prefix=at)


def compress(behavior: dict[str, Any], scale: Scale) -> None:
    """Write both directions out and divide their times as ``scale`` declares, in place."""
    for direction, (window, policies) in _DEFAULT.items():
        rules = behavior.setdefault(direction, {})
        rules["stabilizationWindowSeconds"] = scale.seconds(rules.get("stabilizationWindowSeconds", window))
        rules["policies"] = [
            policy | {"periodSeconds": scale.seconds(policy["periodSeconds"])} for policy in rules.get("policies", policies)
        ]
