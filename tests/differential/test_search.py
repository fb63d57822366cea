"""The search itself, on walks that the model plays to itself: what it finds, and how it tells it."""

from dataclasses import replace

import pytest

from lab.model import hpa
from tests.differential.search import REAL, agree, draw, foreseen

CONTROLLER = hpa.Controller(downscale_stabilization_s=10)


@pytest.fixture(scope="module")
def drawn():
    """Walks."""
    return draw(80, 7)


def rounds_down(spec, state, current, observed, now, **how):
    """A model that rounds down where the controller rounds up."""
    (metric,) = spec.metrics
    observed = [value and tuple(one // metric.amount * metric.amount for one in value) for value in observed]
    return REAL(spec, state, current, observed, now, **how)


def forgets_the_window_down(spec, state, current, observed, now, **how):
    """A model without a window down."""
    if spec.behavior:
        spec = replace(spec, behavior=replace(spec.behavior, down=replace(spec.behavior.down, window_s=0)))
    return REAL(spec, state, current, observed, now, **how)


def counts_no_steps_down(spec, state, current, observed, now, **how):
    """A model whose policies up don't count the steps down of their period."""
    return REAL(spec, replace(state, downs=()), current, observed, now, **how)


def test_a_model_agrees_with_itself(drawn):
    """As many walks as were asked for, each run once, in batches of at most so many; and they ask for something."""
    batches = []

    def run(walks):
        batches.append(len(walks))
        return foreseen(walks, CONTROLLER)

    tally = agree(run, drawn, CONTROLLER, parallel=40)
    assert batches == [40, 40]
    assert (tally["walks"], tally["disagreements"], tally["edges"], tally["alternatives"]) == (80, 0, 0, 0)
    assert tally["syncs"] > 15 * 80
    assert tally["rescaled"] > 40
    assert tally["failed"] > 5


@pytest.mark.parametrize("wrong", [rounds_down, forgets_the_window_down, counts_no_steps_down])
def test_a_wrong_model_is_found_out(monkeypatch, drawn, wrong):
    """Told with what was asked for, seen and decided."""
    monkeypatch.setattr(hpa, "decide", wrong)
    with pytest.raises(AssertionError, match=r"sync \d+ at .*: real .*, model ") as failure:
        agree(lambda walks: foreseen(walks, CONTROLLER), drawn, CONTROLLER)
    for said in ('ScaledObject: {"scaleTargetRef"', " replicas at first", " s saw "):
        assert said in str(failure.value)
