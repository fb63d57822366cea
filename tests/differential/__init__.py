"""The HPA model against a real HPA controller on a real cluster, on metrics the tests make up."""
