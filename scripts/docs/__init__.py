"""The documentation as a site: `make docs`. References are made while it is built; none is checked in."""
