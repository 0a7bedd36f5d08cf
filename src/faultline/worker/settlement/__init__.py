"""Recording how attempts ended."""
