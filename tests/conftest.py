"""Hypothesis: no deadlines, since a busy machine is no counterexample."""

from hypothesis import settings

settings.register_profile("lab", deadline=None, print_blob=True)
settings.load_profile("lab")
