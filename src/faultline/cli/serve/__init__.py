"""Commands that run processes: worker, server, dev, metrics."""
