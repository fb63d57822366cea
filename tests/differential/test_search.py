"""The search itself, on walks that the model plays to itself: what it finds, and how it tells it."""

from dataclasses import replace

import pytest

from lab.model import hpa
from tests.differential.foresight import play
from tests.differential.search import agree, draw

CONTROLLER = hpa.Controller(downscale_stabilization_s=10)
REAL = hpa.decide


def played(walks):
    """The syncs of ``walks`` on a cluster that decides as the model does."""
    return play(walks, CONTROLLER)


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


def test_a_model_agrees_with_itself():
    """As many walks as were asked for, each run once, in batches of at most so many; and they ask for something."""
    batches = []

    def run(walks):
        batches.append(len(walks))
        return played(walks)

    tally = agree(run, draw(100, 7), CONTROLLER, parallel=40)
    assert batches == [40, 40, 20]
    assert (tally.walks, tally.disagreements, tally.edges, tally.alternatives) == (100, 0, 0, 0)
    assert tally.syncs > 1500
    assert tally.rescaled > 50
    assert tally.failed > 20


@pytest.mark.parametrize("wrong", [rounds_down, forgets_the_window_down, counts_no_steps_down])
def test_a_wrong_model_is_found_out(monkeypatch, wrong):
    """Told with what was asked for, seen and decided."""
    chosen = draw(80, 7)
    monkeypatch.setattr(hpa, "decide", wrong)
    with pytest.raises(AssertionError, match=r"sync \d+ at .*: real .*, model ") as failure:
        agree(played, chosen, CONTROLLER)
    for said in ('ScaledObject: {"scaleTargetRef"', " replicas at first", " s saw "):
        assert said in str(failure.value)
