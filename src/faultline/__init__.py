"""Faultline: a job queue on PostgreSQL whose jobs survive their workers."""

__version__ = "0.1.0"
