"""Foresight without a cluster: a policy on a profile simulated, and the best of many variants recommended."""
