"""The single source of panels and queries."""

import pytest

from lab.board.panels import MARKS, PANELS, filled

EXPRESSIONS = [query.expr for panel in PANELS for query in panel.queries] + [mark.expr for mark in MARKS]


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.title)
def test_every_panel_says_what_it_shows(panel):
    """A title, a unit, a sentence, and a legend for every query."""
    assert panel.title
    assert panel.unit
    assert panel.about.endswith(".")
    assert panel.queries
    assert all(query.legend for query in panel.queries)


def test_titles_are_told_apart():
    """No two panels or marks share a title."""
    titles = [item.title for item in (*PANELS, *MARKS)]
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize("expr", EXPRESSIONS)
def test_a_query_is_of_one_namespace_and_filled_whole(expr):
    """Every query names the namespace, and no variable of Grafana's is left once it is filled."""
    assert "$namespace" in expr
    done = filled(expr, "trial-x", 1)
    assert "$" not in done
    assert "trial-x" in done
    assert done.count("(") == done.count(")")


@pytest.mark.parametrize(("step", "expected"), [(1, "4s"), (3, "4s"), (10, "11s")])
def test_a_rate_spans_four_scrapes_and_a_step(step, expected):
    """As Grafana does: the larger of four scrapes, and a step with one scrape more."""
    assert filled("rate(x[$__rate_interval])", "n", step) == f"rate(x[{expected}])"


def test_a_mark_looks_at_every_second_of_a_step():
    """However wide the step, the moment is found to the second."""
    assert all(filled(mark.expr, "n", 9).endswith("[9s:1s])") for mark in MARKS)
