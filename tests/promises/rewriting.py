"""Change one function in a test's own database: to break a promise on purpose, or to stop inside a verb."""

from proof.explorer.rewriting import rewrite, shipped_source

__all__ = ["pause_before", "rewrite", "shipped_source"]


def pause_before(dsn: str, function: str, text: str, key: int) -> None:
    """Make a function wait for the advisory lock `key` before it does what `text` says."""
    rewrite(dsn, function, text, f"perform pg_catalog.pg_advisory_xact_lock_shared({key});\n  {text}")
