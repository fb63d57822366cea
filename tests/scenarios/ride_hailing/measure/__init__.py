"""What only the ride-hailing scenario measures: its dashboard, its Locust users, and the Deployments beside the consumer."""
