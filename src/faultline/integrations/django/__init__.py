"""Faultline in a Django project."""
