"""The shop of examples/: its workers are killed and frozen in mid-job, and the rows are counted."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.support import freeze

SHOP = Path(__file__).parents[3] / "examples" / "django_shop"
ORDERS = 24

TAKE = """
import json
from django.test import Client
client = Client()
for number in range(24):
    order = {"customer": "Ada", "amount": number}
    assert client.post("/orders", json.dumps(order), content_type="application/json").status_code == 202
"""


EXPIRED = "select count(*) from faultline.entries where outcome = 'expired'"
TO_EXPIRE = """
select count(*)
from (select from faultline.active where claim is not null for no key update skip locked) as held
"""


class Shop:
    def __init__(self, dsn: str, log: Path) -> None:
        self._environment = {**os.environ, "FAULTLINE_DSN": dsn, "PROVIDER_SECONDS": "0.3"}
        self._environment.pop("DJANGO_SETTINGS_MODULE", None)  # of the tests beside this one
        self._log = log

    def manage(self, *args: str) -> None:
        done = subprocess.run(
            [sys.executable, "manage.py", *args], cwd=SHOP, env=self._environment, capture_output=True,
            text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    @contextmanager
    def worker(self, *, threads: int = 4) -> Iterator[subprocess.Popen[bytes]]:
        command = ["manage.py", "faultline_worker", "--lease", "2s", "--concurrency", str(threads)]
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, *command], cwd=SHOP, env=self._environment, stdout=log, stderr=log
            )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
                process.wait(60)


@pytest.fixture
def shop(empty_database: str, tmp_path: Path) -> Shop:
    shop = Shop(empty_database, tmp_path / "workers.log")
    shop.manage("migrate", "--run-syncdb", "--verbosity", "0")
    shop.manage("shell", "-v", "0", "-c", TAKE)
    return shop


@pytest.fixture
def ask(empty_database: str) -> Iterator[Callable[[str], Any]]:
    with psycopg.connect(empty_database, autocommit=True) as conn:
        yield lambda sql: conn.execute(sql.encode()).fetchone()[0]


def until(condition: Callable[[], bool], seconds: float = 90.0) -> None:
    give_up_at = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up_at, "it took too long"
        time.sleep(0.02)


def test_no_order_is_charged_twice_and_none_is_forgotten(shop: Shop, ask: Callable[[str], Any]) -> None:
    def running() -> int:
        return int(ask("select count(*) from faultline.jobs where state = 'running'"))

    def charged() -> int:
        return int(ask("select count(*) from shop_charge"))

    with shop.worker() as killed:
        until(lambda: charged() >= 2 and running() >= 2)
        killed.kill()
        killed.wait()
    with shop.worker() as frozen:
        until(lambda: charged() >= 4 and running() >= 2)
        freeze(frozen.pid)
        while not (
            at_stake := int(ask(TO_EXPIRE))
        ):  # each in the middle of its commit, which keeps its locks
            frozen.send_signal(signal.SIGCONT)
            until(lambda: running() >= 2)
            freeze(frozen.pid)
        expired = int(ask(EXPIRED))
        with shop.worker():
            until(lambda: ask(EXPIRED) >= expired + at_stake)
            frozen.send_signal(signal.SIGCONT)
            until(
                lambda: ask("select count(*) from faultline.jobs where state in ('queued', 'running')") == 0
            )

    assert ask("select count(*) from shop_order where not paid") == 0
    assert (charged(), ask("select count(distinct order_id) from shop_charge")) == (ORDERS, ORDERS)
    receipts = (
        ask("select count(*) from shop_receipt"),
        ask("select count(distinct order_id) from shop_receipt"),
    )
    assert receipts == (ORDERS, ORDERS)
    assert ask("select count(*) from faultline.jobs where state = 'dead'") == 0
    assert ask("select count(*) from faultline.ledger where slot = 0") == 2 * ORDERS
