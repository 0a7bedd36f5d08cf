"""Keeping leases alive: the pacemaker process and the table of leases that it shares with the worker."""
