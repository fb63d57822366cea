"""The programs that run in pods: producer, consumer, controller, lag exporter, persistent-lag scaler."""
