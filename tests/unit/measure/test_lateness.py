"""How long a group was late, on a record in which every number is known."""

from lab.measure.lateness import behind

from .conftest import END, LAG, REPORTS, SPIKE, TRANSITIONS, build


def test_late_is_the_time_with_an_event_older_than_the_objective(tmp_path):
    """No lag is never late, and a stricter objective is breached for longer."""
    for name in ("calm", "late"):
        (tmp_path / name).mkdir()
    calm = build(tmp_path / "calm", TRANSITIONS, REPORTS, dict.fromkeys(LAG, 0))
    assert behind(calm, 0.1).value == 0
    late = build(tmp_path / "late", TRANSITIONS, REPORTS)
    assert 0 < behind(late, 4.0).number < behind(late, 1.0).number < END - SPIKE + 60
