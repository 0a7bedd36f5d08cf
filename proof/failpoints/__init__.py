"""Fail points: real processes are killed and frozen at every named point, and the oracle judges what is left."""
