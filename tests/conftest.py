"""Fixtures for every test: one server for the run, one migrated template, a database equal to it a test.

Set FAULTLINE_TEST_DSN to run on a server of your own (its role must be allowed to create databases), or
FAULTLINE_PG_BIN to have the embedded server made from other binaries. FAULTLINE_TEST_TEMPLATE names a
database on a server of your own that is migrated already, to be copied.
"""

import gc
import logging
import os
import random
import secrets
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from zlib import crc32

import psycopg
import pytest

from faultline.store.pool import Store
from scripts import tools
from tests import warm_processes
from tests.recycled_databases import Preparation, RecycledDatabases
from tests.servers import BorrowedServer, OwnServer, Server, make_once
from tests.support import Clock, install_clock

tools.add_to_path()  # before test modules are read: they ask what there is

MEMORY_WANTED = 2 * 1024**3
NOTHING_RUNS_IN = ("sql", "promises", "audit")
"""Folders whose tests start no worker and no watchdog: nothing there waits for the database's clock."""
OUR_LOGGERS = ("faultline", "faultline.events", "faultline.worker", "faultline.watchdog")


def pytest_configure() -> None:
    """Let a Ctrl-C reach what tests start, as from a terminal.

    A shell without job control starts a command that it puts in the background (`make test &`, `nohup`) with
    SIGINT ignored, and every process below it inherits that.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    """Commands that run inside a test configure logging for good: the next test must not log each job."""
    root = logging.getLogger()
    handlers, level = [*root.handlers], root.level
    levels = {name: logging.getLogger(name).level for name in OUR_LOGGERS}
    yield
    for added in [known for known in root.handlers if known not in handlers]:
        root.removeHandler(added)
    root.setLevel(level)
    for name, before in levels.items():
        logging.getLogger(name).setLevel(before)


def pytest_collection_finish() -> None:
    """Seven thousand tests stay as they are: a collection of garbage need not look through them each time."""
    gc.collect()
    gc.freeze()


def pytest_runtest_setup() -> None:
    warm_processes.install()


def pytest_report_header() -> str | None:
    seed = os.environ.get("FAULTLINE_TEST_ORDER")
    return f"random order: FAULTLINE_TEST_ORDER={seed}" if seed else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where processes share the tests out, files that wait are spread among files that compute.

    In the order of their names the last third of a run would be all waiting, with the cores idle. With a seed
    in FAULTLINE_TEST_ORDER files come in random order, and so do the tests of each: a file's own fixtures are
    still made once. Every process has the same seed, so all of them count in the same order.
    """
    if seed := os.environ.get("FAULTLINE_TEST_ORDER"):
        chance = random.Random(seed)
        files = {item.nodeid.partition("::")[0]: chance.random() for item in items}
        chance.shuffle(items)
        items.sort(key=lambda item: files[item.nodeid.partition("::")[0]])
    elif "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=lambda item: crc32(item.nodeid.partition("::")[0].encode()))


@pytest.fixture(autouse=True)
def ctrl_c() -> Iterator[None]:
    """What a test does to SIGINT ends with it: processes started later would inherit that it is ignored."""
    before = signal.getsignal(signal.SIGINT)
    yield
    if signal.getsignal(signal.SIGINT) is not before:
        signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def server(testrun_uid: str) -> Iterator[Server]:
    """One server for the run: the first process that asks starts it, others join, the last one stops it."""
    if dsn := os.environ.get("FAULTLINE_TEST_DSN"):
        with closing(BorrowedServer(dsn)) as borrowed:
            yield borrowed
        return
    folder = _quick_folder() / f"faultline-tests-{testrun_uid}"
    # Without fsync: nothing here outlives the run. Crash drills start servers of their own, with it.
    # The order of commits is written down for the explorer, which asks what came first.
    settings = {"max_connections": "400", "track_commit_timestamp": "on"}
    with OwnServer.open(folder, fsync=False, keep=False, settings=settings) as ours:
        yield ours


def _quick_folder() -> Path:
    """In memory where there is room for it: a database a test then costs half as much."""
    memory = Path("/dev/shm")
    if memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > MEMORY_WANTED:
        return memory
    return Path(tempfile.gettempdir())


@pytest.fixture(scope="session")
def template(server: Server, testrun_uid: str, worker_id: str) -> Iterator[str]:
    """The name of a migrated database without connections, made once for the run."""
    if ready := os.environ.get("FAULTLINE_TEST_TEMPLATE"):
        yield ready
        return
    borrowed = isinstance(server, BorrowedServer)
    name = f"faultline_template_{testrun_uid[:12]}" + (f"_{worker_id}" if borrowed else "")
    make_once(server, name, None, _migrate)
    yield name
    if borrowed:
        server.drop_database(name)


def _migrate(dsn: str) -> None:
    from faultline.store.migrate import migrate

    migrate(dsn)


@pytest.fixture(scope="session")
def recycled(server: Server, template: str) -> Iterator[RecycledDatabases]:
    """The databases that tests of this process have used and left."""
    with closing(RecycledDatabases(server, template)) as databases:
        yield databases


@pytest.fixture
def prepared() -> tuple[Preparation, ...]:
    """What this folder's tests find in their databases, beside our schema."""
    return ()


@pytest.fixture
def database(
    request: pytest.FixtureRequest,
    server: Server,
    recycled: RecycledDatabases,
    prepared: tuple[Preparation, ...],
) -> Iterator[str]:
    """The DSN of a database of this test's own, migrated and empty."""
    if "clock" in request.fixturenames:
        prepared = (*prepared, install_clock)
    with recycled.lent(prepared) as name:
        yield server.dsn(name)


@pytest.fixture
def empty_database(server: Server) -> Iterator[str]:
    """The DSN of a database of this test's own in which Faultline was never installed."""
    yield from a_database(server, None)


def a_database(server: Server, template: str | None) -> Iterator[str]:
    """For fixtures: the DSN of a fresh database, dropped afterwards."""
    name = f"test_{secrets.token_hex(6)}"
    server.create_database(name, template)
    yield server.dsn(name)
    server.drop_database(name)


@pytest.fixture(scope="module")
def shared(server: Server, template: str) -> Iterator[str]:
    """The DSN of one database for a whole module, where the point of its tests is that nothing changes."""
    yield from a_database(server, template)


@pytest.fixture
def store(database: str) -> Iterator[Store]:
    """Calls carried to the test's own database."""
    store = Store(database)
    yield store
    store.close()


@pytest.fixture
def db(database: str) -> Iterator[psycopg.Connection[Any]]:
    """A plain connection, as a person with psql has it."""
    with psycopg.connect(database, autocommit=True) as conn:
        yield conn


@pytest.fixture
def clock(database: str, request: pytest.FixtureRequest) -> Clock:
    """The database's clock, to be moved rather than waited for."""
    return Clock(database, 0.01 if request.path.parent.name in NOTHING_RUNS_IN else 1.0)
