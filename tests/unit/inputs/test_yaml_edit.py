"""A user's file with some values changed: what is not changed keeps its line, its comment and its place; what is has none."""

import copy
import re

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lab import paths
from lab.foresee import variants
from lab.inputs import scaledobject, yaml_edit
from lab.inputs.hpa_spec import Policy

ORDERS = (paths.PROJECT / "docs" / "examples" / "orders.yaml").read_text()
CHANGES = {
    "lagThreshold": 77,
    "maxReplicaCount": 9,
    "scaleUp.policies": (Policy("Percent", 900, 30), Policy("Pods", 4, 15)),
    "scaleDown.stabilizationWindowSeconds": 900,
}
DIFF = '''\
-  maxReplicaCount: 12
+  maxReplicaCount: 9
-            - {type: Pods, value: 6, periodSeconds: 30}
+            - {type: Percent, value: 900, periodSeconds: 30}
+            - {type: Pods, value: 4, periodSeconds: 15}
-          stabilizationWindowSeconds: 600
+          stabilizationWindowSeconds: 900
-        lagThreshold: "2250"   # 100 orders/s a pod x 30 s x 0.75
+        lagThreshold: "77"'''


def changed(text, before, after):
    """The lines that differ, and the text with the change."""
    made = yaml_edit.edited(text, before, after)
    lines = yaml_edit.difference("my.yaml", text, made).splitlines()[2:]
    return "\n".join(line for line in lines if line[0] in "+-"), made


def test_the_lines_of_changed_fields_alone_differ():
    """Each keeps its quotes and its brackets, and loses the comment beside it. What is not changed is the same text."""
    scaled = scaledobject.parse(yaml.safe_load(ORDERS), "orders.yaml")
    after = variants.with_changes(scaled, CHANGES).scaled.content
    diff, made = changed(ORDERS, scaled.content, after)
    assert diff == DIFF
    assert yaml.safe_load(made) == after
    assert yaml_edit.edited(ORDERS, scaled.content, scaled.content) == ORDERS


HEAD = "kind: ScaledObject\nmetadata: {name: a}\nspec:\n"
NEW = {"advanced": {"behavior": {"window": 60}}}


@pytest.mark.parametrize(
    ("text", "set_", "diff"),
    [
        (HEAD + "  most: 2 # pods\n# end\n", NEW, "+  advanced:\n+    behavior:\n+      window: 60"),
        (HEAD + "  advanced: # none\n", NEW, "-  advanced: # none\n+  advanced:\n+    behavior:\n+      window: 60"),
        (
            HEAD + "  # of a\n  a: {x: 1, y: 'b # c'} # of x\n  b: 1 # of b\n",
            {"a": {"x": 2, "y": "b # c"}},
            "-  a: {x: 1, y: 'b # c'} # of x\n+  a: {x: 2, y: 'b # c'}",
        ),
        (
            HEAD + "  a: # of a\n  - 1 # one\n  b: 1 # of b\n",
            {"a": [2, 3, 4]},
            "-  a: # of a\n-  - 1 # one\n+  a:\n+  - 2\n+  - 3\n+  - 4",
        ),
        (HEAD + "  # all\n  a:\n  # the first\n  - 1\n", {"a": [2, 3]}, "-  - 1\n+  - 2\n+  - 3"),
        (HEAD + "  a: {x: 1 # of x\n   }\n", {"a": {"x": 1, "y": 2}}, '-  a: {x: 1 # of x\n+  a: {x: 1, "y": 2'),
        (HEAD + "  advanced: null\n  most: 2", NEW, "-  advanced: null\n+  advanced:\n+    behavior:\n+      window: 60"),
        (HEAD + "  advanced: {}\n", NEW, '-  advanced: {}\n+  advanced: {"behavior": {"window": 60}}'),
        (HEAD + "  a: '1'\n  b: |\n    text\n\n", {"a": "it's", "c": 1}, "-  a: '1'\n+  a: 'it''s'\n+  c: 1"),
        (HEAD + "  a: yes it is\n", {"a": "no"}, '-  a: yes it is\n+  a: "no"'),
        ('{"kind": "ScaledObject", "spec": {\n "a": 1\n}}', {"a": 2, "b": "x"}, '- "a": 1\n+ "a": 2, "b": "x"'),
        ("---\nkind: Secret\n---\n" + HEAD + "  a: 1\n---\n", {"a": 2}, "-  a: 1\n+  a: 2"),
        ("kind: List\nitems:\n- kind: Secret\n- kind: ScaledObject\n  spec:\n    a: 1\n", {"a": 2}, "-    a: 1\n+    a: 2"),
    ],
)
def test_a_field_is_added_or_changed_in_any_notation(text, set_, diff):
    """A block that is not there, null or empty; JSON; beside other objects."""
    (node,) = yaml_edit._scaled_objects(text, {})
    before = yaml.safe_load(yaml.serialize(node))
    after = before | {"spec": before["spec"] | set_}
    lines, made = changed(text, before, after)
    (node,) = yaml_edit._scaled_objects(made, {})
    assert yaml.safe_load(yaml.serialize(node)) == after
    assert diff is None or lines == diff


def test_a_text_that_can_not_be_changed_by_lines_is_written_anew():
    """An alias stands for two places, of which one alone is changed."""
    text = HEAD + "  a: &a {x: 1}\n  b: *a\n"
    before = yaml.safe_load(text)
    after = before | {"spec": {"a": {"x": 2}, "b": {"x": 1}}}
    assert yaml.safe_load(yaml_edit.edited(text, before, after)) == after
    assert yaml_edit.edited("{\t", before, after) == yaml.safe_dump(after, sort_keys=False)


names = st.text("abcde", min_size=1, max_size=3)
words = st.one_of(st.integers(0, 99), st.booleans(), st.none(), st.text("ab '\":#{}[],&*!|>%@-\n", max_size=5))
trees = st.recursive(words, lambda one: st.lists(one, max_size=3) | st.dictionaries(names, one, max_size=3), max_leaves=8)


@given(
    before=st.dictionaries(names, trees, min_size=1),
    change=st.dictionaries(names, trees),
    flow=st.sampled_from([False, None, True]),
)
def test_what_is_read_after_any_change_is_what_was_meant(before, change, flow):
    """Whatever the values and the notation; comments stay in all but what is written anew, and beside what changed."""
    dumped = yaml.safe_dump({"kind": "ScaledObject", "spec": before}, sort_keys=False, default_flow_style=flow)
    after = {"kind": "ScaledObject", "spec": copy.deepcopy(before) | change}
    text = f"# head\n{dumped}# tail\n"
    made = yaml_edit.edited(text, yaml.safe_load(text), after)
    assert yaml.safe_load(made) == after
    if not flow and all(isinstance(one, int | str) and "\n" not in str(one) for one in (*before.values(), *change.values())):
        assert made.startswith("# head\n")
        assert made.endswith("# tail\n")
        if flow is None:  # all on one line
            return
        noted = "".join(f"{line} # {number}\n" for number, line in enumerate(dumped.splitlines()))
        left = re.findall(r" # (\d+)$", yaml_edit.edited(noted, yaml.safe_load(noted), after), re.MULTILINE)
        same = [change.get(name, value) == value for name, value in before.items()]
        assert left == [str(number) for number, kept in enumerate([True, True, *same]) if kept]
