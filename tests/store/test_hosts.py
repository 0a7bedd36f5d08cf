"""One DSN with several hosts: how it is taken apart, and which of them is chosen."""

import time

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from faultline.errors import CannotConnect
from faultline.store.driver.connect import connect
from faultline.store.servers import hosts
from faultline.store.servers.dsn_hosts import name_of, split
from faultline.store.servers.hosts import Hosts, SecondLook, ServerReply, ServerState


def told(conninfo, *names):
    return [tuple(conninfo_to_dict(host).get(name) for name in names) for host in split(conninfo)]


def test_hosts_have_their_own_ports_or_share_one():
    assert told("host=a,b port=1,2", "host", "port") == [("a", "1"), ("b", "2")]
    assert told("host=a,b port=5", "host", "port") == [("a", "5"), ("b", "5")]
    assert told("postgresql://u@a:1,b:2/shop", "host", "port") == [("a", "1"), ("b", "2")]


def test_addresses_go_with_their_names_and_the_rest_is_for_all():
    dsn = "host=a,b hostaddr=10.0.0.1,10.0.0.2 sslmode=verify-full sslrootcert=/ca passfile=/pass user=u"

    assert told(dsn, "host", "hostaddr", "sslmode", "sslrootcert", "passfile", "user") == [
        ("a", "10.0.0.1", "verify-full", "/ca", "/pass", "u"),
        ("b", "10.0.0.2", "verify-full", "/ca", "/pass", "u"),
    ]
    assert told("hostaddr=10.0.0.1,10.0.0.2", "hostaddr") == [("10.0.0.1",), ("10.0.0.2",)]


def test_sockets_are_hosts_too():
    assert told("host=/run/a,/run/b", "host") == [("/run/a",), ("/run/b",)]


def test_hosts_may_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("PGHOST", "a,b")
    monkeypatch.setenv("PGPORT", "1,2")

    assert told("dbname=shop", "host", "port") == [("a", "1"), ("b", "2")]


@pytest.mark.parametrize(
    "dsn",
    [
        "host=a",
        "host=/run/a port=5432",
        "dbname=shop",
        "host=a,b port=1,2,3",
        "host=a,b hostaddr=10.0.0.1",
        "host=a,b target_session_attrs=standby",
        "host=a,b target_session_attrs=any",
        "service=shop",
    ],
)
def test_what_libpq_decides_by_its_own_rules_is_left_to_it(dsn):
    assert split(dsn) == (dsn,)


@pytest.mark.parametrize("wanted", ["", "target_session_attrs=read-write", "target_session_attrs=primary"])
def test_whether_the_primary_is_asked_for_or_not_it_is_meant(wanted):
    assert told(f"host=a,b {wanted}", "target_session_attrs") == [("any",), ("any",)]


A, B, C = split("host=a,b,c dbname=choice")


def here(epoch, token=1, *, read_only=False, cluster=7):
    return ServerReply(ServerState(read_only, cluster, epoch, token))


@pytest.fixture
def known(monkeypatch):
    monkeypatch.setattr(hosts, "EPOCHS", hosts.Epochs())
    return Hosts("host=a,b,c dbname=choice")


def test_the_newest_that_takes_writes_is_chosen(known):
    assert known.newest({A: here(2), B: here(3), C: here(9, read_only=True)}) == B
    assert known.newest({A: here(2, token=5), B: here(2, token=6)}) == B
    assert known.newest({A: here(2), B: here(2)}) == A
    assert known.newest({A: ServerReply(None, "refused"), B: here(1, read_only=True)}) is None


def test_a_lower_epoch_than_was_seen_is_never_chosen(known):
    known.admit(here(3).state)

    assert known.newest({A: here(2)}) is None
    assert known.newest({A: here(2), C: here(3)}) == C
    with pytest.raises(hosts.StalePrimary):
        known.admit(here(2).state)


def test_another_cluster_has_epochs_of_its_own(known):
    """After pg_upgrade, or a dump that was restored: there is nothing to compare."""
    known.admit(here(3).state)

    assert known.newest({A: here(1, cluster=8)}) == A


def judged(known, monkeypatch, answers, silent_for=5.0, host=A):
    monkeypatch.setattr(known, "survey", lambda seconds: answers)
    return SecondLook(known, host, here(2).state, 5.0, 8.0, 0.0).judge(silent_for)


def test_a_second_look_waits_for_a_server_that_lives(known, monkeypatch):
    assert judged(known, monkeypatch, {A: here(2), B: here(2, read_only=True)}, 60.0) == (None, 5.0)
    assert judged(known, monkeypatch, {A: ServerReply(None, "too many clients")}, 60.0) == (None, 5.0)


def test_a_second_look_leaves_for_a_newer_one_also_from_a_server_that_lives(known, monkeypatch):
    for answers in ({B: here(3)}, {A: here(2), B: here(3)}, {A: here(2, read_only=True), B: here(2)}):
        reason, _ = judged(known, monkeypatch, answers)
        assert reason is not None
        assert "b takes writes now" in reason


def test_a_second_look_gives_up_a_server_that_answers_no_call_only_after_a_while(known, monkeypatch):
    assert judged(known, monkeypatch, {B: here(2, read_only=True)}) == (None, 0.0)
    reason, _ = judged(known, monkeypatch, {B: here(2, read_only=True)}, 8.0)
    assert reason == "no answer for 8 s, nor to a new connection"


def test_what_was_connected_to_a_server_before_it_was_given_up_is_not_used_again(known):
    """Else each idle connection of a pool would cost a caller the whole patience."""
    look = SecondLook(known, A, None, 5.0, 8.0, time.monotonic())
    assert not look.is_stale

    known.leave(A)

    assert look.is_stale
    assert not look._replace(host=B).is_stale
    assert not look._replace(made_at=time.monotonic()).is_stale


def test_a_dsn_of_several_hosts_finds_the_one_that_is_there(database):
    """The first host has no listener, and the schema and our function are not yet known to be there."""
    there = conninfo_to_dict(database)
    dsn = psycopg.conninfo.make_conninfo(
        database, host=f"/nowhere,{there['host']}", port=f"1,{there['port']}"
    )
    with connect(dsn) as conn:
        assert conn.info.host == there["host"]
        conn.execute("drop function faultline.server_state")
    time.sleep(hosts.FRESH_SECONDS)
    with connect(dsn) as conn:
        assert conn.info.host == there["host"]


def test_where_no_host_can_be_used_each_is_told_with_its_reason():
    with pytest.raises(
        CannotConnect, match=r"none of 2 hosts takes writes: /nowhere: .*; /nowhere/either: "
    ) as caught:
        connect("host=/nowhere,/nowhere/either dbname=shop password=hidden")

    assert "hidden" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert name_of("host=/nowhere password=hidden") == "/nowhere"
