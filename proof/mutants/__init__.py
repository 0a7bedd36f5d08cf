"""Mutants: each takes one mechanism out of a copy of the shipped package, and a named test must turn red."""
