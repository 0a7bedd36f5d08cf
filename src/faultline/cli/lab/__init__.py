"""Commands of the lab: demo, drill, bench, conformance."""
