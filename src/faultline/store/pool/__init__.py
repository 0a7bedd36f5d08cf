"""Stores: they run a Call over a pool of connections, or over the caller's own connection."""

from faultline.store.pool.async_store import AsyncStore
from faultline.store.pool.plain_store import Store
from faultline.store.pool.pool_settings import POOL_MAX

__all__ = ["POOL_MAX", "AsyncStore", "Store"]
