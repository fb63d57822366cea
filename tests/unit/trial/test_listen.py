"""What is held of the reports does not grow with them."""

from __future__ import annotations

import pickle

from lab.trial.listen import Reports


def test_what_is_held_of_an_hours_reports_is_small() -> None:
    """A hundred thousand commits of two consumers: the last of each kind, what each owns, and when each phase began."""
    reports = Reports()
    reports.add({"event": "phase", "phase": "spike", "at": 5.0, "pod": "producer"})
    for number in range(100_000):
        reports.add({"event": "committed", "pod": f"pod-{number % 2}", "t": number, "offsets": list(range(24))})
        reports.add({"event": "assigned", "pod": f"pod-{number % 2}", "t": number, "owned": number % 24})
    reports.add({"event": "phase", "phase": "spike", "at": 9.0, "pod": "producer"})
    assert reports.begun("spike") == 5.0
    assert reports.begun("drain") is None
    assert reports.phase == "spike"
    assert reports.owned() == {"pod-0": 99_998 % 24, "pod-1": 99_999 % 24}
    assert reports.last("committed") == {"event": "committed", "pod": "pod-1", "t": 99_999, "offsets": list(range(24))}
    assert reports.last("produced") is None
    assert len(pickle.dumps(reports)) < 2000
