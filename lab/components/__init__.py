"""The real components of a cluster: built from pinned modules once, fetched once, exported and imported as one file."""
