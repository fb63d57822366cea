"""What a text computes in words, computed again by the HPA's model."""

from __future__ import annotations

import pytest

from lab.model import hpa

CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 75}}}
AT_ONCE = {"scaleDown": {"stabilizationWindowSeconds": 0}}


@pytest.mark.parametrize(("used", "asked"), [((100, 5, 5), 2), ((90, 90, 90), 4), ((98, 98, 98), 4)])
def test_what_cpu_of_three_pods_asks_for(used: tuple[int, ...], asked: int) -> None:
    """The payments text's trace: one pod at 100 % and two at 5 % ask for 2, not for 4 or 5; 90 % ask for 4, as it says."""
    spec = {"minReplicas": 1, "maxReplicas": 50, "metrics": [CPU], "behavior": AT_ONCE}
    content = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"}, "spec": spec}
    usage = {name: hpa.Usage(percent * 10, at=995) for name, percent in zip("abc", used, strict=True)}
    pods = [hpa.Pod(name) for name in usage]
    decision, _ = hpa.decide(hpa.parse(content, "hpa.yaml"), hpa.State(), 3, [usage], 1000, pods=pods)
    assert decision.desired == asked
