"""Rule 2, on real servers: a standby that lost the last claims is promoted; no token comes twice."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from faultline import errors
from faultline.store import calls
from faultline.store.migrate import migrate
from faultline.store.pool import Store
from tests.promises.standby import a_primary, a_standby_of
from tests.support import claim_one, enqueue


@contextmanager
def a_store(dsn: str) -> Iterator[Store]:
    store = Store(dsn)
    yield store
    store.close()


def test_a_promoted_standby_that_lost_the_last_claims_issues_higher_tokens():
    """The last two claims are committed and acknowledged, and the new primary never heard of them."""
    with a_primary() as primary, a_standby_of(primary) as standby, a_store(primary.dsn()) as old:
        migrate(primary.dsn())
        for _ in range(4):
            enqueue(old)
        replicated = claim_one(old)
        standby.catch_up(primary.dsn())
        standby.cut_off()
        lost = [claim_one(old), claim_one(old)]
        standby.promote()

        with a_store(standby.dsn()) as new:
            issued = [claim_one(new), claim_one(new)]

            assert [lease.job_id for lease in issued] == [lease.job_id for lease in lost]
            assert [replicated.token, *(lease.token for lease in lost)] == [1, 2, 3]
            assert [lease.token >> 40 for lease in issued] == [1, 1]
            assert issued[0].token < issued[1].token
            check_that_only_current_leases_commit(new, replicated, lost, issued)


def check_that_only_current_leases_commit(new, replicated, lost, issued):
    """G4: a worker of the old primary is refused if its claim was lost, and not if it was replicated."""
    for zombie in lost:
        with pytest.raises(errors.LeaseLost) as refusal:
            new.run(calls.complete(zombie, "null"))
        assert refusal.value.reason == "token_mismatch"
    for lease in (replicated, *issued):
        new.run(calls.complete(lease, "null"))
    with new.connection() as conn:
        assert conn.execute("select base, timeline from faultline.settings").fetchone() == (0, 2)
