"""One file a scenario."""
