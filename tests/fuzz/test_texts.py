"""Whatever bytes a file holds, it is read, or refused in short lines, within a second: each parser of a user's file.

What is written is a committed file in which some text was cut, doubled, swapped or replaced; or a bomb of aliases, or nesting.
"""

import contextlib
import gc
import json
import signal
import sys

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lab import paths, yamlfile
from lab.audit import findings
from lab.audit.scaledobject import Facts
from lab.errors import LONGEST, InputError, Unusable
from lab.inputs import profile, scaledobject_file, workload
from tests.thoroughness import fuzz_cases

LIMIT_S = 1.0  # of processor time, so that a busy machine breaks nothing
EXAMPLES = paths.PROJECT / "docs" / "examples"
SCALEDOBJECTS = [*sorted((paths.MANIFESTS / "scaledobjects").glob("*.yaml")), EXAMPLES / "orders.yaml"]
FACTS = Facts(partitions={"": 24}, commit_s=5.0, job_s=60.0, pod_rate=10.0)


def audited(file):
    """The audit of a file; what it can't read is raised."""
    found = findings.audit({"my.yaml": yamlfile.text(file)}, FACTS)
    if found.unread:
        raise Unusable("", found.unread[0])


PARSERS = {
    "ScaledObject": (lambda file: scaledobject_file.load(file).scaled, SCALEDOBJECTS),
    "fleet": (audited, SCALEDOBJECTS),
    "profile": (profile.load, [*sorted(paths.PROFILES.glob("*.yaml")), EXAMPLES / "evening-peak.yaml"]),
    "workload": (workload.load, [EXAMPLES / "enricher.yaml"]),
}
FUZZ = settings(max_examples=fuzz_cases(), database=None, suppress_health_check=list(HealthCheck))
TOKENS = [
    ":",
    ": ",
    "- ",
    "? ",
    "---\n",
    "...\n",
    "\n",
    "\n  ",
    "\t",
    "{",
    "}",
    "[",
    "]",
    '"',
    "'",
    "#",
    "&a ",
    "*a",
    "<<: *a",
    "!!int ",
]
TOKENS += [
    "!!binary ",
    "!!set",
    "!x ",
    "|\n",
    ">-\n",
    "%YAML 9.9\n",
    "@",
    "`",
    "{{ .Values.x }}",
    "${X}",
    "<X>",
    "null",
    "~",
    "yes",
    "=",
    ",",
]
TOKENS += [
    "2026-02-30",
    "2026-02-30T25:61:00Z",
    "0001-01-01T00:00:00+23:59",
    "9999-12-31",
    "1e3",
    "1e999",
    "-.inf",
    ".nan",
    "0x",
    "0o7",
]
TOKENS += [
    "30:00",
    "1:2:3",
    "5m",
    "9" * 25,
    "9" * 5000,
    "-1",
    "007",
    "1_0",
    "é",
    "😀",
    "\u00a0",
    "\u2028",
    "\ufeff",
    "\x00",
    "\x1b[31m",
]
TOKENS += [
    '"\\ud800"',
    '"\\x00"',
    "a" * 3000,
    "kind: List\nitems:\n",
    "status: {}\n",
    "metadata: 1\n",
    "spec: []\n",
    "triggers: {}\n",
]
CODES = [*["utf-8"] * 6, "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "latin-1", "cp1252"]


class TooLong(BaseException):
    """A parser took longer than it may; no parser can catch it by mistake."""


@contextlib.contextmanager
def limited():
    """Interrupt the block after LIMIT_S of this process's own time. The garbage of the tests before it is not its own."""

    def interrupt(*_):
        raise TooLong

    gc.freeze()
    before = signal.signal(signal.SIGVTALRM, interrupt)
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
        gc.unfreeze()


def nested(draw):
    """Deep nesting, closed or not, in each of the ways to nest."""
    depth, name = draw(st.sampled_from([5, 90, 101, 2000, 30_000])), draw(st.sampled_from(["spec", "steps", "a"]))
    start, end = draw(st.sampled_from([("[", "]"), ("{a: ", "}"), ('{"a":', "}"), ("- ", ""), ("? ", ""), ("&a [", "]")]))
    return f"{name}: {start * depth}1{draw(st.sampled_from([end * depth, '']))}\n"


def bomb(draw):
    """Aliases of aliases, which stand for more and more."""
    width, length = draw(st.integers(1, 12)), draw(st.integers(1, 30))
    form = draw(st.sampled_from(["[{}]", "{{<<: [{}]}}"]))
    rows = [f"x{n}: &x{n} {form.format(', '.join([f'*x{n - 1}'] * width))}" for n in range(1, length)]
    return "\n".join(["x0: &x0 {a: 1}", *rows, draw(st.sampled_from(["spec", "steps", "kind"])) + f": *x{length - 1}\n"])


@st.composite
def files(draw, texts):
    """The bytes of one of ``texts``, changed."""
    text = draw(st.sampled_from(texts))
    for _ in range(draw(st.integers(0, 5))):
        at = draw(st.integers(0, len(text)))
        end = min(len(text), at + draw(st.integers(0, 40)))
        change = draw(
            st.sampled_from(["insert", "insert", "replace", "replace", "cut", "truncate", "double", "line", "bomb", "nest"])
        )
        if change == "insert":
            text = text[:at] + draw(st.sampled_from(TOKENS)) + text[at:]
        elif change == "replace":
            text = text[:at] + draw(st.sampled_from(TOKENS)) + text[end:]
        elif change == "cut":
            text = text[:at] + text[end:]
        elif change == "truncate":
            text = text[:at]
        elif change == "double":
            text = text[:end] + text[at:]
        elif change == "line":
            lines = text.splitlines(keepends=True) or [""]
            one, other = draw(st.integers(0, len(lines) - 1)), draw(st.integers(0, len(lines) - 1))
            lines[one], lines[other] = lines[other], lines[one].lstrip() if draw(st.booleans()) else lines[one]
            text = "".join(lines)
        else:
            text += bomb(draw) if change == "bomb" else nested(draw)
    raw = text.encode(draw(st.sampled_from(CODES)), errors="replace")
    if draw(st.integers(0, 9)) == 0:
        at = draw(st.integers(0, len(raw)))
        raw = raw[:at] + bytes(draw(st.lists(st.integers(0, 255), max_size=4))) + raw[at:]
    return raw


def texts(sources):
    """Committed files as they are, and as JSON."""
    found = [file.read_text() for file in sources]
    return [*found, *(json.dumps(content) for text in found if isinstance(content := yaml.safe_load(text), dict))]


def read(parse, file):
    """The lines with which ``file`` is refused; none where it is taken."""
    try:
        with limited():
            parse(file)
    except InputError as error:
        return str(error).split("\n")
    return []


@pytest.mark.parametrize("name", PARSERS)
def test_any_text_is_read_or_refused_in_short_lines(name, tmp_path):
    """No traceback, no line that a terminal can't show, and no waiting."""
    parse, sources = PARSERS[name]
    file, outcomes = tmp_path / "my.yaml", set()

    @FUZZ
    @given(files(texts(sources)))
    def fuzz(raw):
        file.write_bytes(raw)
        lines = read(parse, file)
        assert all(line.isprintable() and 0 < len(line) <= LONGEST for line in lines)
        outcomes.add(bool(lines))

    fuzz()
    assert outcomes == {True, False}


def test_many_errors_are_found_in_time(tmp_path):
    """The text is looked through once for all their lines."""
    rows = "".join(f"- {{at: x, rate: {n}, fase: y}}\n" for n in range(1000))
    (tmp_path / "my.yaml").write_text(f"kind: steps\nduration: 5m\nsteps:\n{rows}")
    assert len(read(profile.load, tmp_path / "my.yaml")) == 41


def test_a_parser_that_takes_too_long_is_interrupted(tmp_path, monkeypatch):
    """The limit itself, on a parser that never ends."""

    def endless(_):
        while True:
            pass

    monkeypatch.setattr(sys.modules[__name__], "LIMIT_S", 0.1)
    with pytest.raises(TooLong):
        read(endless, tmp_path)
