"""A high-availability cluster on one machine, faults, and a judge: `make ha`."""
