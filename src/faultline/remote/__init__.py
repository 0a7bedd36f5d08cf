"""The client side of the gRPC server, for workers in other processes."""
