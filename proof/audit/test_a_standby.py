"""A standby may be audited, and a promoted one holds: its higher tokens are no damage."""

from datetime import timedelta

import psycopg

from faultline.audit import AuditReport, examine
from faultline.store import calls
from faultline.store.migrate import migrate
from faultline.store.pool import Store
from tests.audit import lives
from tests.promises.standby import a_primary, a_standby_of
from tests.support import Clock, claim_one, enqueue


def audited(dsn: str) -> AuditReport:
    with psycopg.connect(dsn, autocommit=True) as conn:
        return examine(conn, bound=timedelta(hours=1))


def test_a_standby_holds_and_so_does_the_server_it_becomes_after_a_lossy_failover():
    with a_primary() as primary:
        primary.create_database("shop")
        dsn = primary.dsn("shop")
        migrate(dsn)
        store, clock = Store(dsn), Clock(dsn)
        with a_standby_of(primary) as standby:
            lives.crashes_and_succeeds(store, clock)
            running = lives.runs(store, clock)
            standby.catch_up(dsn)
            report = audited(standby.dsn("shop"))

            assert report.standby
            assert report.holds, str(report)
            assert report["OneEffect"].looked_at == 1

            standby.cut_off()
            lives.succeeds(store, clock)
            enqueue(store)
            store.close()
            standby.promote()
            promoted = Store(standby.dsn("shop"))
            promoted.run(calls.cancel(running))
            enqueue(promoted)
            promoted.run(calls.complete(claim_one(promoted), None))
            report = audited(standby.dsn("shop"))
            promoted.close()

    assert not report.standby
    assert report.holds, str(report)
    assert report["OneEffect"].looked_at == 2
