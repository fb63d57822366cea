"""Programs of scenario zero loss."""
