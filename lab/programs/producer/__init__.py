"""The load generator: replays a profile onto the topic, open loop, deterministic by seed."""
