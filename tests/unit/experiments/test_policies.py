"""The requirements of a policy, by the model: those that are known to fail one do, each alone where it can.

Both tables of the handbook that are the model's are what it says today.
"""

import pytest

from lab import paths
from lab.foresee.simulate import simulate
from lab.inputs import policy, variant
from tests import front, policies
from tests.handbook import PAGE
from tests.policies import BOUNDS, DISTANCE, FLIPS, FLOOR, RATE, REACTION, REST

FOLDER = paths.MANIFESTS / "scaledobjects"


def found(base, **changes):
    """What a committed policy with changes does at few lulls and rates."""
    file = FOLDER / f"{base}.yaml"
    made = policy.parse(variant.policy(base, **changes).applied(policies.read(file).content, file), file)
    return policies.figures(made, lulls_s=(180, 240, 900), rates=(1450, 1800))


@pytest.mark.parametrize(
    ("base", "changes", "beyond"),
    [
        ("lag-4500", {}, [FLIPS, DISTANCE, RATE, REST]),  # pods that keep up have no lag
        ("lag-4500", {"scale_up_window": 60}, [FLIPS, REACTION, DISTANCE, RATE, REST]),
        ("lag-4500-arrivals", {}, [RATE, REST]),  # 18 to 23 pods on 24 partitions do no more than 12
        ("lag-4500-arrivals", {"scale_down": "1 pod/1800s"}, [FLOOR, RATE, REST]),
    ],
    ids=["lag alone", "a window up", "arrivals", "no way back"],
)
def test_a_requirement_refutes_a_policy(base, changes, beyond):
    """By name; what is within its bound is not named."""
    assert policies.refuted(found(base, **changes)) == beyond


def test_the_recommended_policy_holds_every_requirement():
    """It is the last row of the front, as a file that a user copies."""
    name = list(front.FRONT)[-1]
    assert policies.read(FOLDER / "recommended.yaml").content == front.changed(front.FRONT[name]).content
    assert policies.refuted(front.worst(name)) == []


@pytest.mark.nightly
def test_it_holds_them_at_every_lull_rate_and_place():
    """Each point of a sync with each read between two commits: 930 simulations, where a row of the handbook has 55."""
    recommended = policies.read(FOLDER / "recommended.yaml")
    assert policies.refuted(policies.figures(recommended, places=policies.EVERY)) == []


def test_what_an_engineer_would_change_is_in_the_front():
    """The windows, tolerance, steps, lagThreshold and triggers of a policy on lag."""
    varied = {name for changes in front.FRONT.values() for name, _ in changes}
    asked = {"scale_down_window", "scale_down_tolerance", "scale_up", "lag_threshold", variant.TRIGGER}
    assert asked <= varied


def test_every_profile_is_tried_at_each_place_and_the_worst_is_shown(monkeypatch):
    """A sync that comes just before lag asks for pods costs most of a period: lag alone asks 12 s into a burst.

    The points of a sync are tried, the reads just before and just after a commit, and each of these at more than one point.
    """
    tried = []

    def seen(situation, scaled):
        tried.append((situation.consumers.in_flight_s, situation.phase_s))
        return simulate(situation, scaled)

    monkeypatch.setattr(policies, "simulate", seen)
    lag = policies.read(FOLDER / "lag-4500.yaml")
    worst = policies.figures(lag, lulls_s=[180], rates=[300])
    assert tried == [(in_flight_s, point * policies.HPA_SYNC_S) for in_flight_s, point in policies.PLACES] * 4
    assert {point for _, point in policies.PLACES} == set(policies.POINTS)
    assert set(policies.PLACES) < set(policies.EVERY)
    first, *others = (policies.Run(lag, policies.ACCEPTANCE, at, point=point).reaction_s for at, point in policies.PLACES)
    assert worst[REACTION] >= max(others) > first + 5


def test_a_flip_after_a_lull_that_outlasts_the_window_is_right():
    """Three lulls of 15 minutes on a window of 5 flip, and none of the flips is early."""
    run = policies.Run(policies.read(FOLDER / "lag-4500-arrivals.yaml"), policies.bursts(900))
    assert (run.curve.flips, run.early_flips) == (9, 0)


def test_the_table_marks_what_is_beyond_its_bound():
    """A column for each policy."""
    held = {**BOUNDS, policies.OLDEST: 50.0, policies.PRICE: 1300.0, policies.FROM_FLOOR: 90.0}
    shown = policies.rows({"good": held, "bad": held | {FLIPS: 2.0}})
    assert shown[0] == ["", "good", "bad"]
    assert shown[1] == [f"{FLIPS} <= 0", "0", "✘ 2"]
    assert shown[-2:] == [[policies.PRICE, "1,300", "1,300"], [policies.FROM_FLOOR, "90", "90"]]


@pytest.mark.parametrize(
    ("head", "row", "name"),
    [
        *((front.FRONT_HEAD, front.front_row, name) for name in front.FRONT),
        *((front.REMEDIES_HEAD, front.remedy_row, name) for name in front.REMEDIES),
    ],
)
def test_a_row_of_the_handbook_is_what_the_model_says(head, row, name):
    """``python -m tests.front`` fills it in."""
    table = front.lines(head, [row(name)])
    page = PAGE.read_text(encoding="utf-8")
    assert page.count(table[0]) == 1
    assert f"\n{table[-1]}\n" in page.partition(table[0])[2].partition("\n\n")[0] + "\n", table[-1]


def test_a_table_is_filled_in_where_its_head_is():
    """Once; the text around it stays, and a page without its head is refused."""
    page = "text\n\n| a | b |\n|---|---:|\n| old | 1 |\n\nmore\n"
    table = front.lines(("a", "b"), [["new", "2"], ["one", "3"]])
    assert front.filled(page, table) == "text\n\n| a | b |\n|---|---:|\n| new | 2 |\n| one | 3 |\n\nmore\n"
    for other in ("text\n", page + page):
        with pytest.raises(ValueError, match="tables with the head"):
            front.filled(other, table)
