"""The acceptance of a user's ScaledObject, which pytest collects by its path: in a wheel it is in ``lab.acceptance``."""
