"""Rules that say what a ScaledObject will do, and its author did not mean: no cluster is asked, every number is computed."""
