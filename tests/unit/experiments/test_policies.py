"""The requirements of a policy, by the model: those that are known to fail one do, each alone where it can.

Both tables of the handbook that are the model's are what it says today.
"""

import pytest

from lab import paths
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
    recommended = policies.read(FOLDER / "recommended.yaml")
    assert recommended.content == front.changed(list(front.FRONT.values())[-1]).content
    assert policies.refuted(policies.figures(recommended, front.LULLS_S, front.RATES)) == []


def test_a_flip_after_a_lull_that_outlasts_the_window_is_right():
    """Three lulls of 15 minutes on a window of 5 flip, and none of the flips is early."""
    run = policies.Run(policies.read(FOLDER / "lag-4500-arrivals.yaml"), policies.bursts(900))
    assert (run.curve.flips, run.early_flips) == (9, 0)


def test_the_table_marks_what_is_beyond_its_bound():
    """A column for each policy."""
    held = {**BOUNDS, policies.OLDEST: 50.0, policies.PRICE: 1300.0}
    shown = policies.rows({"good": held, "bad": held | {FLIPS: 2.0}})
    assert shown[0] == ["", "good", "bad"]
    assert shown[1] == [f"{FLIPS} <= 0", "0", "✘ 2"]
    assert shown[-1] == [policies.PRICE, "1,300", "1,300"]


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
