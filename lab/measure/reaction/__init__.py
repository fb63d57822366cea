"""Reactions: of one step, of each burst, the wait for the HPA's sync in them, and what the HPA reads in a burst."""
