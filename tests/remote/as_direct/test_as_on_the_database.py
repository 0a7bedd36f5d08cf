"""The worker's own tests, once more over a server: what they say of a worker is true of this one too.

With a DSN beside it, as handlers that use job.complete need one.
"""

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from tests.remote.harness import Served
from tests.worker import (
    harness,
    test_bad_jobs,
    test_concurrency,
    test_handlers,
    test_lost_leases,
    test_outcomes,
    test_settling,
    test_stopping,
    test_transaction,
)

pytestmark = pytest.mark.long

MODULES = (
    test_bad_jobs, test_concurrency, test_handlers, test_lost_leases, test_outcomes, test_settling,
    test_stopping, test_transaction,
)  # fmt: skip

ABOUT_THE_DATABASE_ALONE = {
    # A server is on the list of workers as well.
    "test_a_worker_is_known_while_it_is_there_and_said_to_be_gone_after",
}


def _is_ours(name: str, thing: Any) -> bool:
    """Tests and their fixtures, but for those that cut a way to the database, or bring their own program."""
    if type(thing).__name__ == "FixtureFunctionDefinition":
        return True
    if not name.startswith("test_") or name in ABOUT_THE_DATABASE_ALONE:
        return False
    return not {"proxy", "real_worker"} & set(inspect.signature(thing).parameters)


for _module in MODULES:
    for _name, _thing in vars(_module).items():
        if _is_ours(_name, _thing):
            assert _name not in globals(), _name
            globals()[_name] = _thing


@pytest.fixture(autouse=True)
def over_a_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every worker of these tests works over a server before its database."""
    servers: dict[str, Served] = {}
    make = harness.InProcess.__init__

    def made(self: harness.InProcess, dsn: str, *rest: Any, **how: Any) -> None:
        served = servers.get(dsn) or servers.setdefault(dsn, Served(dsn))
        make(self, dsn, *rest, backend=served.backend(dsn), **how)

    monkeypatch.setattr(harness.InProcess, "__init__", made)
    yield
    for served in servers.values():
        served.close()
