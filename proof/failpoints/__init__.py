"""Fail points: real processes are killed and frozen at each of them, and the oracle judges what is left."""
