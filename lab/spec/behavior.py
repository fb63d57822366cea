"""What a scale makes of the ``behavior`` block that a ScaledObject and a plain HPA share; :mod:`hpa_spec` checks it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lab.spec.hpa_spec import DOWN, DOWNSCALE_STABILIZATION_S, UP, Policy, Rules, present
from lab.spec.scale import Scale


def compressed(behavior: Mapping[str, Any] | None, scale: Scale) -> dict[str, Any]:
    """A checked ``behavior`` with its times divided as ``scale`` declares.

    Both directions are written out, with the API server's and the controller's defaults: or those would stay at real time.
    """
    written = present(behavior or {})
    defaults = {"scaleUp": UP, "scaleDown": DOWN}
    return {direction: _direction(present(written.get(direction, {})), rules, scale) for direction, rules in defaults.items()}


def _direction(written: Mapping[str, Any], default: Rules, scale: Scale) -> dict[str, Any]:
    window = DOWNSCALE_STABILIZATION_S if default.window_s is None else default.window_s
    policies = written.get("policies", [_policy(policy) for policy in default.policies])
    return dict(written) | {
        "stabilizationWindowSeconds": scale.seconds(written.get("stabilizationWindowSeconds", window)),
        "policies": [policy | {"periodSeconds": scale.seconds(policy["periodSeconds"])} for policy in policies],
    }


def _policy(policy: Policy) -> dict[str, Any]:
    return {"type": policy.type, "value": policy.value, "periodSeconds": policy.period_s}
