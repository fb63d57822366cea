"""A query of Prometheus as a tree: sums, comparisons with a number, ``or vector(N)`` and ``rate`` over one metric. Pure.

It is the part of PromQL in which people write a group's lag. Everything else raises :class:`QueryError` with its name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

DEEPEST = 20  # parentheses within each other
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


class QueryError(ValueError):
    """What is not modelled, or no PromQL."""


@dataclass(frozen=True)
class Matcher:
    """``label operator "value"``; the operator is =, !=, =~ or !~, and a regular expression matches the whole value."""

    label: str
    operator: str
    value: str

    def matches(self, value: str) -> bool:
        """Whether a series whose label has ``value`` is selected; "" is a label that is not there."""
        if self.operator in ("=", "!="):
            return (value == self.value) is (self.operator == "=")
        return (re.fullmatch(self.value, value) is not None) is (self.operator == "=~")


@dataclass(frozen=True)
class Selector:
    """The series of ``metric`` that all ``matchers`` select; of their ``rate`` over so many seconds, if it is not 0."""

    metric: str
    matchers: tuple[Matcher, ...] = ()
    rate_s: float = 0.0


@dataclass(frozen=True)
class Sum:
    """``sum by (labels) (of)``, or ``without``."""

    of: Query
    labels: frozenset[str] = frozenset()
    without: bool = False


@dataclass(frozen=True)
class Where:
    """``of > bound``: only the elements for which that holds."""

    of: Query
    operator: str
    bound: float


@dataclass(frozen=True)
class Or:
    """``of or vector(value)``; with ``on()`` any element of ``of`` is enough, whatever its labels."""

    of: Query
    value: float
    any_labels: bool = False


Query = Selector | Sum | Where | Or

_TOKEN = re.compile(
    r"""(?P<space>\s+|\#[^\n]*)
    |(?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`[^`]*`)
    |(?P<duration>(?:\d+(?:ms|[smhdwy]))+(?!\w))
    |(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?!\w))
    |(?P<name>[A-Za-z_:][A-Za-z0-9_:]*)
    |(?P<sign>=~|!~|!=|==|>=|<=|[-=<>+*/%^(){}\[\],@:])""",
    re.VERBOSE | re.ASCII,
)
_COMPARISONS = (">", "<", ">=", "<=", "==", "!=")


def parse(text: str) -> Query:
    """The tree of ``text``. Raises :class:`QueryError`."""
    parser = _Parser(_tokens(text))
    found = parser.query()
    parser.end()
    return found


def _tokens(text: str) -> list[tuple[str, str]]:
    found, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise QueryError(f"{text[at]!r} is no PromQL here")
        at = match.end()
        if match.lastgroup != "space":
            found.append((str(match.lastgroup), match[0]))
    return found


class _Parser:
    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self._tokens = tokens
        self._at = self._depth = 0

    @property
    def _word(self) -> str:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else ""

    def _take(self, *words: str) -> str:
        """The token, if it is one of ``words``; it is passed then."""
        word = self._word
        if word not in words or not word:
            return ""
        self._at += 1
        return word

    def _expect(self, word: str) -> None:
        if not self._take(word):
            self._unknown(f", where {word} is wanted")

    def _of_kind(self, kind: str, wanted: str) -> str:
        if self._at >= len(self._tokens) or self._tokens[self._at][0] != kind:
            self._unknown(f", where {wanted} is wanted")
        self._at += 1
        return self._tokens[self._at - 1][1]

    def _unknown(self, wanted: str = "") -> NoReturn:
        word = " ".join(self._word.split()) or "its end"
        raise QueryError(f"{word} is not modelled{wanted}")

    def end(self) -> None:
        """Refuse what is left."""
        if self._word:
            self._unknown()

    def query(self) -> Query:
        """Operands of ``or``, which binds least."""
        found = self._compared()
        while self._take("or"):
            on = bool(self._take("on"))
            if on:
                self._expect("(")
                self._expect(")")
            inner = self._take("(")
            self._expect("vector")
            self._expect("(")
            found = Or(found, self._number(), on)
            self._expect(")")
            if inner:
                self._expect(")")
        return found

    def _compared(self) -> Query:
        found = self._operand()
        while operator := self._take(*_COMPARISONS):
            found = Where(found, operator, self._number())
        return found

    def _operand(self) -> Query:
        self._depth += 1
        if self._depth > DEEPEST:
            raise QueryError(f"what is nested more than {DEEPEST} deep is not modelled")
        found = self._inner()
        self._depth -= 1
        return found

    def _inner(self) -> Query:
        if self._take("("):
            found = self.query()
            self._expect(")")
            return found
        if self._take("sum"):
            return self._sum()
        if self._take("rate"):
            self._expect("(")
            selector = self._selector()
            self._expect("[")
            window = self._of_kind("duration", "a duration such as 5m")
            self._expect("]")
            self._expect(")")
            return Selector(selector.metric, selector.matchers, _seconds(window))
        return self._selector()

    def _sum(self) -> Sum:
        before = self._labels()
        self._expect("(")
        of = self.query()
        self._expect(")")
        labels, without = before or self._labels() or (frozenset(), False)
        return Sum(of, labels, without)

    def _labels(self) -> tuple[frozenset[str], bool] | None:
        word = self._take("by", "without")
        if not word:
            return None
        self._expect("(")
        found = set()
        while not self._take(")"):
            found.add(self._of_kind("name", "a label"))
            if not self._take(","):
                self._expect(")")
                break
        return frozenset(found), word == "without"

    def _selector(self) -> Selector:
        metric = self._of_kind("name", "a metric")
        if self._word == "(":
            raise QueryError(f"{metric}() is not modelled")
        matchers = []
        if self._take("{"):
            while not self._take("}"):
                matchers.append(self._matcher())
                if not self._take(","):
                    self._expect("}")
                    break
        return Selector(metric, tuple(matchers))

    def _matcher(self) -> Matcher:
        label = self._of_kind("name", "a label")
        operator = self._take("=", "!=", "=~", "!~") or self._unknown(", where =, !=, =~ or !~ is wanted")
        quoted = self._of_kind("text", "a value in quotes")
        value = quoted[1:-1] if quoted[0] == "`" else re.sub(r"\\(.)", r"\1", quoted[1:-1])
        if operator in ("=~", "!~"):
            try:
                re.compile(value)
            except (re.error, OverflowError, RecursionError):
                raise QueryError(f"{value!r} is no regular expression") from None
        return Matcher(label, operator, value)

    def _number(self) -> float:
        sign = -1.0 if self._take("-") else 1.0
        return sign * float(self._of_kind("number", "a number"))


def _seconds(duration: str) -> float:
    parts = re.findall(r"(\d+)(ms|[smhdwy])", duration)
    if not all(unit in UNITS for _, unit in parts) or not any(int(count) for count, _ in parts):
        raise QueryError(f"a rate over {duration} is not modelled, only ms, s, m, h and d")
    return sum(int(count) * UNITS[unit] for count, unit in parts)
