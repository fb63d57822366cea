"""``scalingModifiers``: one metric composed of the triggers' metrics by a formula, as KEDA 2.21 reads it.

The formula is expr's (:mod:`lab.inputs.formula`). KEDA makes its result a float by writing ``float(...)`` around the text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lab.inputs.formula.check import ANY, FLOAT, NIL, Kind, kind_of
from lab.inputs.formula.syntax import parse as tree_of
from lab.inputs.formula.tree import FormulaError, Node, NotModelled
from lab.inputs.formula.values import truncated, value_of
from lab.inputs.triggers import common
from lab.inputs.triggers.resource import RESOURCES
from lab.yamlfile import Fields

METRIC = "composite-metric"
FALLBACK = "scalingModifiers"  # the behavior of a fallback that gives the formula nil for a trigger that fails
_FIELDS = ("formula", "target", "activationTarget", "metricType")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?")
_MOST = 1e15  # so that its thousandths are an int64
_DUMMY = -1.0  # the value of each trigger with which KEDA tries a formula


@dataclass(frozen=True)
class ScalingModifiers:
    """The HPA wants ``target`` of the ``formula``'s value per replica (AverageValue) or in all (Value), and of no trigger by
    itself. Above ``activation`` the ScaledObject is active. ``whole`` says that the target is: else KEDA never falls back."""

    formula: str
    tree: Node
    target: float
    activation: float
    metric_type: str
    whole: bool

    def milli(self, metrics: Mapping[str, float | None]) -> int | None:
        """The composed metric, thousandths, of the triggers' ``metrics`` by name, None for one that falls back; None for nil.

        Raises :class:`FormulaError` where the formula fails. Source: ``calculateScalingModifiersFormula``.
        """
        found = value_of(self.tree, {name: _approximate(metric) for name, metric in metrics.items()})
        if found is None:
            return None
        if not isinstance(found, float):
            raise FormulaError(f"the formula gives {found}, and KEDA takes a float alone: write float(...) around all of it")
        return truncated(found * 1000)

    def metric(self) -> dict[str, Any]:
        """The HPA's metric, without its selector. Source: ``getScaledObjectMetricSpecs`` in ``controllers/keda/hpa.go``."""
        field = "averageValue" if self.metric_type == "AverageValue" else "value"
        target = {"type": self.metric_type, field: common.quantity(int(self.target * 1000) / 1000)}
        return {"type": "External", "external": {"metric": {"name": METRIC}, "target": target}}


def parse(advanced: Fields, triggers: Sequence[object]) -> ScalingModifiers | None:
    """The scalingModifiers in the ``advanced`` block of an object with ``triggers`` as they are written, whatever is wrong with
    them; None where there are none.

    Raises :class:`InputError` for what KEDA refuses, what fails at every query, and what is not modelled. Source:
    ``ValidateAndCompileScalingModifiers`` in ``scaledobject_webhook.go``.
    """
    given = advanced.under("scalingModifiers", *_FIELDS, optional=True)
    if not any(given.content.values()):  # KEDA's own updates write an empty block
        return None
    text = given.text("formula", "a formula of the triggers' names, such as orders + refunds")
    target, activation = _number(given, "target", 0.001), _number(given, "activationTarget", default=0.0)
    tree = None
    named = [one for one in triggers if isinstance(one, dict) and one.get("type") not in RESOURCES]
    names = [one["name"] for one in named if isinstance(one.get("name"), str) and one["name"]]
    try:
        tree = compiled(text, names) if text else None
    except NotModelled as error:
        given.refuse("formula", str(error))
    except FormulaError as error:
        given.refuse("formula", f"what KEDA's expr takes: {error}")
    if tree is None:
        return None  # as is reported
    return ScalingModifiers(
        formula=text,
        tree=tree,
        target=target,
        activation=activation,
        metric_type=given.choice("metricType", "AverageValue", "Value", default="AverageValue"),
        whole=bool(re.fullmatch(r"[+-]?\d+", str(given.content.get("target")))),
    )


def compiled(text: str, names: Collection[str]) -> Node:
    """The tree of KEDA's formula ``text`` over triggers of these ``names``.

    Raises :class:`FormulaError` for what KEDA refuses, and :class:`NotModelled` for what it may take. Source:
    ``castToFloatIfNecessary`` and ``validateScalingModifiersFormula``.
    """
    if "??" in text:
        result = "_kedaCompositeResult"
        text = f"let {result} = ({text}); {result} == nil ? nil : float({result})"
    elif not text.startswith("float("):
        text = f"float({text})"
    tree = tree_of(text, frozenset(names))
    kinds: dict[str, Kind] = dict.fromkeys(names, FLOAT)
    kind = kind_of(tree, kinds)
    if kind not in (FLOAT, ANY, NIL):
        raise FormulaError(f"it gives {kind}, and the metric is a float: write float(...) around all of it")
    value_of(tree, dict.fromkeys(names, _DUMMY))
    return tree


def _number(given: Fields, field: str, least: float = -_MOST, default: float | None = None) -> float:
    value = given.content.get(field)
    if not value and default is not None:
        return default
    number = float(value) if isinstance(value, str) and _NUMBER.fullmatch(value) else math.nan
    if not least <= number <= _MOST:
        meant = f'"{value}"' if isinstance(value, int | float) and not isinstance(value, bool) else ""
        given.refuse(field, f"a number{f' from {least:g}' if least > 0 else ''}, as a string", meant)
        return max(least, 1.0)
    return number


def _approximate(metric: float | None) -> float | None:
    """``metric`` as the formula is given it: thousandths times 0.001 (``Quantity.AsApproximateFloat64``)."""
    return None if metric is None else float(f"{metric:.3f}".replace(".", "")) * 0.001
