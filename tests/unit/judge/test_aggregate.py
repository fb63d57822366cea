"""Several quantities as one: a missing one is never left out of it."""

import pytest

from lab.judge.aggregate import largest, median, smallest, total
from lab.judge.quantity import Quantity

THREE = [Quantity("lag", "messages", value) for value in (4, 1, 10)]
NONE = Quantity("lag of c", "messages", None, "no sample of c")


@pytest.mark.parametrize(("aggregate", "value"), [(total, 15), (largest, 10), (smallest, 1), (median, 4)])
def test_several_are_one_of_their_unit_and_name(aggregate, value):
    """Its verdict reads as that of one of them."""
    found = aggregate(THREE)
    assert (found.value, found.unit, found.name) == (value, "messages", "lag")


@pytest.mark.parametrize("aggregate", [total, largest, smallest, median])
def test_one_that_is_missing_is_no_data(aggregate):
    """Also where the others alone would decide, and where there is none at all."""
    assert (aggregate([*THREE, NONE]).value, aggregate([*THREE, NONE]).why) == (None, "no sample of c")
    assert (aggregate([]).value, aggregate([]).why) == (None, "there is no quantity to aggregate")


def test_the_size_of_a_deviation_has_no_sign():
    """It keeps name and unit, and a missing one stays missing."""
    assert abs(Quantity("off", "%", -3)).value == 3
    assert (abs(NONE).value, abs(NONE).why) == (None, "no sample of c")
