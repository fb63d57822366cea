"""The recommended policy against what a session concluded: every setting that the session decides otherwise is named. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from lab.judge.pairs import FEWEST
from lab.model.hpa import DEFAULTS
from lab.report.session import Conclusion


def _down(policy: Mapping[str, Any]) -> Mapping[str, Any]:
    settings = policy["spec"].get("advanced", {}).get("horizontalPodAutoscalerConfig", {})
    down: Mapping[str, Any] = settings.get("behavior", {}).get("scaleDown", {})
    return down


def _trigger(policy: Mapping[str, Any]) -> Mapping[str, Any]:
    trigger: Mapping[str, Any] = policy["spec"]["triggers"][0]
    return trigger


# What a policy has for each setting of a ScaledObject that experiments conclude about; the default where it says nothing.
SETTINGS: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "lagThreshold": lambda policy: _trigger(policy)["metadata"]["lagThreshold"],
    "allowIdleConsumers": lambda policy: _trigger(policy)["metadata"].get("allowIdleConsumers", "false"),
    "useCachedMetrics": lambda policy: _trigger(policy).get("useCachedMetrics", False),
    "maxReplicaCount": lambda policy: policy["spec"].get("maxReplicaCount", 100),
    "scaleDown.stabilizationWindowSeconds": lambda policy: _down(policy).get(
        "stabilizationWindowSeconds", DEFAULTS.downscale_stabilization_s
    ),
    "scaleDown.tolerance": lambda policy: _down(policy).get("tolerance", DEFAULTS.tolerance),
}


def beaten(conclusions: Iterable[Conclusion], policy: Mapping[str, Any], runs: int) -> list[str]:
    """A line for each setting of ``policy`` that ``conclusions`` decide otherwise; none of fewer than six ``runs``."""
    if runs < FEWEST:
        return []
    return [
        f"{row.setting}: the recommended policy has {_text(SETTINGS[row.setting](policy))}, this session concludes "
        f"{_text(row.value)} ({row.experiment}: {row.because})"
        for row in conclusions
        if row.setting in SETTINGS and _text(SETTINGS[row.setting](policy)) != _text(row.value)
    ]


def _text(value: object) -> str:
    """The value in one form: YAML has a number or a string of it, a switch or its word, with quotes or without."""
    text = str(value).strip("\"'").lower()
    try:
        return f"{float(text):g}"
    except ValueError:
        return text
