"""How soon a job begins."""
