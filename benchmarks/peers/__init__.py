"""Faultline and its peers side by side on one machine, each through its public API."""
