"""The load generator: it replays a profile onto the topic in an open loop, deterministic by seed."""
