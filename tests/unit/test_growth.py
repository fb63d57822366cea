"""Growth of a cost with a size: its exponent, and the tables of the numbers that are kept."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import growth
from benchmarks.growth import Growth, Part

PART = Part("pods", "A step from 0.", "2026-11-23", "2 cores", (Growth("until Ready", "s", {10: 1.0, 100: 10.0}),))


@given(power=st.floats(-1, 3), factor=st.floats(0.01, 100))
def test_the_exponent_of_a_power_law_is_its_power(power, factor):
    """Whatever the factor and the sizes are, over all of them and between the last two."""
    cost = Growth("a power law", "s", {size: factor * size**power for size in (10, 50, 100, 200)})
    assert (cost.exponent(), cost.last()) == (pytest.approx(power, abs=1e-6), pytest.approx(power, abs=1e-6))


@pytest.mark.parametrize("values", [{10: 1.0}, {10: 0.0, 20: 1.0}, {}])
def test_too_little_has_no_exponent(values):
    """One size, or a cost too small to be seen. A knee's last step is of the two largest sizes, not of all."""
    cost = Growth("too little", "s", values)
    assert (cost.exponent(), cost.last()) == (None, None)
    knee = Growth("a knee", "s", {100: 20.0, 10: 10.0, 1: 10.0})
    assert knee.last() == pytest.approx(0.301, abs=1e-3)
    assert 0 < knee.exponent() < 0.301


def test_a_part_measured_again_takes_the_place_of_the_first(tmp_path):
    """The other parts stay, and all are read back as they were. In a table a cost that was not measured at a size is a dash."""
    file = tmp_path / "growth.json"
    other, again = replace(PART, of="messages"), replace(PART, date="2026-11-24")
    assert growth.read(file) == []
    for one in (PART, other, again):
        growth.keep(one, file)
    assert growth.read(file) == [other, again]
    more = Growth("memory", "MB", {100: 1234.5})
    same = Growth("an answer", "ms", {10: 2.0, 100: 1.999})
    shown = growth.tables([replace(PART, costs=(*PART.costs, more, same))])
    assert shown.startswith("## Pods\n")
    assert "| an answer, ms | 2 | 2 | 0.00 | 0.00 |" in shown
    assert "| cost | 10 | 100 | exponent | last step |" in shown
    assert "| until Ready, s | 1 | 10 | 1.00 | 1.00 |" in shown
    assert "| memory, MB | - | 1,234 | - | - |" in shown
