"""What is held of the reports does not grow with them."""

from __future__ import annotations

import pickle

from lab.trial.listen import Reports


def test_what_is_held_of_an_hours_reports_is_small() -> None:
    """Ten thousand commits of two consumers: the last of each kind, what each owns, and when each phase began."""
    reports, spike = Reports(), {"event": "phase", "phase": "spike", "pod": "producer"}
    reports.add(spike | {"at": 5.0})
    for number in range(10_000):
        own = {"pod": f"pod-{number % 2}", "t": number}
        reports.add(own | {"event": "committed", "offsets": list(range(24))})
        reports.add(own | {"event": "assigned", "owned": number % 24})
    reports.add(spike | {"at": 9.0})
    assert (reports.begun("spike"), reports.begun("drain"), reports.phase) == (5.0, None, "spike")
    assert reports.owned() == {"pod-0": 9_998 % 24, "pod-1": 9_999 % 24}
    assert reports.last("committed") == own | {"event": "committed", "offsets": list(range(24))}
    assert reports.last("produced") is None
    assert len(pickle.dumps(reports)) < 2000
