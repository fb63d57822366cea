"""What a ScaledObject would do to a consumer group under a profile, without a cluster: :func:`run.simulate`."""
