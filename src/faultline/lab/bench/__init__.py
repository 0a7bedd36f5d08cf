"""Measurements of our own: how fast a worker drains a queue, how soon it picks a job up, what it weighs."""
