"""What a session keeps of a test before it runs: its names in words, as Allure shows them, and what it asks."""

from __future__ import annotations

import inspect
from typing import Any

from lab.report.session import Case

LABEL = "allure_label"  # Allure's mark, by which a test is named in words
KNOWN = "known"  # the label of a test that shows what is known of another project: a folder of docs/upstream, or a name
ID = "test"  # the label by which the page finds a test's evidence in Allure's report


def case_of(item: Any, experiment: str) -> Case:
    """The case of pytest's ``item``, which belongs to ``experiment``.

    Its title is its story, or the first line of its docstring. Its note is its module's docstring.
    """
    labels = {mark.kwargs.get("label_type"): str(mark.args[0]) for mark in item.iter_markers(LABEL) if mark.args}
    title = labels.get("story") or inspect.cleandoc(getattr(item.obj, "__doc__", None) or "").partition("\n")[0]
    callspec = getattr(item, "callspec", None)
    case = f" ({callspec.id})" if callspec is not None else ""
    note = inspect.cleandoc(getattr(item.module, "__doc__", None) or "")
    known = [str(mark.args[0]) for mark in item.iter_markers(LABEL) if mark.kwargs.get("label_type") == KNOWN and mark.args]
    return Case(item.nodeid, experiment, labels.get("feature", ""), f"{title}{case}" if title else "", note, known)
