"""The page of known behaviours and the tests' metadata are one; a mended behaviour is told apart from one that changed."""

from __future__ import annotations

import importlib
import re

import pytest

from lab import paths
from lab.audit.findings import RULES
from lab.measure.fault_tally import ROW, TOTALS, WORST
from tests import pages, reproduction
from tests.defects import demonstrations, object_demonstrations, page
from tests.defects.answers import ANSWERS
from tests.defects.behaviour import behaviour, judge
from tests.defects.topic import spread
from tests.unit.audit.objects import BASE

TEXTS = {"question": "Why?", "reported": "It is so.", "shown": "It is.", "cure": "None.", "price": "None."}
# The threads that issue 22 names. KEDA's own zero on error, found here, has 1850 for the report that is nearest.
ASKED = {4483, 4791, 2908, 5695, 7516, 7770, 1850, 8056, 1653, 5906, 5675, 7936, 7414, 2314, 4098, 7239, 5096, 4253, 828, 6770}


def test_the_page_is_current() -> None:
    """docs/known-behaviours.md is what the program writes now."""
    committed = (paths.PROJECT / "docs" / "known-behaviours.md").read_text(encoding="utf-8")
    if committed != page.page():
        pytest.fail(f"docs/known-behaviours.md differs from the tests: {page.COMMAND}")


def test_every_test_has_its_behaviour_and_is_named_after_its_thread() -> None:
    """No test of the package is without metadata, and a name carries the number of its first thread."""
    found = page.entries()
    marked = {(each.file, each.test.__name__) for each in found}
    for file in {each.file for each in found}:
        module = importlib.import_module(file.removesuffix(".py").replace("/", "."))
        assert {(file, name) for name in vars(module) if name.startswith("test_")} <= marked
    for each in found:
        name, thread = each.test.__name__, each.known.threads[0]
        number = re.search(r"\d+$", thread)
        assert number is None or f"_{number[0]}_" in name, f"{name} is not named after {thread}"
        assert {mark.name for mark in each.test.pytestmark} >= {"defects", "behaviour"}  # type: ignore[attr-defined]


def test_every_question_is_asked_once() -> None:
    """A question is the heading of a section, so two would share an anchor."""
    questions = [entry.known.question for entry in page.entries()]
    assert questions
    assert len({pages.anchor(one) for one in questions}) == len(questions)


def test_no_thread_is_left_out() -> None:
    """Every thread that the lab was asked about is on the page, with a test of its own or a link to an experiment."""
    every = [*(entry.known.threads for entry in page.entries()), *(answer.threads for answer in ANSWERS)]
    numbers = {int(name.rpartition("#")[2]) for names in every for name in names if "#" in name}
    assert numbers >= ASKED
    assert "KIP-1327" in {name for names in every for name in names}


def test_an_answer_elsewhere_names_a_test_that_is_there() -> None:
    """The linked file exists and has a test."""
    for answer in ANSWERS:
        assert "def test_" in (paths.PROJECT / answer.where).read_text(encoding="utf-8"), answer.where


def test_a_text_that_is_missing_is_refused() -> None:
    """A behaviour without a price, and one without a thread, are named."""
    with pytest.raises(ValueError, match=r"without price: Why\?"):
        behaviour(threads=("KIP-1",), **{**TEXTS, "price": ""})
    with pytest.raises(ValueError, match=r"without threads: Why\?"):
        behaviour(threads=(), **TEXTS)


def test_what_is_cured_is_told_from_what_is_merely_different() -> None:
    """The known passes; what users asked for is "cured upstream"; anything else is neither."""
    judge(22, known=22, cured=24)
    with pytest.raises(pytest.fail.Exception, match="cured upstream: 24 instead of 22"):
        judge(24, known=22, cured=24)
    with pytest.raises(AssertionError, match="neither the known behaviour"):
        judge(23, known=22, cured=24)


@pytest.mark.parametrize(("messages", "partitions"), [(245, 24), (240, 24), (3, 10), (0, 6)])
def test_lag_is_spread_evenly_and_whole(messages: int, partitions: int) -> None:
    """No partition has more than one message more than another, and none is lost."""
    found = spread(messages, partitions)
    assert (len(found), sum(found)) == (partitions, messages)
    assert max(found) - min(found) <= 1


def test_what_faults_did_is_on_the_page() -> None:
    """All sessions together, each component with the worst, or no data; without a session there is no word of it."""
    none = dict.fromkeys(ROW, 0)
    operator = {"component": "keda-operator", "kind": "sigkill", **none, "injections": 3, WORST: 4.25, "alone": 2, "due": 8.6}
    server = operator | {"component": "kube-apiserver", "failed": 4}
    scheduler = operator | {"component": "kube-scheduler", "decided": 8, "steps": 1, WORST: None}
    consumer = {"component": "consumer", "kind": "evict", **none, "injections": 900, WORST: 9.0, "copies": 1200}
    consumer |= {"out": 4, "in": 1}
    one = dict.fromkeys(TOTALS, 0) | {"injections": 903, "copies": 1200, "struck": [consumer, operator | {"failed": 9}]}
    found = page.faults([one, one | {"untold": 1, "struck": [operator | {WORST: 5.0}, server, scheduler]}])
    assert "1,806 [faults]" in found
    assert " 4 faults struck while it scaled out, and 1 while it scaled in." in found
    assert " 1 of the trials left no record of it.\n" in found
    rows = [line for line in found.splitlines() if line.startswith("| ") and "---" not in line]
    assert rows[1:5] == [
        "| consumer | evicted | 900 | 9.0 | 1,200 |",
        "| keda-operator | killed | 6 | 5.0 | 0 |",
        "| kube-apiserver | killed | 3 | 4.2 | 0 |",
        "| kube-scheduler | killed | 3 | no data | 0 |",
    ]
    assert rows[6:] == [
        "| keda-operator | killed | 4 | 0 of 17 | 9 | it gets no metric, and the replicas stay |",
        "| kube-apiserver | killed | 2 | 0 of 9 | 4 | it does not decide, and the replicas stay |",
        "| kube-scheduler | killed | 2 | 8 of 9 | 0 | it goes on deciding, and the replicas change once |",
    ]
    assert page.faults([]) == ""


def test_findings_are_drawn_by_a_seed_and_shown_by_the_name_of_their_rule() -> None:
    """Each at most once; what can't be shown is not reproduced."""
    drawn = [[one.finding for one in reproduction.draw({"a.yaml": BASE, "b.yaml": BASE}, 24, seed, 3)] for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    places = (demonstrations, object_demonstrations)
    assert sum(hasattr(where, one.id.replace("-", "_")) for one in RULES for where in places) == 24
    rows = [reproduction.Row("bounds", "", "", "", "", word, None, None, 0.0, "") for word in reproduction.WORDS]
    assert reproduction.tally(rows)[1:] == [["bounds", "4", *"1111"], ["all", "4", *"1111"]]
