"""A trial: inputs in, a record out."""
