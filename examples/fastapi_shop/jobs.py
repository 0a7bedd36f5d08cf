"""The shop's jobs. Run a worker for them: `faultline worker fastapi_shop.jobs:app`."""

from sqlalchemy.ext.asyncio import AsyncSession

from fastapi_shop import provider
from fastapi_shop.database import Order, Payment, Shipment, sessions
from faultline import Faultline, Job

app = Faultline()
app.transactions.register(AsyncSession, sessions)


@app.task(queue="orders")
async def charge(job: Job, order_id: int) -> None:
    """Take the money outside any transaction; then the payment, the next job and the success in one."""
    async with sessions() as session:
        order = await session.get_one(Order, order_id)
        amount = order.amount
    receipt = await provider.charge(job.idempotency_key("charge"), amount)

    async with sessions.begin() as session:
        order = await session.get_one(Order, order_id, with_for_update=True)
        order.state = "paid"
        session.add(Payment(order_id=order_id, receipt=receipt))
        await session.flush()
        await ship.aenqueue_in(session, order_id)
        await job.complete_in(session, result=receipt)


@app.task(queue="orders")
async def ship(session: AsyncSession, order_id: int) -> None:
    """Nothing outside is asked: the worker begins the transaction, completes the job in it, and commits."""
    order = await session.get_one(Order, order_id, with_for_update=True)
    order.state = "shipped"
    session.add(Shipment(order_id=order_id))
