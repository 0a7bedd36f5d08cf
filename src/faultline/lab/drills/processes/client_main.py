"""A client process for a drill; its order comes as JSON on stdin.

It submits one key from many threads at once, half of them with other args, and reports the answers. With
`holds` it first takes the key in a transaction of its own and does not commit it.
"""

import logging
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Any

from faultline.errors import FaultlineError, KeyConflict
from faultline.lab.drills.processes.worker_main import begin
from faultline.lab.drills.stage.barriers import pass_through
from faultline.lab.drills.workloads import app, transfer
from faultline.store.driver.connect import connect
from faultline.telemetry import emit


def main() -> int:
    """Take the order, pass the gate, submit, and stay until the drill has gone."""
    order = begin()
    logging.getLogger("faultline.events").setLevel(logging.INFO)  # each single enqueue is not worth a line
    app.connect_to(order["dsn"])
    if order.get("holds"):
        threading.Thread(target=_hold, args=[order], daemon=True).start()
    amounts = [order["amounts"][number % len(order["amounts"])] for number in range(order["threads"])]
    with ThreadPoolExecutor(len(amounts)) as threads:
        answers = Counter(chain(*threads.map(lambda amount: _submit(order, amount), amounts)))
    for (amount, answer, named), times in answers.items():
        emit("submitted", worker=order["name"], amount=amount, answer=answer, named=named, times=times)
    app.close()
    return 0


def _hold(order: dict[str, Any]) -> None:
    """Take the key and do not commit it: the next request for it has to wait."""
    with connect(order["dsn"]) as conn, conn.transaction():
        taken = _task(order).enqueue_in(conn, order["amounts"][0])
        emit("key_taken", worker=order["name"], job_id=taken.id, backend=conn.info.backend_pid)
        pass_through(conn, order["holds"])


def _submit(order: dict[str, Any], amount: int) -> list[tuple[int, str, int | None]]:
    """Submit again and again; the amount, what came back, and which job it named."""
    if order.get("gate"):
        with connect(order["dsn"]) as conn:
            pass_through(conn, order["gate"])
    return [(amount, *_answer(order, amount)) for _ in range(order["times"])]


def _answer(order: dict[str, Any], amount: int) -> tuple[str, int | None]:
    try:
        return "job", _task(order).enqueue(amount).id
    except KeyConflict:
        return "conflict", None
    except FaultlineError as error:
        return str(error), None


def _task(order: dict[str, Any]) -> Any:
    return transfer.using(queue=order["queue"], key=order["key"])


if __name__ == "__main__":
    sys.exit(main())
