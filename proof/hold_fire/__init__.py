"""Whether reaping has to wait for a lease after a failover: real workers, a real promotion."""
