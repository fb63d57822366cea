"""Text to tree, with the precedences and the quirks of expr's own parser (``parser/parser.go``, ``parser/lexer``). Pure.

Left out are text, maps, indices, ranges, ``if``, sequences and the functions in :data:`~lab.inputs.formula.tree.OTHERS`.
"""

from __future__ import annotations

import re
from typing import NoReturn

from lab.inputs.formula.tree import (
    FUNCTIONS,
    OTHERS,
    PREDICATES,
    Array,
    Binary,
    Call,
    Choice,
    Element,
    FormulaError,
    Let,
    Literal,
    Name,
    Node,
    NotModelled,
    Unary,
)

MOST_TOKENS, DEEPEST = 400, 40  # so that no formula reaches Python's limit of recursion
MOST_INT = 2**63 - 1

_UNARY = {"!": 50, "-": 90, "+": 90}
_BINARY = {"||": 10, "&&": 15, "==": 20, "!=": 20, "<": 20, ">": 20, ">=": 20, "<=": 20, "+": 30, "-": 30}
_BINARY |= {"*": 60, "/": 60, "%": 60, "**": 100, "??": 500}
_COMPARISONS = ("<", ">", ">=", "<=")
_WORDS = {"not": "!", "and": "&&", "or": "||", "let": "let"}
_FOREIGN = ("in", "matches", "contains", "startsWith", "endsWith", "if", "else")  # operators too, of text and the like
_TOKEN = re.compile(
    r"(?P<space>\s+|//[^\n]*\n?|/\*.*?\*/)"
    r"|(?P<number>(?:\d[\d_]*(?:\.(?!\.)[\d_]*)?|\.\d[\d_]*)(?:[eE][+-]?[\d_]*)?)"
    r"|(?P<name>[A-Za-z_$][A-Za-z0-9_$]*)"
    r"|(?P<operator>\?\?|\?\.|\?|\|\||::|\.\.|[&!=*<>][&=*]|##|[-+/%^,;:|&!=*<>.#(){}\[\]])",
    re.DOTALL | re.ASCII,
)


def parse(text: str, triggers: frozenset[str]) -> Node:
    """The tree of ``text``, in which the names of ``triggers`` are no functions. Raises :class:`FormulaError`."""
    parser = _Parser(_tokens(text), triggers)
    node = parser.expression(0)
    parser.end()
    return node


def _tokens(text: str) -> list[tuple[str, str]]:
    """The tokens, (kind, text) each."""
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise NotModelled(f"the character {text[at]!r}")
        kind, word = str(match.lastgroup), match[0]
        at = match.end()
        if kind == "number" and re.match(r"[\w$]", text[at : at + 1]):
            raise NotModelled(f"the number {word}{text[at]}")
        if kind == "space":
            continue
        if kind == "name" and found and found[-1][1] == "#" and text[match.start() - 1] == "#":
            raise NotModelled(f"#{word}")
        if word in _WORDS:
            kind, word = "operator", _WORDS[word]
        found.append((kind, word))
        if len(found) > MOST_TOKENS:
            raise NotModelled(f"a formula of more than {MOST_TOKENS} words and signs")
    return found


