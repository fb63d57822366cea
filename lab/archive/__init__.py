"""The archive of sessions: a table of their verdicts and a lock in the checkout, their records in the repository's history."""
