"""gRPC: the server for workers and clients in other processes, networks and languages, and their other end."""