class _Parser:
    def __init__(self, tokens: list[tuple[str, str]], triggers: frozenset[str]) -> None:
        self._tokens, self._triggers = tokens, triggers
        self._at = self._depth = self._predicates = 0

    @property
    def _now(self) -> tuple[str, str]:
        return self._tokens[self._at] if self._at < len(self._tokens) else ("end", "")

    def _is(self, *words: str) -> bool:
        kind, word = self._now
        return kind == "operator" and word in words

    def _take(self, *words: str) -> bool:
        """Whether the token is one of ``words``; it is passed then."""
        found = self._is(*words)
        self._at += found
        return found

    def _expect(self, word: str) -> None:
        if not self._take(word):
            self._unexpected(f", where {word} is wanted")

    def _unexpected(self, wanted: str = "") -> NoReturn:
        kind, word = self._now
        if word in (".", "?.", "[", "..", "::", "|", ";", "{") or (kind == "name" and word in _FOREIGN):
            raise NotModelled(repr(word))
        raise FormulaError(f"{f'{word!r} is not expected' if kind != 'end' else 'it ends too early'}{wanted}")

    def end(self) -> None:
        """Refuse what is left."""
        if self._now[0] != "end":
            self._unexpected()

    def expression(self, precedence: int) -> Node:
        """``parseExpression``: operators of this precedence and above."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise NotModelled(f"what is nested more than {DEEPEST} deep")
        node = self._let() if precedence == 0 and self._take("let") else self._operators(precedence)
        self._depth -= 1
        return node

    def _operators(self, precedence: int) -> Node:
        left, previous = self._primary(), ""
        while self._now[0] == "operator":
            word = "**" if self._now[1] == "^" else self._now[1]
            of = _BINARY.get(word, -1)
            if of < precedence:
                break
            if previous == "??" and word != "??":
                raise FormulaError(f"?? and {word} can't be mixed: put parentheses around either")
            self._at += 1
            if word in _COMPARISONS:
                left = self._comparison(left, word, of)
            else:
                left = Binary(word, left, self.expression(of if word == "**" else of + 1))
            previous = word
        while precedence == 0 and self._take("?"):
            if self._is(":"):
                raise NotModelled("?:")
            first = self.expression(0)
            self._expect(":")
            left = Choice(left, first, self.expression(0))
        return left

    def _comparison(self, left: Node, word: str, precedence: int) -> Node:
        """``1 < a < 3``, which is ``1 < a && a < 3``."""
        found: Node | None = None
        while True:
            right = self.expression(precedence + 1)
            one = Binary(word, left, right)
            found = one if found is None else Binary("&&", found, one)
            left, word = right, self._now[1]
            if not self._take(*_COMPARISONS):
                return found
            if not isinstance(left, Literal | Name | Element):  # it is there twice, and what is in it too
                raise NotModelled("what is between two comparisons, other than a name or a number,")

    def _let(self) -> Node:
        kind, name = self._now
        if kind != "name" or name in _FOREIGN:
            self._unexpected(", where a name is wanted")
        self._at += 1
        self._expect("=")
        value = self.expression(0)
        self._expect(";")
        return Let(name, value, self.expression(0))

    def _primary(self) -> Node:
        for word, precedence in _UNARY.items():
            if self._take(word):
                return self._whole(Unary(word, self.expression(precedence)))
        if self._take("("):
            node = self.expression(0)
            self._expect(")")
            return self._whole(node)
        if self._predicates and self._take("#"):
            return self._whole(Element())
        if self._take("["):
            return self._whole(Array(self._list("]")))
        kind, word = self._now
        if kind == "number":
            self._at += 1
            return Literal(_number(word))
        if kind != "name" or word in _FOREIGN:
            self._unexpected()
        self._at += 1
        if word in ("true", "false", "nil"):
            return Literal({"true": True, "false": False, "nil": None}[word])
        return self._whole(self._call(word) if self._take("(") else Name(word))

    def _whole(self, node: Node) -> Node:
        """``node``, after which no index and no field may come."""
        if self._is(".", "?.", "["):
            self._unexpected()
        return node

    def _call(self, name: str) -> Node:
        if name in self._triggers:
            raise FormulaError(f"{name} is a trigger and no function")
        if name in OTHERS:
            raise NotModelled(name)
        if name not in FUNCTIONS:
            hint = " (mean is)" if name in ("avg", "average") else ""
            raise FormulaError(f"{name} is no function of expr{hint}")
        if name not in PREDICATES:
            return Call(name, self._list(")"))
        array, predicate = self.expression(0), None
        if not self._is(")") or name not in ("count", "sum"):
            self._expect(",")
            predicate = self._predicate()
        self._take(",")
        self._expect(")")
        return Call(name, (array,), predicate)

    def _predicate(self) -> Node:
        braces = self._take("{")
        self._predicates += 1
        node = self.expression(0)
        self._predicates -= 1
        if braces:
            self._expect("}")
        return node

    def _list(self, end: str) -> tuple[Node, ...]:
        """Expressions up to the bracket ``end``; a comma may stand before it."""
        found: list[Node] = []
        while not self._take(end):
            if found:
                self._expect(",")
                if self._take(end):
                    break
            found.append(self.expression(0))
        return tuple(found)


def _number(word: str) -> float | int:
    text = word.replace("_", "")
    try:
        value = float(text) if re.search(r"[.eE]", text) else int(text)
    except ValueError:
        raise FormulaError(f"{word} is no number") from None
    if (value > MOST_INT and isinstance(value, int)) or value == float("inf"):
        raise FormulaError(f"{word} is too large a number")
    return value
