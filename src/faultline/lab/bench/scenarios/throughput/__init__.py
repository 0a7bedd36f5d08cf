"""How many jobs a second."""
