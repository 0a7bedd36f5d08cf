"""Drills, benchmarks and the conformance kit: loaded by their own commands alone."""
