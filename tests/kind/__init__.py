"""The kind runtime, on a Docker daemon: what surrounds the trials."""
