"""The server process: HTTP and gRPC for one database of jobs, on one event loop. No state of its own."""
