"""Connections of HTTP: bounds on their number, their heads and their answers, below all requests."""
