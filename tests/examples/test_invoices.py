"""The plain script, killed and frozen in the middle of its transactions: each invoice is written once."""

import pytest

from tests.examples.programs import all_wait, is_sound, stalled
from tests.worker.harness import eventually, execute, rows

ORDERS = 12
AT_ONCE = 4

TABLE = "create table invoices (order_id int not null, written_by bigint not null)"
LOCK = "lock table invoices in share row exclusive mode"
WRITTEN = "select count(*), count(distinct order_id) from invoices"
SUCCEEDED = "select count(*) from faultline.ledger where outcome = 'succeeded'"
EXPIRED = "select count(*) from faultline.ledger where outcome = 'expired'"


def all_succeeded(dsn: str) -> bool:
    return rows(dsn, SUCCEEDED) == [(ORDERS,)]


@pytest.mark.timeout(240)
@pytest.mark.parametrize("fault", ["kill", "freeze"])
def test_each_invoice_is_written_once(database, start, fault):
    execute(database, TABLE)
    with stalled(database, LOCK):
        first = start("first", "invoices.py", str(ORDERS))
        all_wait(database, AT_ONCE)
        getattr(first, fault)()
    second = start("second", "invoices.py")
    eventually(lambda: all_succeeded(database))

    if fault == "freeze":
        first.wake()
        assert first.process.wait(60) == 0
    assert second.leave() == 0
    assert rows(database, WRITTEN) == [(ORDERS, ORDERS)]
    assert rows(database, EXPIRED) == [(AT_ONCE,)]
    assert is_sound(database)


def test_without_a_fault_it_ends_when_all_are_written(database, start):
    program = start("script", "invoices.py", "5")

    assert program.process.wait(60) == 0
    assert "with one: (5, 5)" in program.log.read_text()
