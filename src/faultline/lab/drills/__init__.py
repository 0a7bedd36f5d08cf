"""Drills: rehearsed faults against real processes, each ending in a timeline and a verdict."""
