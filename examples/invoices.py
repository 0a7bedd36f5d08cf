"""A plain script, threads and psycopg: each invoice is written once, whatever happens to the worker.

    FAULTLINE_DSN=postgresql://... python examples/invoices.py 20      # enqueue twenty, and do them
    FAULTLINE_DSN=postgresql://... python examples/invoices.py         # work until Ctrl-C

Kill or freeze the first in the middle: the second takes its jobs over when its leases have run out.
"""

import sys
from datetime import timedelta

import psycopg

from faultline import Faultline, Job

app = Faultline()

TABLE = "create table if not exists invoices (order_id int not null, written_by bigint not null)"


@app.task(queue="invoices")
def write(job: Job, order_id: int) -> None:
    """The invoice and the success commit together, on a connection that has nothing to do with Faultline."""
    with psycopg.connect(app.settings.require_dsn()) as conn:
        conn.execute("insert into invoices (order_id, written_by) values (%s, %s)", [order_id, job.token])
        job.complete_in(conn, result=f"invoice of order {order_id}")


def main(orders: int | None) -> int:
    with psycopg.connect(app.settings.require_dsn()) as conn:
        conn.execute(TABLE)
        if orders is not None:
            app.enqueue_many_in(conn, [write.new(order_id=order) for order in range(1, orders + 1)])
    code = app.run_worker(
        queues="invoices", concurrency=4, lease=timedelta(seconds=2), until_empty=orders is not None
    )
    with psycopg.connect(app.settings.require_dsn()) as conn:
        found = conn.execute("select count(*), count(distinct order_id) from invoices").fetchone()
    print("invoices, and orders with one:", found)
    app.close()
    return code


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else None))
