"""A/A noise: the least difference of each measure, from the sides of A/A duets."""

import pytest

from lab.judge.quantity import Quantity
from lab.measure.noise import least_differences
from lab.measure.overview import FIGURES, numbers

from .test_overview import build


def measures(record):
    """A record stands for its own numbers here: a peak, and a reaction that a trial without a spike lacks."""
    peak, reaction = record
    return {"peak": Quantity("peak", "", peak), "reaction": Quantity("reaction", "", reaction, "no spike")}


def test_the_least_difference_is_the_largest_of_any_pair():
    """In either direction; the pairs keep their order."""
    found = least_differences([(10, 1.0), (20, 2.0), (30, 3.0)], [(11, 1.5), (16, 2.0), (30, 3.0)], measures)
    assert {name: one.value for name, one in found.items()} == {"peak": 4, "reaction": 0.5}
    assert found["peak"].name == "least difference that can be told (A/A, n = 3)"


def test_a_measure_that_one_record_lacks_has_none():
    """And which pair it was."""
    found = least_differences([(10, 1.0), (20, None)], [(11, 1.5), (16, 2.0)], measures)
    assert (found["peak"].value, found["reaction"].value) == (4, None)
    assert found["reaction"].why == "no spike"


def test_sides_that_are_no_pairs_are_refused():
    """A side has as many runs as the other."""
    with pytest.raises(ValueError, match="are no pairs"):
        least_differences([(1, 1.0)], [], measures)


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
