"""The nemesis: real workers and producers under a seeded storm of faults, then one checker over what is left.

`python -m proof.nemesis --seed 7 --minutes 3`, or `make nemesis`; docs/nemesis.md tells the rest.
"""
