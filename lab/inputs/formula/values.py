"""What expr computes when it runs a formula (``vm/vm.go``, ``vm/runtime``, ``builtin/lib.go``), on amd64. Pure.

An int has 64 bits and wraps, ``/`` gives a float whatever it divides, and a division by zero is no error but infinity or NaN.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lab.inputs.formula.tree import (
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

Value = Any  # float, int, bool, None, or a list of them
LEAST_INT = -(2**63)


def value_of(node: Node, names: Mapping[str, Value], element: Value = None) -> Value:
    """The value of ``node``. Raises :class:`FormulaError` where expr fails."""
    match node:
        case Literal(value):
            return value
        case Name(name):
            return names[name]
        case Element():
            return element
        case Unary("!", operand):
            return not _truth(value_of(operand, names, element))
        case Unary("-", operand):
            return _whole(-_number(value_of(operand, names, element), "-"))
        case Unary(_, operand):
            return value_of(operand, names, element)
        case Binary(operator, left, right):
            return _binary(operator, left, right, names, element)
        case Choice(condition, first, second):
            return value_of(first if _truth(value_of(condition, names, element)) else second, names, element)
        case Let(name, value, body):
            return value_of(body, {**names, name: value_of(value, names, element)}, element)
        case Array(items):
            return [value_of(item, names, element) for item in items]
        case Call():
            return _call(node, names, element)


def truncated(value: float) -> int:
    """``int64(value)``: towards zero, and the least int for what none can hold."""
    return int(value) if math.isfinite(value) and LEAST_INT <= value < -LEAST_INT else LEAST_INT


def _whole(value: float) -> float:
    return (value - LEAST_INT) % 2**64 + LEAST_INT if isinstance(value, int) else value


def _number(value: Value, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise FormulaError(f"{what} of {_shown(value)}")
    return value


def _truth(value: Value) -> bool:
    if not isinstance(value, bool):
        raise FormulaError(f"{_shown(value)} where true or false is wanted")
    return value


def _shown(value: Value) -> str:
    return "nil" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _binary(operator: str, left: Node, right: Node, names: Mapping[str, Value], element: Value) -> Value:
    one = value_of(left, names, element)
    if operator in ("&&", "||"):
        return _truth(one) if _truth(one) is (operator == "||") else _truth(value_of(right, names, element))
    if operator == "??":
        return value_of(right, names, element) if one is None else one
    other = value_of(right, names, element)
    if operator in ("==", "!="):
        comparable = isinstance(one, bool) is isinstance(other, bool)
        return (comparable and _equal(one, other)) is (operator == "==")
    one, other = _number(one, operator), _number(other, operator)
    if operator == "%":
        return _modulo(one, other)
    if operator in ("/", "**") or not (isinstance(one, int) and isinstance(other, int)):
        exponent, one, other = other, float(one), float(other)
        return _power(one, int(exponent)) if operator == "**" else _of_floats(operator, one, other)
    found = _of_floats(operator, one, other)
    return found if isinstance(found, bool) else _whole(found)


def _equal(one: Value, other: Value) -> bool:
    if isinstance(one, list) or isinstance(other, list):
        raise NotModelled("== of arrays")
    if isinstance(one, float) or isinstance(other, float):
        return one is not None and other is not None and float(one) == float(other)
    return bool(one == other)


def _of_floats(operator: str, one: float, other: float) -> Value:
    match operator:
        case "+":
            return one + other
        case "-":
            return one - other
        case "*":
            return one * other
        case "/":
            return _quotient(one, other)
        case "<":
            return one < other
        case ">":
            return one > other
        case "<=":
            return one <= other
    return one >= other


def _quotient(one: float, other: float) -> float:
    if other:
        return one / other
    if math.isnan(one) or not one:
        return math.nan
    return math.copysign(math.inf, one) * math.copysign(1, other)


def _modulo(one: float, other: float) -> int:
    if not (isinstance(one, int) and isinstance(other, int)):
        raise FormulaError("% of a number that is no int")
    if not other:
        raise FormulaError("% by zero")
    rest = abs(one) % abs(other)
    return -rest if one < 0 else rest


def _power(base: float, exponent: int) -> float:
    """By squaring, as Go's ``math.Pow``."""
    found = 1.0
    while exponent:
        if exponent & 1:
            found *= base
        base, exponent = base * base, exponent >> 1
    return found


