"""The shop over HTTP. An order and its job commit together, before the answer is sent.

    uvicorn fastapi_shop.web:web

SHOP_WORKER=5 runs a worker for five jobs at once in this process as well, for small deployments. Operators
look at the jobs under /faultline with SHOP_OPERATOR_PASSWORD.
"""

import os
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Annotated

from fastapi import FastAPI, HTTPException, Request
from fastapi.security import HTTPBasic
from pydantic import BaseModel, PositiveInt
from sqlalchemy.ext.asyncio import AsyncSession

from fastapi_shop import provider
from fastapi_shop.database import Order, create_tables, engine, sessions
from fastapi_shop.jobs import app, charge
from faultline.integrations.fastapi import Caller, api, transaction

Session = Annotated[AsyncSession, transaction(sessions.begin)]


@asynccontextmanager
async def lifespan(web: FastAPI) -> AsyncIterator[None]:
    await create_tables()
    await provider.open_account()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(engine.dispose)
        await stack.enter_async_context(app)
        if concurrency := int(os.environ.get("SHOP_WORKER", "0")):
            await stack.enter_async_context(app.worker(concurrency=concurrency))
        yield


async def operators(request: Request) -> Caller | None:
    """Who may look at the jobs, and act on them."""
    shown = await HTTPBasic()(request)
    password = os.environ.get("SHOP_OPERATOR_PASSWORD", "")
    if shown is None or not password or not secrets.compare_digest(shown.password, password):
        raise HTTPException(401, headers={"WWW-Authenticate": "Basic"})
    return Caller(shown.username, frozenset({"read", "operate"}), frozenset({"orders"}))


web = FastAPI(title="Shop", lifespan=lifespan)
web.mount("/faultline", api(app, authorize=operators))


class NewOrder(BaseModel):
    amount: PositiveInt


class Placed(BaseModel):
    order_id: int
    job_id: int


@web.post("/orders", status_code=201)
async def place(new: NewOrder, session: Session) -> Placed:
    order = Order(amount=new.amount)
    session.add(order)
    await session.flush()  # the order has its id from here on
    handle = await charge.aenqueue_in(session, order.id)
    return Placed(order_id=order.id, job_id=handle.id)


@web.get("/orders/{order_id}")
async def look(order_id: int, session: Session) -> str:
    order = await session.get(Order, order_id)
    if order is None:
        raise HTTPException(404)
    return order.state
