"""What the live board draws, from made-up series."""

import pytest

from lab.board import figures
from lab.board.panels import MARKS, PANELS, Panel, Query, filled
from lab.board.source import MARGIN_S, SHORTEST_S, Series, Window, window

SPIKE, DECIDED, READY = MARKS
SHOWN = Window("trial-a", 1000, 1060, 1)
QUERY = Query("up", "x")


def drawn(values, t=None, moments=None, **how):
    """A figure of one series."""
    panel = Panel("Title", "messages", "About.", (QUERY,), **how)
    series = Series("x", QUERY, t or [1000.0 + at for at in range(len(values))], values)
    return figures.figure(panel, [series], moments or {}, SHOWN)


def test_a_series_is_drawn_at_its_times():
    """One trace, times in milliseconds of local time, values untouched."""
    (trace,) = drawn([1.0, None, 3.0])["data"]
    assert trace["y"] == [1.0, None, 3.0]
    assert trace["x"] == [figures.clock(1000 + at) for at in range(3)]


def test_no_line_is_drawn_over_missing_samples():
    """Where Prometheus had nothing there is a gap, and a lone point between gaps is a dot."""
    (trace,) = drawn([1.0, 2.0, 3.0], t=[1000.0, 1010.0, 1011.0])["data"]
    assert trace["y"] == [1.0, None, 2.0, 3.0]
    assert "markers" in trace["mode"]


def test_stacked_series_add_up():
    """They share a stack and keep their own times, so that a pod that is gone counts nothing."""
    (trace,) = drawn([1.0, 2.0], t=[1000.0, 1010.0], stacked=True)["data"]
    assert trace["stackgroup"]
    assert trace["y"] == [1.0, 2.0]


def test_many_series_are_in_their_natural_order():
    """Partition 2 comes before partition 10, and none is in a legend."""
    panel = Panel("Title", "messages", "About.", (QUERY,), many=True)
    series = [Series(f"partition {number}", QUERY, [1000.0], [1.0]) for number in (10, 2, 1)]
    found = figures.figure(panel, series, {}, SHOWN)["data"]
    assert [trace["name"] for trace in found] == ["partition 1", "partition 2", "partition 10"]
    assert not any(trace["showlegend"] for trace in found)


def test_a_panel_without_data_says_so():
    """An empty graph is told from one that waits."""
    panel = Panel("Title", "messages", "About.", (QUERY,))
    (note,) = figures.figure(panel, [], {}, SHOWN)["layout"]["annotations"]
    assert note["text"] == "no data"


def test_every_moment_is_a_line_of_its_colour():
    """Each at its own time, over the whole height."""
    lines = drawn([1.0], moments={SPIKE: [1005.0], DECIDED: [1006.0, 1007.0]})["layout"]["shapes"]
    assert [(line["x0"], line["line"]["color"]) for line in lines] == [
        (figures.clock(1005), SPIKE.colour),
        (figures.clock(1006), DECIDED.colour),
        (figures.clock(1007), DECIDED.colour),
    ]


def test_a_reaction_is_told_from_the_last_spike():
    """The spike by the clock, the others by how long after it; what came before it is not an answer to it."""
    said = dict(figures.reaction({SPIKE: [900.0, 1005.0], DECIDED: [901.0, 1006.0, 1007.0], READY: []}))
    assert said[SPIKE].count(":") == 2
    assert said[DECIDED] == "+1 s"
    assert said[READY] == "not yet"


def test_a_decision_may_be_seen_a_scrape_before_its_spike():
    """Two metrics are scraped up to a second apart: that is not a decision of before."""
    assert dict(figures.reaction({SPIKE: [1005.0], DECIDED: [1004.0, 1020.0]}))[DECIDED] == "+0 s"


def test_without_a_spike_there_is_no_reaction():
    """Every moment is still to come."""
    assert {text for _, text in figures.reaction({mark: [] for mark in MARKS})} == {"not yet"}


def test_the_newest_trial_is_followed():
    """Without a name the window is that of the trial with the newest sample, up to now while it runs."""
    shown = window({"trial-old": (0, 500), "trial-new": (400, 1000)}, 5, None, 1001)
    assert (shown.namespace, shown.end, shown.step) == ("trial-new", 1001, 1)
    assert shown.start == 1001 - 300


def test_a_trial_that_is_over_stays_in_view():
    """Its window ends with its last sample, however long ago, and begins no earlier than the trial."""
    shown = window({"trial-a": (1000, 1100)}, 5, None, 9000)
    assert shown.end == 1100 + MARGIN_S
    assert 1000 - 2 * MARGIN_S <= shown.start <= 1000


def test_a_trial_that_just_began_has_room():
    """A few seconds are not stretched over the whole width."""
    shown = window({"trial-a": (1000, 1002)}, 5, None, 1002)
    assert shown.end - shown.start == SHORTEST_S


def test_no_trial_is_no_window():
    """Unless a namespace was named: that one may be about to begin."""
    assert window({}, 5, None, 1000) is None
    assert window({}, 5, "trial-a", 1000).namespace == "trial-a"


@pytest.mark.parametrize("seconds", [60, 3600, 43200])
def test_a_long_window_has_wider_steps(seconds):
    """Never more points than the graph has pixels for, on whole steps."""
    shown = Window.until("trial-a", 100_000, seconds)
    assert (shown.end - shown.start) / shown.step <= 600
    assert shown.start % shown.step == shown.end % shown.step == 0


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
