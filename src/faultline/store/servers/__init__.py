"""The choice of a server among several hosts, and the reasons to leave it."""
