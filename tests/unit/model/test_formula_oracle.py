"""The formulas of scalingModifiers against KEDA's own code and its expression library: the same cases, the same answers."""

import logging
from collections import Counter
from random import Random

import pytest

from lab.errors import InputError
from lab.inputs import scaledobject
from lab.inputs.triggers.common import exposed
from lab.model import keda
from lab.model.keda import Observation
from tests.oracles.harness import KEDA
from tests.thoroughness import examples

pytestmark = pytest.mark.services

log = logging.getLogger("lab.oracle")
NAMES = ("orders", "refunds", "p99")
# Of KEDA's documentation, its tests and public files, and what is easily read otherwise than expr does.
WRITTEN = """
orders + refunds
float(orders + refunds)
count([orders, refunds], {# > 1}) > 1 ? 5 : 0
orders < 5 ? refunds + orders : 5
float(orders < 2 ? orders+refunds >= 2 ? 5 : 10 : 0)
max(orders, refunds/1000)
max([orders, refunds])
sum([orders, refunds, p99])
(orders + refunds) / 2
mean(orders, refunds, p99)
median([orders, refunds, p99])
orders ?? 20
orders ?? refunds ?? 8
orders ?? refunds
(orders ?? 1) + (refunds ?? 2)
1 + orders ?? 3
orders ?? refunds + 1
let worst = max(orders, refunds); worst > 10 ? worst : p99
round(orders / 7) * 2
ceil(orders / 10)
floor(-orders / 3)
abs(orders - refunds)
orders / refunds
orders / 0
0 / 0
-orders ** 2
2 ** 3 ** 2
not (orders > 3) ? 1 : 2
!(orders > 3) || refunds > 2 ? 1 : 2
not orders > 3 ? 1 : 2
1 < orders < 9 ? 1 : 0
7 % 3
-7 % 3
orders % 3
int(orders) % 3
int(-orders - 0.7)
5 / 2
9223372036854775807 + 1
9223372036854775808
1_000 + orders
.5 + orders
5. * orders
1e3 * orders
007
0x10
1 ? 2 : 3
orders ? 1 : 2
orders > 1
float(orders) > 1
float(orders) > 1 ? 5 : 0
float(orders) > 1 ? 5.0 : 0.5
orders > 1 ? 5 : orders
orders ?: refunds
orders + unknown
orders-p99
orders + (refunds > 1)
max()
max([])
sum([])
len([orders, refunds])
count([orders > 1, refunds > 1])
any([orders, refunds], # > 5) ? 3 : 4
all([orders, refunds], {# > 5}) ? 3 : 4
none([orders, refunds], # > 5) ? 3 : 4
one([orders, refunds], # > 5) ? 3 : 4
sum([orders, refunds], # * 2)
sum([orders, refunds], {# > 5 ? # : 0})
avg(orders, refunds)
orders; refunds
orders) + (refunds
orders // none
orders /* some */ + 1
nil ?? orders
nil
true
orders == refunds ? 1 : 2
orders != nil ? orders : 1
orders == nil ? 1 : orders
true && orders > 1 ? 1 : 2
orders > 1 and refunds > 1 or p99 > 1 ? 1 : 2
min(orders, [refunds, [p99, 3]])
max(orders, [])
abs(-5)
round(2.5) + round(-2.5) + round(0.49999999999999994)
orders * 1.1 - orders
let orders = 1; orders
let max = 1; max
let x = orders; let y = x + 1; x * y
((orders))
[orders, refunds]
""".strip().splitlines()


@pytest.fixture(scope="module")
def oracle():
    """KEDA's own code, running."""
    with KEDA.running() as program:
        yield program


