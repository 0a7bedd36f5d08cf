"""Protocol 1 of the server, as generated; docs/reference/protocol.md explains it."""
