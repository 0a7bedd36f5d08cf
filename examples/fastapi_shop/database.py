"""The shop's tables and its sessions."""

from typing import Final

from sqlalchemy import URL, ForeignKey, MetaData
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from fastapi_shop.settings import dsn_parts


class Base(DeclarativeBase):
    metadata = MetaData(schema="shop")


class Order(Base):
    __tablename__ = "orders"

    id: Mapped[int] = mapped_column(primary_key=True)
    amount: Mapped[int]
    state: Mapped[str] = mapped_column(default="placed")


class Payment(Base):
    """No constraint keeps an order from two of them: the fence has to."""

    __tablename__ = "payments"

    id: Mapped[int] = mapped_column(primary_key=True)
    order_id: Mapped[int] = mapped_column(ForeignKey(Order.id))
    receipt: Mapped[str]


class Shipment(Base):
    __tablename__ = "shipments"

    id: Mapped[int] = mapped_column(primary_key=True)
    order_id: Mapped[int] = mapped_column(ForeignKey(Order.id))


parts = dsn_parts()
engine: Final = create_async_engine(
    URL.create(
        "postgresql+asyncpg", username=parts.get("user"), password=parts.get("password"),
        database=parts.get("dbname"), query={"host": parts["host"], "port": parts.get("port", "5432")},
    ),
    # A frozen worker keeps the locks of its open transaction; PostgreSQL ends it after this time.
    connect_args={"server_settings": {"idle_in_transaction_session_timeout": "5s"}},
)  # fmt: skip
sessions: Final[async_sessionmaker[AsyncSession]] = async_sessionmaker(engine)


async def create_tables() -> None:
    """For the example alone; a service of yours has migrations."""
    from sqlalchemy.schema import CreateSchema

    async with engine.begin() as conn:
        await conn.execute(CreateSchema("shop", if_not_exists=True))
        await conn.run_sync(Base.metadata.create_all)
