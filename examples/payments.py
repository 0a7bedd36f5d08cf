"""A payment that commits once: the order's row, the job's success and the ledger entry in one transaction.

    FAULTLINE_DSN=postgresql://... python examples/payments.py

The provider outside the database is given the job's idempotency key, the same in every attempt, and its
token, which only grows. Here the provider answers the first attempt with an error, after it took the money.
"""

import asyncio
import time
from datetime import timedelta

import psycopg

from faultline import Exponential, Faultline, Job

app = Faultline()

charged: dict[str, int] = {}


def provider(key: str, amount: int, fence: int) -> None:
    """A payment provider that honours idempotency keys, and whose first answer is lost."""
    first = key not in charged
    charged.setdefault(key, amount)
    if first:
        raise ConnectionError("the provider's answer was lost")


@app.task(queue="billing", max_attempts=5, retry=Exponential(first=timedelta(milliseconds=50)))
async def charge(job: Job, order_id: int, amount: int) -> None:
    provider(job.idempotency_key("charge"), amount, fence=job.token)
    async with job.complete(result={"charged": amount}) as conn:
        await conn.execute("update shop_orders set paid = paid + %s where id = %s", [amount, order_id])


async def main() -> None:
    dsn = app.settings.require_dsn()
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as conn:
        await conn.execute(
            "create table if not exists shop_orders (id int primary key, paid int not null default 0)"
        )
        order = int(time.time())  # a new one: a key names the same job for a day after it ended
        await conn.execute("insert into shop_orders values (%s)", [order])

        handle = await charge.using(key=f"order-{order}").aenqueue(order_id=order, amount=120)
        again = await charge.using(key=f"order-{order}").aenqueue(order_id=order, amount=120)
        print("the same job:", handle.id == again.id)

        working = asyncio.create_task(app.arun_worker(queues="billing", stop_after=2))
        await handle.aresult(timeout=30)
        await working
        print("result:", (await handle.ainfo()).result)

        found = await conn.execute("select paid from shop_orders where id = %s", [order])
        paid = await found.fetchone()
        print("paid:", paid and paid[0], "charges at the provider:", len(charged))
    await app.aclose()


if __name__ == "__main__":
    asyncio.run(main())
