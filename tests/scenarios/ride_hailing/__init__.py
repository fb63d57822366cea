"""Ride-hailing: a city's trips, fares, dashboard and riders, after a published text (docs/ride-hailing.md)."""
