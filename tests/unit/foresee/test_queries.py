"""Queries of Prometheus about a group: which are its lag, what their selectors select, and which are refused, by name."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.errors import InputError
from lab.foresee.group import Consumers, Seen
from lab.foresee.queries import Answer, Names
from lab.foresee.situation import Situation
from tests.thoroughness import fuzz_cases
from tests.unit.foresee.groups import P, step
from tests.unit.inputs.written import refused

LAG, GROUP_LAG, OFFSET = "kafka_consumergroup_lag", "kafka_consumergroup_group_lag", "kafka_topic_partition_current_offset"
LAGS = np.arange(P, dtype=float)  # partition 0 has none, 23 has 23
ORDERS = Names("enrich", ("orders",))
BOTH = Names("enrich", ("orders", "refunds"))


def answer(query, names=ORDERS):
    """What is made of the query."""
    situation = Situation(step(180, 1800), np.full(P, 1 / P), Consumers(100.0, 3.0), topics=len(names.topics))
    return Answer(query, names, situation, "so.yaml", "spec.triggers[0].metadata.query")


def elements(query, names=ORDERS, lags=LAGS):
    """What the query answers at 200 s."""
    return answer(query, names)(Seen(200.0, lags, np.zeros(P), np.zeros(P), []))


WHOLE = [
    f"sum({LAG})",
    f"sum( {LAG}{{}} )",
    f'sum({LAG}{{consumergroup="enrich", topic="orders",}})',
    f'sum({LAG}{{consumergroup=~\'enr.*\', topic!="x", namespace="prod"}})',
    f'sum by (consumergroup) ({LAG}{{consumergroup="enrich"}})',
    f'sum({LAG}{{consumergroup="enrich"}}) by (consumergroup, topic)',
    f"sum without (partition) ({LAG})",
    f"sum(sum by (topic, partition) ({LAG}))",
    f"sum({LAG}) or vector(0)",
    f"(sum({LAG}) > 0) or vector(0)",
    f"sum({LAG}) > 0 or vector(0)",
    f"sum by (consumergroup) ({LAG}) or on() vector(0)",
    f"sum({LAG} > 0)",
    f'sum(\n  {LAG}{{\n    consumergroup="enrich"  # ours\n  }}\n)\n',
    f'sum({GROUP_LAG}{{group="enrich"}})',
    f'sum by (group) ({GROUP_LAG}{{group="enrich", cluster_name="c"}})',
    f"{LAG}_sum",
    'kminion_kafka_consumer_group_topic_lag{group_id="enrich", topic_name="orders"}',
    "sum by (topic_name) (sum by (topic_name, partition_id) (kminion_kafka_consumer_group_topic_partition_lag))",
]


@pytest.mark.parametrize("query", WHOLE)
def test_the_whole_lag_in_other_words(query):
    """Whatever the spaces, the exporter and the labels that one element keeps."""
    made = answer(query)
    assert elements(query) == [LAGS.sum()]
    assert made.notes == []


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        (f'sum({LAG}{{partition="3"}})', [3]),
        (f'{LAG}{{partition="3"}}', [3]),
        (f'sum({LAG}{{partition=~"2[0-3]|1"}})', [20 + 21 + 22 + 23 + 1]),
        (f'sum({LAG}{{partition!~"\\\\d"}})', [sum(range(10, 24))]),
        (f"sum({LAG} > 20)", [21 + 22 + 23]),
        (f"sum({LAG}) > 276", []),
        (f"sum({LAG}) > 276 or vector(7)", [7]),
        (f"sum({LAG}) >= 276", [276]),
        (f'sum(rate({OFFSET}{{topic="orders"}}[50s]))', [1800]),
        (f"sum(rate({OFFSET}[1m40s]))", [(180 * 50 + 1800 * 50) / 100]),
        (f'sum(rate({OFFSET}{{partition=~"0|1"}}[50s]))', [1800 / 12]),
    ],
)
def test_a_selector_counts_what_it_selects(query, wanted):
    """One partition, some of them, those above a number; a rate over its window."""
    assert elements(query) == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        (f'sum({LAG}{{topic="orders"}})', sum(range(12))),
        (f'sum by (topic) ({LAG}{{topic="refunds"}})', sum(range(12, 24))),
        (f'sum({LAG}{{topic=~"orders|refunds"}})', sum(range(24))),
        (f'sum({LAG}{{partition="1"}})', 1 + 13),
        (f'{LAG}_sum{{topic="refunds"}}', sum(range(12, 24))),
    ],
)
def test_one_of_two_topics(query, wanted):
    """The partitions of the second begin at 0 again."""
    assert elements(query, BOTH) == [wanted]


@pytest.mark.parametrize(
    ("query", "note"),
    [
        (f'sum({LAG}{{group="enrich"}})', f"{LAG} has no label group (it is consumergroup)"),
        (f'sum({GROUP_LAG}{{consumergroup="enrich"}})', f"{GROUP_LAG} has no label consumergroup (it is group)"),
        (f'sum({LAG}{{consumergroup="other"}})', f'{LAG} consumergroup="other" is not the group enrich'),
        (f'sum({LAG}{{topic="payments"}})', f'{LAG} topic="payments" selects none of the group\'s topics, orders'),
        (f'sum({LAG}{{partition="99"}})', f"{LAG} selects no partition of the group"),
    ],
)
def test_what_matches_nothing_reads_0_with_a_line(query, note):
    """A sum of no series has no element, which KEDA takes as 0 unless nulls count."""
    assert elements(query) == []
    assert elements(f"{query} or vector(0)") == [0]
    assert answer(query).notes == [f"spec.triggers[0].metadata.query: {note}: the query matches nothing there and reads 0"]


@pytest.mark.parametrize(
    ("query", "line"),
    [
        ("kafka_consumer_lag", "kafka_consumer_lag is no lag that is known, and without a sum several"),
        (LAG, "24 series are an error in KEDA"),
        (f"sum by (partition) ({LAG})", "one series, such as sum(...) gives: 24 series are an error"),
        (f"sum by (client_id) ({GROUP_LAG})", "a series for each pod are an error"),
        (f"sum by (consumergroup) ({LAG}) or vector(0)", "is a second series, an error in KEDA: take `or on() vector`"),
        ("avg(rate(container_cpu[5m])) * 100", ": avg() is not modelled"),
        (f"sum({LAG}) * 2", ": * is not modelled"),
        (f"sum({OFFSET})", "without a rate is not modelled"),
        (f"sum(rate({LAG}[5m]))", "as a rate is not modelled"),
        (f"sum(rate({OFFSET}[0s]))", ": a rate over 0s is not modelled"),
        (f"sum({LAG}", "its end is not modelled, where ) is wanted"),
        (f'sum({LAG}{{topic=~"("}})', "is no regular expression"),
        ("(" * 30, "nested more than 20 deep"),
    ],
)
def test_any_other_query_is_refused_by_name(query, line):
    """With its place in the file."""
    said = refused(answer, query)
    assert said.startswith("so.yaml: spec.triggers[0].metadata.query: ")
    assert line in said


def test_names_come_from_triggers_on_lag_and_then_from_queries():
    """A topic that only a query names takes the place that is left."""
    from tests.unit.foresee.groups import asking, lag_150_with

    queries = [asking(f'sum({LAG}{{consumergroup="g",topic="{topic}"}})', 1) for topic in ("refunds", "orders")]
    assert Names.of(lag_150_with(*queries, alone=True).triggers, 2) == Names("g", ("refunds", "orders"))
    kafka = {"type": "kafka", "metadata": {"bootstrapServers": "b", "consumerGroup": "enrich", "topic": "orders"}}
    assert Names.of(lag_150_with(*queries, kafka, alone=True).triggers, 2) == Names("enrich", ("orders", "refunds"))


WORDS = [*'(){}[],>=~"', "sum", "by", "or", "on", "vector", "rate", "0", "5m", LAG, 'topic="x"', "without", "partition"]


@given(st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join) | st.text(max_size=14))
@settings(max_examples=fuzz_cases())
def test_any_text_is_a_query_or_is_refused_in_one_line(text):
    """And one that is taken answers one element at most."""
    line, found = "", []
    try:
        found = elements(text)
    except InputError as error:
        line = str(error)
    assert "\n" not in line
    assert len(found) <= 1
