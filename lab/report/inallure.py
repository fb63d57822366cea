"""What Allure shows of a test: its name and its description in words, and the labels by which its categories find it.

The description begins with the answer, its chart and the whole table of verdicts. Then come the question, the hypothesis, the
method and what is asserted.
"""

from __future__ import annotations

import re
from dataclasses import asdict

import allure
from markupsafe import Markup

from lab.report import answers
from lab.report.pictures import image
from lab.report.session import BROKEN, FAILED, PASSED, Case
from lab.report.tables import MARKS, Table, render, source

VERDICT = "verdict"  # the label
DOCS = "docs/"
ADAPTED = re.compile(r"<style>.*?</style>", re.DOTALL)  # to the reader's scheme, which is not the one of Allure's own switch


def begin(test: Case) -> None:
    """Name the running Allure test, and describe what it asks: that is all there is of one which never ends."""
    allure.dynamic.title(answers.title(asdict(test)))
    allure.dynamic.description_html(description(test))
    for one in test.known:
        if one.startswith(DOCS):  # from the report in the results of a checkout
            allure.dynamic.link(f"../../{one}/README.md", name=one)


def end(test: Case) -> None:
    """Describe what the running Allure test found, and label it with the word for that."""
    allure.dynamic.description_html(description(test))
    allure.dynamic.label(VERDICT, answers.answer_of(asdict(test)).word if test.rows or test.outcome != PASSED else PASSED)


def description(test: Case) -> str:
    """The description of a ``test`` as HTML with its own style."""
    content = asdict(test)
    found = answers.answer_of(content) if test.rows or test.outcome in (FAILED, BROKEN) else None
    led = [found.led] if found and found.led else []
    paragraphs = [part for part in re.split(r"\n\s*\n", test.note.strip()) if part] + test.explained
    return render(
        "description.html",
        answer=found,
        rows=[*led, *(found.rows if found else [])],
        picture=Markup(image(ADAPTED.sub("", test.picture), test.alt)),
        paragraphs=paragraphs,
        tables=[Table.of(one) for one in test.tables],
        marks=MARKS,
        source=source,
        w=answers,
    )
