"""A payment provider that honours idempotency keys: another company, with a connection of its own."""

import asyncpg

from fastapi_shop.settings import dsn_parts

TABLE = """
create schema if not exists provider;
create table if not exists provider.charges (key text primary key, amount int not null)
"""


async def charge(key: str, amount: int) -> str:
    """Take the money, once for each key; gives a receipt."""
    conn = await _connected()
    try:
        await conn.execute(
            "insert into provider.charges (key, amount) values ($1, $2) on conflict (key) do nothing",
            key,
            amount,
        )
    finally:
        await conn.close()
    return f"receipt {key}"


async def open_account() -> None:
    conn = await _connected()
    await conn.execute(TABLE)
    await conn.close()


async def _connected() -> asyncpg.Connection:
    parts = dsn_parts()
    return await asyncpg.connect(
        host=parts["host"], port=int(parts.get("port", "5432")), user=parts.get("user"),
        password=parts.get("password"), database=parts.get("dbname"),
    )  # fmt: skip
