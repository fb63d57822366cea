"""What expr refuses when it compiles a formula: the static kinds of its parts (``checker/checker.go``). Pure.

A trigger is a float. Where a part may be of two kinds expr knows none (``any``), and lets it be used as any.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lab.errors import closest
from lab.inputs.formula.tree import (
    BUILTINS,
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

MOST_EXPONENT = 9  # a whole power is a product; any other is left to each language's own library


@dataclass(frozen=True)
class Kind:
    """``name`` of float, int, bool, nil, any or array; ``element`` of an array's elements."""

    name: str
    element: Kind | None = None

    def __str__(self) -> str:
        return self.name

    @property
    def number(self) -> bool:
        """Whether it is a number for sure."""
        return self.name in ("float", "int")


FLOAT, INT, BOOL, NIL, ANY = (Kind(name) for name in ("float", "int", "bool", "nil", "any"))
Kinds = Mapping[str, Kind]


def kind_of(node: Node, names: Kinds, element: Kind | None = None) -> Kind:
    """The kind of ``node``, with the kinds of its ``names``, and of ``#`` in a predicate. Raises :class:`FormulaError`."""
    match node:
        case Literal(value):
            return NIL if value is None else {bool: BOOL, int: INT, float: FLOAT}[type(value)]
        case Name(name):
            return _named(name, names)
        case Element():
            assert element is not None, "the parser takes # in a predicate only"
            return element
        case Unary(operator, operand):
            return _unary(operator, kind_of(operand, names, element))
        case Binary(operator, left, right):
            if operator == "**" and not (isinstance(right, Literal) and right.value in range(MOST_EXPONENT + 1)):
                raise NotModelled(f"an exponent other than a whole number from 0 to {MOST_EXPONENT}")
            if operator == "%" and isinstance(left, Literal) and isinstance(right, Literal) and right.value == 0:
                raise FormulaError("% by zero")  # expr computes what is constant when it compiles
            return _binary(operator, kind_of(left, names, element), kind_of(right, names, element))
        case Choice(condition, first, second):
            asked = kind_of(condition, names, element)
            if asked not in (BOOL, ANY):
                raise FormulaError(f"? needs a comparison before it, not {asked}")
            return _either(kind_of(first, names, element), kind_of(second, names, element))
        case Let(name, value, body):
            if name in names or name in BUILTINS:
                raise FormulaError(f"{name} can't be declared again")
            return kind_of(body, {**names, name: kind_of(value, names, element)}, element)
        case Array(items):
            found = [kind_of(item, names, element) for item in items]
            same = found and all(one.name == found[0].name for one in found)
            return Kind("array", found[-1] if same else ANY)
        case Call():
            return _call(node, names, element)


def _named(name: str, names: Kinds) -> Kind:
    if name == "$env" or (name in BUILTINS and name not in names):
        raise NotModelled(name)
    if name not in names:
        known = ", ".join(sorted(names)) or "none, as none has a name"
        parted, meant = next((one for one in sorted(names) if "-" in one), ""), closest(name, names)
        hint = f" (did you mean {meant}?)" if meant else ""
        hint = f" ({parted} is {parted.replace('-', ' minus ')} there)" if parted else hint
        raise FormulaError(f"{name} is no trigger's name; the triggers that may be named are {known}{hint}")
    return names[name]


def _unary(operator: str, of: Kind) -> Kind:
    if operator == "!":
        if of in (BOOL, ANY):
            return BOOL
    elif of.number or of == ANY:
        return of
    raise FormulaError(f"{operator} can't be used on {of}")


def _binary(operator: str, left: Kind, right: Kind) -> Kind:
    both = left.number and right.number
    maybe = (left == ANY or left.number) and (right == ANY or right.number)
    match operator:
        case "==" | "!=" if "array" in (left.name, right.name):
            raise NotModelled(f"{operator} of arrays")
        case "==" | "!=" if both or left == right or {ANY, NIL} & {left, right}:
            return BOOL
        case "&&" | "||" if {left, right} <= {BOOL, ANY}:
            return BOOL
        case "<" | ">" | "<=" | ">=" if maybe:
            return BOOL
        case "/" | "**" if maybe:
            return FLOAT
        case "+" | "-" | "*" if maybe:
            return ANY if not both else INT if left == right == INT else FLOAT
        case "%" if {left, right} <= {INT, ANY}:
            return INT
        case "??":
            if NIL in (left, right):
                return right if left == NIL else left
            return left if left == right else ANY
    raise FormulaError(f"{operator} can't be used on {left} and {right}")


def _either(first: Kind, second: Kind) -> Kind:
    if NIL in (first, second):
        return second if first == NIL else first
    if first.name == second.name == "array":
        return first if first == second else Kind("array", ANY)
    return first if first == second else ANY


def _call(call: Call, names: Kinds, element: Kind | None) -> Kind:
    found = [kind_of(argument, names, element) for argument in call.arguments]
    if call.name in ("max", "min", "mean", "median"):
        if not found:
            raise FormulaError(f"{call.name} needs an argument")
        for one in found:
            if one == ANY or one.name == "array":
                return ANY
            if not one.number:
                raise FormulaError(f"{call.name} can't be used on {one}")
        return found[0]
    if len(found) != 1:
        raise FormulaError(f"{call.name} takes one argument, not {len(found)}")
    (of,) = found
    match call.name:
        case "len" if of == ANY or of.name == "array":
            return INT
        case "abs" if of == ANY or of.number:
            return of
        case "ceil" | "floor" | "round" | "float" if of == ANY or of.number:
            return FLOAT
        case "int" if of == ANY or of.number:
            return INT
        case "sum" | "count" | "all" | "any" | "none" | "one" if of == ANY or of.name == "array":
            inner = ANY if of == ANY or of.element is None else of.element
            asked = inner if call.predicate is None else kind_of(call.predicate, names, inner)
            if call.name == "sum":
                return asked
            if call.predicate is not None and asked not in (BOOL, ANY):
                raise FormulaError(f"the predicate of {call.name} is {asked}, no comparison")
            return INT if call.name == "count" else BOOL
    raise FormulaError(f"{call.name} can't be used on {of}")
