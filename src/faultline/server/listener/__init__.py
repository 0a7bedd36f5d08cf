"""Sockets: where the server may listen, TLS, and the bounds on connections."""
