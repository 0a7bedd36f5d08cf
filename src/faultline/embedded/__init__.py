"""A private PostgreSQL in a folder you can delete: found, started, shared and stopped without a thought."""

from faultline.embedded.server import EmbeddedServer

__all__ = ["EmbeddedServer"]
