"""Whether a consumer keeps the contract (docs/your-consumer.md): it is taken through its life on a real broker, and judged."""
