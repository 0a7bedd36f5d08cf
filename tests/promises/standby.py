"""A primary to make standbys of; the standby itself is the drills'."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from faultline.embedded import EmbeddedServer
from faultline.errors import NoPostgres
from faultline.lab.drills.stage.standby import StandbyServer, a_standby_of, can_stand_by

__all__ = ["StandbyServer", "a_primary", "a_standby_of"]


@contextmanager
def a_primary() -> Iterator[EmbeddedServer]:
    """A small private server; the test is skipped where none can be made."""
    try:
        server = EmbeddedServer.open(fsync=False)
    except NoPostgres as error:
        pytest.skip(str(error))
    with server:
        if not can_stand_by(server):
            pytest.skip(f"{server.binaries} has no pg_basebackup")
        yield server
