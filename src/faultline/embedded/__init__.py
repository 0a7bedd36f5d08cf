"""A private PostgreSQL in a folder that you can delete: found, started, shared and stopped automatically."""

from faultline.embedded.embedded_server import EmbeddedServer

__all__ = ["EmbeddedServer"]
