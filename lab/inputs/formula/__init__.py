"""The formula of ``scalingModifiers``: the subset of the language expr (expr-lang/expr 1.17) that KEDA's users write."""
