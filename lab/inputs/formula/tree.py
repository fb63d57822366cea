"""A formula as a tree, and how it fails. Pure data."""

from __future__ import annotations

from dataclasses import dataclass

PREDICATES = ("all", "any", "count", "none", "one", "sum")  # count and sum also without a predicate
FUNCTIONS = (*PREDICATES, "abs", "ceil", "float", "floor", "int", "len", "max", "mean", "median", "min", "round")
OTHERS = (  # functions of expr's that are not modelled
    *("filter", "map", "find", "findIndex", "findLast", "findLastIndex", "groupBy", "sortBy", "reduce", "type", "string"),
    *("trim", "trimPrefix", "trimSuffix", "upper", "lower", "split", "splitAfter", "replace", "repeat", "join", "indexOf"),
    *("lastIndexOf", "hasPrefix", "hasSuffix", "toJSON", "fromJSON", "toBase64", "fromBase64", "now", "duration", "date"),
    *("timezone", "first", "last", "get", "take", "keys", "values", "toPairs", "fromPairs", "reverse", "uniq", "concat"),
    *("flatten", "sort", "bitnot", "bitand", "bitor", "bitxor", "bitnand", "bitshl", "bitshr", "bitushr"),
)
BUILTINS = (*FUNCTIONS, *OTHERS)
MODELLED = f"numbers, triggers' names, + - * / % ** ?? ? : && || ! let, comparisons, [a, b] and {', '.join(sorted(FUNCTIONS))}"


class FormulaError(ValueError):
    """Something that expr refuses, when it compiles the formula or when it runs it."""


class NotModelled(FormulaError):
    """Something that expr may take and the model does not know."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is not modelled, only {MODELLED}")


@dataclass(frozen=True)
class Literal:
    """A number, true, false or nil."""

    value: float | int | bool | None


@dataclass(frozen=True)
class Name:
    """A trigger or a variable."""

    name: str


@dataclass(frozen=True)
class Element:
    """``#``: the element of the array that a predicate is asked about."""


@dataclass(frozen=True)
class Unary:
    """``-``, ``+`` or ``!`` before an operand."""

    operator: str
    operand: Node


@dataclass(frozen=True)
class Binary:
    """An operator between two operands; ``and``, ``or`` and ``^`` are written ``&&``, ``||`` and ``**``."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Choice:
    """``condition ? first : second``."""

    condition: Node
    first: Node
    second: Node


@dataclass(frozen=True)
class Let:
    """``let name = value; body``."""

    name: str
    value: Node
    body: Node


@dataclass(frozen=True)
class Array:
    """``[a, b]``."""

    items: tuple[Node, ...]


@dataclass(frozen=True)
class Call:
    """A function of its arguments, or of an array and a predicate."""

    name: str
    arguments: tuple[Node, ...]
    predicate: Node | None = None


Node = Literal | Name | Element | Unary | Binary | Choice | Let | Array | Call