def drawn(random, depth=0, within=False):
    """A formula, mostly one that expr compiles."""
    one = random.random()
    if depth > 3 or one < 0.3:
        numbers = ["0", "1", "2", "3", "10", "0.5", "2.25", "1e3"]
        return random.choice([*NAMES, *NAMES, random.choice(numbers), *(["#"] if within else [])])

    def more(inside=within):
        return drawn(random, depth + 1, inside)

    def asked(inside=within):
        return f"{more(inside)} {random.choice(['<', '>', '<=', '>=', '==', '!='])} {more(inside)}"

    def array():
        return f"[{', '.join([random.choice(NAMES), *(more() for _ in range(random.randint(0, 2)))])}]"

    if one < 0.6:
        return f"{more()} {random.choice(['+', '-', '*', '/', '%'])} {more()}"
    if one < 0.7:
        return f"({asked()} ? {more()} : {more()})"
    if one < 0.75:
        both = (
            f"{asked()} {random.choice(['&&', '||', 'and', 'or'])} {'!(' + asked() + ')' if random.random() < 0.5 else asked()}"
        )
        return f"({both} ? {more()} : {more()})"
    if one < 0.85:
        return f"{random.choice(['abs', 'ceil', 'floor', 'round', 'int', 'float', '-', '+', ''])}({more()})"
    if one < 0.92:
        return f"{random.choice(['max', 'min', 'mean', 'median'])}({more()}, {random.choice([more, array])()})"
    name = random.choice(["sum", "count", "all", "any", "none", "one"])
    predicate = more(True) if name == "sum" else asked(True)
    called = f"{name}({array()}, {random.choice(['{%s}', '%s']) % predicate})"
    return called if name in ("sum", "count") else f"({called} ? {more()} : {more()})"


def case_of(random, formula):
    """An object with this formula, and calls; a trigger fails where the formula can say what counts then."""
    fallback = {"failureThreshold": 3, "replicas": 7, "behavior": "scalingModifiers"}
    server = {"bootstrapServers": "b:9092", "consumerGroup": "g"}
    spec = {"scaleTargetRef": {"name": "x"}, "advanced": {"scalingModifiers": {"formula": formula, "target": "2"}}}
    spec["triggers"] = [{"type": "kafka", "name": name, "metadata": server | {"topic": name}} for name in NAMES]
    failing = "??" in formula or random.random() < 0.1
    if failing:
        spec["fallback"] = fallback
    values = [0.0, 1.0, 3.0, 7.0, 0.25, 12.345, 4.1, 1009.0, 35.001, 123456789.0]
    calls = [[None if failing and random.random() < 0.4 else exposed(random.choice(values)) for _ in NAMES] for _ in range(4)]
    return {"kind": "formula", "scaled": {"object": {"metadata": {"name": "x"}, "spec": spec}}, "values": calls}


def modelled(case):
    """The model's answers in the form of KEDA's."""
    head = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject"}
    try:
        scaled = scaledobject.parse(head | case["scaled"]["object"], "case")
    except InputError as error:
        return "not modelled" if "is not modelled" in str(error) else "refused"
    found = []
    for values in case["values"]:
        seen = [Observation(-1.0 if one is None else one, True, False, 4 * (one is None), ()) for one in values]
        composed = keda.compose(scaled, seen)
        found.append(None if composed.metric is None else (round(composed.metric * 1000), composed.active))
    return found


def told(answer):
    """KEDA's answers in the form of the model's."""
    if "refused" in answer:
        return "refused"
    return [one and (one["milli"], one["approx"] > 0) for one in answer["composed"]]


def rounded(call):
    """A call without the last digits, which a metric above a billion has no room for."""
    return call and (f"{call[0]:.14e}", call[1])


def test_a_formula_composes_what_kedas_own_does(oracle):
    """Written ones and thousands of drawn ones. What the model refuses KEDA refuses, or the model says that it knows it not."""
    random = Random("elastic-lab formulas")
    formulas = [*WRITTEN, *(drawn(random) for _ in range(examples(8_000)))]
    cases = [case_of(random, formula) for formula in formulas]
    seen = Counter()
    for case, answer in zip(cases, oracle.answers(cases), strict=True):
        ours, formula = modelled(case), case["scaled"]["object"]["spec"]["advanced"]["scalingModifiers"]["formula"]
        theirs = told(answer)
        seen["not modelled" if ours == "not modelled" else "refused" if theirs == "refused" else "composed"] += 1
        if ours == "refused" and theirs != "refused":
            # What KEDA takes and can never use: each query fails.
            assert theirs == [None] * len(theirs), (formula, answer)
        elif ours != "not modelled":
            assert ours == theirs or [*map(rounded, ours)] == [*map(rounded, theirs)], (formula, case["values"], ours, answer)
    log.info("formulas: %s", dict(seen))
    assert seen["composed"] > 0.5 * len(cases)
    assert seen["not modelled"] < 0.05 * len(cases)
