"""Submitting jobs: the busiest routes, from bytes to one call for many requests."""
