"""Triggers of a ScaledObject: each type has a dataclass, a strict ``parse`` and, where KEDA counts, its arithmetic."""
