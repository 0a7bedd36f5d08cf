"""gRPC: the server for workers and clients in other processes and languages, and their other end."""