def _call(call: Call, names: Mapping[str, Value], element: Value) -> Value:
    given = [value_of(argument, names, element) for argument in call.arguments]
    match call.name:
        case "max" | "min":
            return _extreme(call.name, given)
        case "mean":
            values = _flat(given, "mean")
            return _added(values) / len(values) if values else 0.0
        case "median":
            return _median(_flat(given, "median"))
        case "sum" | "count" | "all" | "any" | "none" | "one":
            return _over(call, given[0], names)
    (one,) = given
    if call.name == "len":
        if not isinstance(one, list):
            raise FormulaError(f"len of {_shown(one)}")
        return len(one)
    one = _number(one, call.name)
    match call.name:
        case "abs":
            return -one if one < 0 else one
        case "int":
            return one if isinstance(one, int) else truncated(one)
        case "float":
            return float(one)
    return _rounded(call.name, float(one))


def _rounded(name: str, value: float) -> float:
    """``ceil``, ``floor`` or ``round``, whose halves go away from zero. A zero keeps the sign."""
    if not math.isfinite(value):
        return value
    whole = math.ceil(value) if name == "ceil" else math.floor(value) if name == "floor" else math.trunc(value)
    if name == "round" and abs(value - whole) >= 0.5:
        whole += 1 if value > 0 else -1
    return math.copysign(float(whole), value)


def _extreme(name: str, given: Sequence[Value]) -> Value:
    if len(given) == 1 and not isinstance(given[0], int | float | list):
        return given[0]
    found: Value = None
    for argument in given:
        for one in argument if isinstance(argument, list) else (argument,):
            if isinstance(one, list):
                one = _extreme(name, [one])
                if one is None:
                    continue
            one = _number(one, name)
            if found is None or (found < one if name == "max" else found > one):
                found = one
    return found


def _flat(given: Iterable[Value], name: str) -> list[float]:
    found: list[float] = []
    for one in given:
        found.extend(_flat(one, name) if isinstance(one, list) else (float(_number(one, name)),))
    return found


def _added(values: Iterable[float]) -> float:
    total = 0.0
    for value in values:
        total += value
    return total


def _median(values: Sequence[float]) -> float:
    if not values:
        return 0.0
    ordered = sorted(values, key=lambda value: (not math.isnan(value), value))
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def _over(call: Call, array: Value, names: Mapping[str, Value]) -> Value:
    """A function of an array's elements, each as it is or as the predicate says."""
    if not isinstance(array, list):
        raise FormulaError(f"{call.name} of {_shown(array)}")
    asked = (one if call.predicate is None else value_of(call.predicate, names, one) for one in array)
    match call.name:
        case "sum":
            return _sum(list(asked), backward=call.predicate is None and isinstance(call.arguments[0], Array))
        case "count":
            return sum([_truth(one) for one in asked])
        case "all":
            return all(_truth(one) for one in asked)
        case "any":
            return any(_truth(one) for one in asked)
        case "none":
            return not any(_truth(one) for one in asked)
    return sum([_truth(one) for one in asked]) == 1


def _sum(values: list[Value], *, backward: bool) -> Value:
    """The sum, in expr's order: of an array that is written out it is ``a + (b + (c + d))``."""
    if backward and len(values) > 1:
        total, rest = values[-1], values[-2::-1]
    else:
        total, rest = 0, values
    for value in rest:
        one, other = _number(value, "sum"), _number(total, "sum")
        total = _whole(one + other) if isinstance(one, int) and isinstance(other, int) else float(one) + float(other)
    return total
