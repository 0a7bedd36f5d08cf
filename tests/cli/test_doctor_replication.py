"""`doctor` on replicated servers: standbys, slots, and the servers that a DSN names."""

import json
import time
from contextlib import contextmanager

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from faultline.doctor import replication_checks as judged
from faultline.doctor.replication_facts import HostFacts, ReplicationFacts, SlotFacts, StandbyFacts, hosts_of
from faultline.embedded import EmbeddedServer
from faultline.lab.drills.stage.standby import a_standby_of, can_stand_by
from faultline.store.driver.sqlstate import connect_reason
from faultline.store.migrate import migrate

SETTINGS = {"max_connections": "100", "wal_keep_size": "512MB"}
"""A standby without a slot that is slow on a busy machine still finds the WAL that it needs."""

STREAMING = "select exists (select from pg_stat_replication where state = 'streaming')"
MUCH_WAL = "select pg_logical_emit_message(false, 'much', repeat('x', 8 * 1024 * 1024))"


@pytest.fixture(scope="module")
def primary():
    with EmbeddedServer.open(fsync=False, settings=SETTINGS) as server:
        if not can_stand_by(server):
            pytest.skip("these PostgreSQL binaries have no pg_basebackup")
        migrate(server.dsn())
        yield server


@pytest.fixture(scope="module")
def standby(primary):
    """It is not promoted in any test but the one that has one of its own."""
    with a_standby_of(primary, "b") as running:
        running.catch_up(primary.dsn())  # the base backup may have had all of that: it may not stream yet
        with psycopg.connect(primary.dsn(), autocommit=True) as conn:
            assert eventually(lambda: conn.execute(STREAMING).fetchone(), (True,)) == (True,)
        yield running


@pytest.fixture
def examined(run):
    """What doctor found of one subject on these servers, and its exit code."""

    def examined(dsn, name):
        told = run("--output", "json", "--dsn", dsn, "doctor")
        found = [check for check in json.loads(told.stdout)["checks"] if check["name"] == name]
        assert all(bool(check["remedy"]) is (check["grade"] != "ok") for check in found)
        return [(check["grade"], check["said"]) for check in found]

    return examined


def execute(dsn, *statements):
    with psycopg.connect(dsn, autocommit=True) as conn:
        for statement in statements:
            conn.execute(statement)


def eventually(ask, wanted):
    give_up_at = time.monotonic() + 20
    while (found := ask()) != wanted and time.monotonic() < give_up_at:
        time.sleep(0.1)
    return found


@contextmanager
def set_to(server, setting, value):
    execute(server.dsn(), f"alter system set {setting} = '{value}'", "select pg_reload_conf()")
    try:
        yield
    finally:
        execute(server.dsn(), f"alter system reset {setting}", "select pg_reload_conf()")


def both(*dsns, **more):
    """One DSN that names all these servers."""
    each = [conninfo_to_dict(dsn) for dsn in dsns]
    hosts, ports = (",".join(str(known[name]) for known in each) for name in ("host", "port"))
    return make_conninfo(dsns[0], host=hosts, port=ports, **more)


def test_a_server_without_standbys_says_so(examined, database):
    assert examined(database, "replication") == [("ok", "none: no standby is connected to this server")]
    for name in ("standbys", "slots", "servers", "target_session_attrs"):
        assert examined(database, name) == []


def test_asynchronous_standbys_are_told_with_what_a_failover_may_lose(examined, primary, standby, run):
    mode = [("ok", "asynchronous, to b: a failover may lose the last moments")]
    streams = [("ok", "b is streaming, at most 0 MiB behind")]

    # A setting of the test before is taken back by a reload, and a busy standby catches up in its time.
    assert eventually(lambda: examined(primary.dsn(), "replication"), mode) == mode
    assert eventually(lambda: examined(primary.dsn(), "standbys"), streams) == streams
    assert "asynchronous, to b" in run("--dsn", primary.dsn(), "doctor").stdout


@pytest.mark.parametrize(("setting", "mode"), [("ANY 1 (b, c)", "quorum"), ("FIRST 1 (b)", "priority")])
def test_synchronous_standbys_are_told_by_name_and_mode(examined, primary, standby, setting, mode):
    wanted = [
        ("ok", f"synchronous by {mode}: commits wait for 1 of b; none to spare: when one goes, commits wait")
    ]

    with set_to(primary, "synchronous_standby_names", setting):
        assert eventually(lambda: examined(primary.dsn(), "replication"), wanted) == wanted


def test_synchronous_standbys_that_do_not_stream_make_every_commit_wait(examined, primary, standby, run):
    with set_to(primary, "synchronous_standby_names", "ANY 2 (b, c)"):
        eventually(lambda: examined(primary.dsn(), "replication")[0][0], "bad")
        told = run("--dsn", primary.dsn(), "doctor")

    assert told.exit_code == 3
    assert "each commit waits for 2, and 1 stream" in " ".join(told.stdout.split())


