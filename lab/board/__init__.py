"""Boards: the same panels as a Grafana dashboard and as a live board that needs no Grafana."""
