"""The formula of scalingModifiers: its arithmetic is expr's and not Python's, and what can't be used is one line."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.errors import InputError
from lab.inputs.formula.tree import FormulaError
from tests.thoroughness import fuzz_cases
from tests.unit.inputs.written import KAFKA, refused, scaled

FALLBACK = {"failureThreshold": 3, "replicas": 4, "behavior": "scalingModifiers"}


def composing(formula, *names, **more):
    """The scalingModifiers of an object whose triggers have these names, orders and refunds by default."""
    triggers = [KAFKA | {"name": name} for name in names or ("orders", "refunds")]
    advanced = {"scalingModifiers": {"formula": formula, "target": "10"} | more}
    return scaled(triggers, advanced=advanced).modifiers


@pytest.mark.parametrize(
    ("formula", "milli"),
    [
        ("orders + refunds", 10_500),
        ("5 / 2", 2_500),
        ("round(refunds) - round(-refunds - 4)", 12_000),
        ("-7 % 3", -1_000),
        ("-int(orders) % 3", -1_000),
        ("-orders ** 2", -49_000),
        ("1 + orders ?? 3", 8_000),
        ("1 < orders < 9 ? 1 : 0", 1_000),
        ("not (orders > 3) ? 1 : 2", 2_000),
        ("count([orders, refunds], {# > 3.5}) > 1 ? 5 : 0.5", 500),
        ("let worst = max(orders, refunds); worst > 5 ? worst : 0", 7_000),
        ("9223372036854775807 + 1", -(2**63)),
        ("orders / 0", -(2**63)),
        ("orders // refunds", None),
        ("orders) - (refunds", 3_500),
        ("mean([orders, refunds])", 5_250),
    ],
)
def test_a_formula_is_exprs(formula, milli):
    """Thousandths of it for 7 orders and 3.5 refunds; an int wraps, and what no int holds is the least of them."""
    if milli is None:
        assert "it ends too early" in refused(composing, formula)
    else:
        assert composing(formula).milli({"orders": 7.0, "refunds": 3.5}) == milli


def test_a_trigger_that_fails_is_nil():
    """The next of a chain counts; nil in arithmetic fails."""
    chain = composing("orders ?? refunds ?? 8")
    assert [chain.milli({"orders": one, "refunds": other}) for one, other in ((7, 3), (None, 3), (None, None))] == [
        7000,
        3000,
        8000,
    ]
    assert composing("orders ?? refunds").milli({"orders": None, "refunds": None}) is None


@pytest.mark.parametrize(
    ("formula", "line"),
    [
        ("orders + refund", "refund is no trigger's name; the triggers that may be named are orders, refunds"),
        ("orders + (refunds > 1)", "+ can't be used on float and bool"),
        ("orders > 1", "float can't be used on bool"),
        ("float(orders) > 1 ? 5 : 0", "it gives int, and the metric is a float: write float(...) around all of it"),
        ("avg(orders, refunds)", "avg is no function of expr (mean is)"),
        ("orders ?? 1 + refunds", "?? and + can't be mixed: put parentheses around either"),
        ("orders % 2", "% can't be used on float and int"),
        ("orders % 0", "% can't be used on float and int"),
        ("1 % 0", "% by zero"),
        ("orders > 0 ? orders : 1 % 0", "% by zero"),
        ("orders > 0 ? orders : int(orders) % 0", "% by zero"),
        ("orders matches refunds", "'matches' is not modelled, only numbers"),
        ("filter([orders], # > 1)", "filter is not modelled, only numbers"),
        ("orders ** refunds", "an exponent other than a whole number from 0 to 9 is not modelled"),
    ],
)
def test_what_a_formula_can_not_be(formula, line):
    """Refused by KEDA, failing at every query, or not modelled."""
    said = refused(composing, formula)
    assert said.startswith("my.yaml: spec.advanced.scalingModifiers.formula: ")
    assert line in said


def test_a_name_with_a_hyphen_is_a_subtraction():
    """KEDA's error says only that the name is unknown."""
    assert "kafka-lag is kafka minus lag there" in refused(composing, "kafka-lag + 1", "kafka-lag")


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({"target": None}, "scalingModifiers.target: missing | a number"),
        ({"target": 10}, 'target: 10 | did you mean "10"? allowed: a number from 0.001'),
        ({"target": "0"}, "target: '0' | a number from 0.001"),
        ({"activationTarget": "ten"}, "activationTarget: 'ten' |"),
        ({"metricType": "Utilization"}, "metricType: 'Utilization' | AverageValue or Value"),
        ({"formula": ""}, "formula: '' | a formula of the triggers' names"),
    ],
)
def test_what_stands_beside_a_formula(more, line):
    """Each field is checked."""
    assert line in refused(composing, more.pop("formula", "orders"), **more)


def test_a_fallback_to_the_formula_needs_one():
    """Without it KEDA tells the HPA -1, which counts as an overflow."""
    assert "behavior: 'scalingModifiers' | another without" in refused(scaled, [KAFKA], fallback=FALLBACK)


WORDS = [
    *"+-*/%?:()[]{},#><!=;",
    "orders",
    "refunds",
    "1",
    "2.5",
    "0",
    "**",
    "??",
    "==",
    "&&",
    "not",
    "let",
    "count",
    "max",
    "sum",
    "float",
    "int",
    "nil",
]


@given(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join) | st.text(max_size=12))
@settings(max_examples=fuzz_cases())
def test_any_text_is_a_formula_or_is_refused_in_one_line(text):
    """And a formula that is taken gives a number, nil, or one kind of error."""
    line = ""
    try:
        composing(text or "orders").milli({"orders": 7.0, "refunds": 3.5})
    except FormulaError:
        return
    except InputError as error:
        line = str(error)
    assert "\n" not in line


def test_what_is_deep_or_long_is_refused():
    """Before any limit of Python's."""
    for text in (
        "(" * 5000,
        "-" * 5000 + "1",
        "1" + "+1" * 5000,
        "[" * 300 + "]" * 300,
        "orders ? 1 : " * 60 + "2",
        "1 < (" * 30 + "orders" + ") < 2" * 30,
    ):
        assert "is not modelled" in refused(composing, text)