def test_a_standby_that_does_not_replay_is_behind(examined, primary, standby, monkeypatch):
    monkeypatch.setattr(judged, "BEHIND_BYTES_MAX", 1024**2)
    execute(standby.dsn(), "select pg_wal_replay_pause()")
    try:
        execute(primary.dsn(), MUCH_WAL, "select pg_switch_wal()")
        ((grade, said),) = examined(primary.dsn(), "standbys")
    finally:
        execute(standby.dsn(), "select pg_wal_replay_resume()")

    assert grade == "warn"
    assert said.startswith("b has not replayed ")


def test_a_login_that_may_not_see_standbys_is_told_so(examined, primary, standby):
    """PostgreSQL shows it their names alone; that is no error, and no word that all is well."""
    execute(primary.dsn(), "drop role if exists looker", "create role looker login")
    execute(primary.dsn(), "grant usage on schema faultline to looker")
    execute(primary.dsn(), "grant execute on all functions in schema faultline to looker")
    looker = make_conninfo(primary.dsn(), user="looker")
    try:
        ((grade, said),) = examined(looker, "standbys")
        execute(primary.dsn(), "grant pg_monitor to looker")
        seen = examined(looker, "standbys")
    finally:
        execute(primary.dsn(), "drop owned by looker", "drop role looker")

    assert (grade, said) == ("warn", "b is connected; this login may not see the state of standbys")
    assert seen == [("ok", "b is streaming, at most 0 MiB behind")]


def test_an_inactive_slot_is_reported_when_it_holds_much(examined, primary, monkeypatch):
    execute(primary.dsn(), "select pg_create_physical_replication_slot('idle', true)")
    try:
        few = examined(primary.dsn(), "slots")
        monkeypatch.setattr(judged, "HELD_BYTES_MAX", 1024**2)
        execute(primary.dsn(), MUCH_WAL)
        ((grade, said),) = examined(primary.dsn(), "slots")
    finally:
        execute(primary.dsn(), "select pg_drop_replication_slot('idle')")

    assert [(grade, said[:16]) for grade, said in few] == [("ok", "1, none holds mo")]
    assert grade == "warn"
    assert said.startswith("nothing reads idle, and it holds ")


@pytest.fixture
def forgetful():
    """A server that keeps no WAL for a standby: what a slot may lose, a standby would lose too."""
    with EmbeddedServer.open(fsync=False) as server:
        migrate(server.dsn())
        yield server


def test_a_slot_that_lost_its_wal_is_bad(examined, forgetful):
    primary = forgetful  # the one that all share would take the WAL from its standby
    execute(primary.dsn(), "select pg_create_physical_replication_slot('late', true)")
    try:
        with set_to(primary, "max_slot_wal_keep_size", "16MB"):
            for _ in range(4):
                execute(primary.dsn(), MUCH_WAL, "select pg_switch_wal()")
            execute(primary.dsn(), "checkpoint")
            found = examined(primary.dsn(), "slots")
    finally:
        execute(primary.dsn(), "select pg_drop_replication_slot('late')")

    assert found == [("bad", "late has lost WAL that its receiver needs")]
    assert examined(primary.dsn(), "slots") == []


def test_a_standby_in_the_dsn_is_fine_and_a_second_primary_is_bad(examined, primary, run):
    with a_standby_of(primary, "b2") as second:
        named = both(second.dsn(), primary.dsn(), target_session_attrs="read-write")
        first_name, second_name = (
            "{host}:{port}".format(**conninfo_to_dict(dsn)) for dsn in (primary.dsn(), second.dsn())
        )
        before = examined(named, "servers")
        target = examined(named, "target_session_attrs")
        second.cut_off()
        second.promote()
        after = examined(named, "servers")
        exit_code = run("--dsn", named, "doctor").exit_code

    assert before == [("ok", f"{first_name} takes writes, and no other; standing by: {second_name}")]
    assert target == [("ok", "read-write")]
    names = " and ".join(sorted((first_name, second_name)))
    assert after == [("bad", f"{names} take writes: two primaries, two histories")]
    assert exit_code == 3


def test_several_servers_without_target_session_attrs_are_told(examined, primary, standby, monkeypatch):
    named = both(primary.dsn(), standby.dsn())

    ((grade, said),) = examined(named, "target_session_attrs")

    assert (grade, said[:32]) == ("warn", "any, though the DSN names 2 serv")
    monkeypatch.setenv("PGTARGETSESSIONATTRS", "primary")
    assert examined(named, "target_session_attrs") == [("ok", "primary")]


