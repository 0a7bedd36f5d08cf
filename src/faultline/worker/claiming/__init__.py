"""Claiming jobs."""
