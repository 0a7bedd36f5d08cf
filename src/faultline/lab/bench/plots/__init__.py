"""Figures and their plots."""