def test_servers_are_told_also_where_none_takes_writes(examined, standby):
    """Which is when they are wanted most: after a failover that did not happen."""
    named = both(
        standby.dsn(), make_conninfo(standby.dsn(), host="/nowhere"), target_session_attrs="read-write"
    )

    none, away = examined(named, "servers")

    assert none == ("bad", "none of those that the DSN names takes writes")
    assert away[0] == "warn"
    assert away[1].startswith("/nowhere:5432 could not be asked whether it takes writes: ")
    assert away[1].endswith("No such file or directory")


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (
            'connection to server at "10.0.0.2", port 5432 failed: Connection refused\n'
            "\tIs the server running on that host and accepting TCP/IP connections?",
            'connection to server at "10.0.0.2", port 5432 failed: Connection refused',
        ),
        (
            "connection failed: ...\nMultiple connection attempts failed. All failures were:\n"
            "- host: 'db2', port: '5432', hostaddr: '10.0.0.2': connection failed: Connection refused\n"
            "\tIs the server running on that host and accepting TCP/IP connections?",
            "- host: 'db2', port: '5432', hostaddr: '10.0.0.2': connection failed: Connection refused",
        ),
        ("connection timeout expired", "connection timeout expired"),
        ("", "OperationalError"),
        (
            'password authentication failed\npassword retrieved from file "/x"',
            "password authentication failed",
        ),
    ],
)
def test_of_what_the_driver_says_the_line_with_the_reason_is_told(said, reason):
    """Below the reason stands a question, indented with a tab, which doctor showed instead."""
    assert connect_reason(psycopg.OperationalError(said)) == reason


def test_a_server_that_tells_little_of_itself_is_known_as_one_that_takes_writes(examined, primary):
    """Some managed services refuse these functions."""
    primary.create_database("untold")
    missing = ("pg_control_system", "pg_current_wal_lsn")
    execute(
        primary.dsn("untold"),
        *(f"alter function pg_catalog.{each}() rename to {each}_away" for each in missing),
    )
    named = both(primary.dsn("untold"), make_conninfo(primary.dsn(), host="/nowhere"))

    (grade, said), *_ = examined(named, "servers")

    assert (grade, said.partition(" takes ")[2]) == ("ok", "writes, and no other")


def test_two_names_of_one_server_are_one_primary(examined, primary):
    named = both(primary.dsn(), primary.tcp_dsn(), target_session_attrs="read-write")
    password = conninfo_to_dict(primary.tcp_dsn())["password"]

    ((grade, _),) = examined(make_conninfo(named, password=password), "servers")

    assert grade == "ok"


def test_a_password_in_the_dsn_is_in_no_finding(run, primary, standby):
    named = both(primary.dsn(), make_conninfo(standby.dsn(), host="/nowhere"), password="topsecret")

    assert "topsecret" not in run("--output", "json", "--dsn", named, "doctor").output


@pytest.mark.parametrize(
    ("dsn", "names"),
    [
        ("host=a,b", ["a", "b"]),
        ("host=a,b port=1,2", ["a", "b"]),
        ("postgresql://x@a:1,b:2/shop?target_session_attrs=read-write", ["a", "b"]),
        ("host=a,a", ["a"]),
        ("host=a", ["a"]),
    ],
)
def test_each_server_is_asked_by_a_dsn_of_its_own(dsn, names):
    found = [conninfo_to_dict(each) for each in hosts_of(dsn)]

    assert [known["host"] for known in found] == names
    assert {known["target_session_attrs"] for known in found} == {"any"}


STANDBY = StandbyFacts("b", "streaming", "async", 0, None)
WELL = ReplicationFacts(False, "", True, [STANDBY], [SlotFacts("b", True, "reserved", 0)])


def replication(**changes):
    return ReplicationFacts(
        **{name: changes.get(name, getattr(WELL, name)) for name in ReplicationFacts.__slots__}
    )


@pytest.mark.parametrize(
    ("found", "grade"),
    [
        ([judged.replication(None)], "ok"),
        ([judged.replication(WELL)], "ok"),
        ([judged.replication(replication(synchronous_standby_names="b", sees_standbys=False))], "warn"),
        (list(judged.standbys(replication(standbys=[STANDBY._replace(state="catchup")]))), "warn"),
        (list(judged.standbys(replication(standbys=[STANDBY._replace(lag_seconds=31.0)]))), "warn"),
        (list(judged.standbys(WELL)), "ok"),
        (list(judged.slots(WELL)), "ok"),
        (list(judged.slots(replication(held=[SlotFacts("b", True, "extended", 2 * 1024**3)]))), "ok"),
        (list(judged.slots(replication(held=[SlotFacts("b", False, "extended", 2 * 1024**3)]))), "warn"),
        (list(judged.slots(replication(held=[SlotFacts("b", False, "unreserved", 2)]))), "bad"),
        (list(judged.hosts([HostFacts("a:1", True, False, "x"), HostFacts("b:1", False, True, "y")])), "ok"),
    ],
)
def test_each_of_these_is_graded_and_what_is_not_ok_comes_with_a_remedy(found, grade):
    (check,) = found

    assert check.grade == grade
    assert bool(check.remedy) is (grade != "ok")
