"""All measures: their list, the row of a trial, and the least difference of each, from the sides of A/A duets."""

import importlib
import pkgutil

import pytest

import lab.measure
from lab.__main__ import main
from lab.commands.measures import entries
from lab.judge.measure import Measure
from lab.judge.quantity import Quantity
from lab.measure.overview import FIGURES, least_differences, numbers, overview
from lab.record.store import write_json

from . import built, whole
from .built import assigned, lags, pod, receipt, replicas, sealed
from .conftest import report

LAG = {0: 0, 10: 50, 20: 900, 24: 3_000, 30: 400, 33: 100, 40: 0}
RATES = [(1, 20.0, "consumed", "", 500.0), (1, 21.0, "consumed", "", 700.0), (1, 21.0, "consumed", "a", 900.0)]
RATES += [(1, 21.0, "produced", "", 800.0), (0.2, 21.0, "consumed", "", 950.0)]


def build(folder, *phases):
    """A trial of 40 s in these phases, with every table."""
    inputs, told = built.profile(0.0, 40, *phases)
    record = built.record(
        folder,
        inputs=inputs,
        transitions=[pod(0, "a"), *replicas((0, 2, 2), (12, 5, 2), (30, 3, 5), (32, 4, 3), (38, 2, 3))],
        group_events=[
            *told,
            assigned(12, "a", 0),
            assigned(12.5, "a", 1),
            report(40, "producer", "produced", acked=90) | {"detail": '{"sent": 90, "acked": 90, "unknown": 0, "failed": 0}'},
        ],
        samples=lags(LAG),
        receipts=[receipt("a", 10, 40, 3000), receipt("a", 50, 60, 1)],
        rates=RATES,
    )
    counts = {"produced": 100, "processed": 97, "lost_messages": 3, "unseen_messages": 2, "doubled_messages": 5}
    write_json(folder / "reconciliation.json", whole.reconciliation(**counts, unseen=[{"partition": 1, "count": 2}]))
    return record


def test_the_row_is_whole_and_in_order(tmp_path):
    """Each figure of a burst that overshoots once, in the order in which it is shown."""
    found = overview(build(tmp_path, (0, "baseline"), (10, "burst"), (15, "lull"), (20, "burst"), (25, "lull")))
    assert found == {
        "peak lag (messages)": 3000,
        "lag back at one lagThreshold after (s)": 8,  # at or below 100 at 33 s, and the last burst ended at 25 s
        "most replicas (pods)": 5,
        "scale-ups": 2,
        "scale-downs": 2,
        "flips": 1,
        "peak consume rate (messages/s)": 700,
        "mean consume rate while lag > 0 (messages/s)": pytest.approx(100),
        "rebalances": 1,
        "median rebalance (s)": 0.5,
        "longest rebalance (s)": 0.5,
        "pod-minutes": pytest.approx(100 / 60),
        "idle share of pod time": pytest.approx(0.6),
        "produced": 100,
        "processed": 97,
        "lost or unseen": 5,
        "processed more than once": 5,
    }
    assert list(found) == list(FIGURES)


@pytest.mark.parametrize(
    ("phases", "seconds"),
    [
        ([(0, "baseline"), (10, "spike"), (20, "drain")], 13),
        ([(0, "baseline"), (10, "tooth"), (32, "drain")], 1),
        ([(0, "baseline")], None),
        ([(0, "baseline"), (10, "spike")], None),
    ],
)
def test_the_drain_counts_from_the_end_of_the_load(tmp_path, phases, seconds):
    """Whatever the load is called; a profile that has none, or never lets go, drains nothing."""
    assert overview(build(tmp_path, *phases))["lag back at one lagThreshold after (s)"] == seconds


def test_a_policy_that_is_blind_to_lag_has_no_threshold(tmp_path):
    """A plain HPA's row has a lag, and no time until it is back at a threshold. An interrupted trial's has no number."""
    record = build(tmp_path, (0, "baseline"), (10, "spike"), (20, "drain"))
    record = sealed(record.folder, inputs=whole.inputs(policy=whole.hpa(2, 5)))
    found = overview(record)
    assert (found["peak lag (messages)"], found["lag back at one lagThreshold after (s)"]) == (3000, None)
    assert overview(built.record(tmp_path / "interrupted")) == dict.fromkeys(FIGURES)


def measures(record):
    """A record stands for its own numbers here: a peak, and a reaction that a trial without a spike lacks."""
    peak, reaction = record
    return {"peak": Quantity("peak", "", peak), "reaction": Quantity("reaction", "", reaction, "no spike")}


def test_the_least_difference_is_the_largest_of_any_pair():
    """In either direction; a measure that one record lacks has none, and says why."""
    found = least_differences([(10, 1.0), (20, 2.0), (30, 3.0)], [(11, 1.5), (16, 2.0), (30, 3.0)], measures)
    assert {name: one.value for name, one in found.items()} == {"peak": 4, "reaction": 0.5}
    lacking = least_differences([(10, 1.0), (20, None)], [(11, 1.5), (16, 2.0)], measures)
    assert (lacking["peak"].value, lacking["reaction"].value, lacking["reaction"].why) == (4, None, "no spike")


def test_every_figure_and_every_number_of_the_measures_is_there(tmp_path):
    """A record beside itself differs by nothing; what it has no data for has no least difference."""
    record = build(tmp_path, (0, "baseline"), (10, "spike"), (20, "drain"))
    found = least_differences([record], [record])
    assert list(found) == list(numbers(record))
    assert set(FIGURES) < set(found)
    assert {"reaction (s)", "flips", "most replicas (pods)"} <= set(found)
    assert "flips (flips)" not in found
    assert {one.value for one in found.values()} <= {0, None}
    assert found["peak lag (messages)"].value == 0


def test_every_measure_is_listed(capsys):
    """A class that no listed function computes would be in no list; each has a first sentence."""
    modules = [importlib.import_module(one.name) for one in pkgutil.walk_packages(lab.measure.__path__, "lab.measure.")]
    kinds = {one for module in modules for one in vars(module).values() if isinstance(one, type) and issubclass(one, Measure)}
    fields = {row[2] for entry in entries() for row in entry.rows}
    assert {item.name for kind in kinds for item in kind.declared().values()} <= fields
    assert main(["measures"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in listed[1:]] == [entry.name for entry in entries()]
    assert all(len(line.split()) > 1 for line in listed)


def test_one_measure_is_shown_with_its_units(capsys):
    """Its formulas, and each field with unit and name; a name that no measure has is bad input."""
    assert main(["measures", "cold_start"]) == 0
    shown = capsys.readouterr().out
    assert "medians over the pods" in shown
    assert "pods     pods  new pods that came to work\n" in shown
    assert main(["measures", "luck"]) == 2
    assert "allowed: agreement, " in capsys.readouterr().err
