"""The instruments."""
