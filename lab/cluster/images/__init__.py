"""The container images of a kind cluster: pulled where a registry can be reached, made here where none can."""
