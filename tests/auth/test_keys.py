"""A key is shown once, kept as its hash, and ends; two of a name live only while one replaces the other."""

import hashlib
import inspect
import re
from datetime import timedelta

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from faultline.errors import InputError, JobNotFound, WrongState
from faultline.server.auth import api_keys, authenticator, mint
from faultline.store import calls
from faultline.store.pool import Store
from tests.support import NOW, all_at_once, contents

DAY = timedelta(days=1)


def test_a_key_names_itself_and_holds_32_random_bytes():
    made = [mint() for _ in range(50)]

    for key in made:
        assert re.fullmatch(r"flk_[0-9a-f]{12}_[A-Za-z0-9_-]{43}", key.text)
        assert api_keys.id_of(key.text) == key.id
    assert len({key.id for key in made}) == len({key.text for key in made}) == 50


def test_a_database_knows_the_hash_and_never_the_key(made, database):
    key = made()

    kept = repr(contents(database))

    assert hashlib.sha256(key.text.encode()).hexdigest() in kept
    assert key.text not in kept
    assert key.text[17:] not in kept


def test_a_list_of_keys_has_no_hash(made, store):
    key = made()

    shown = repr(store.run(calls.list_keys(gone=True)))

    assert key.id in shown
    assert key.hash.hex() not in shown
    assert repr(key.hash) not in shown


def test_a_key_is_compared_in_constant_time():
    """S12: by a comparison that does not end at the first difference, of hashes that are always as long."""
    source = inspect.getsource(authenticator)

    assert "hmac.compare_digest(" in source
    assert "== found.hash" not in source
    assert len({len(api_keys.hash_of(text)) for text in ("", "flk_", "x" * 10_000)}) == 1


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"scopes": []}, "scopes among"),
        ({"scopes": ["root"]}, "scopes among"),
        ({"scopes": ["read", None]}, "scopes among"),
        ({"queues": []}, "all queues or for 1 to 1000"),
        ({"queues": ["bad name"]}, "queue name"),
        ({"name": ""}, "1 to 100"),
        ({"name": "x" * 101}, "1 to 100"),
        ({"name": "two\nlines"}, "printable"),
        ({"id": "C0FFEE"}, "12 hexadecimal"),
        ({"hash": b"plain"}, "sha 256"),
    ],
)
def test_a_key_outside_the_rules_is_refused_by_name(store, database, wrong, sentence):
    before = contents(database)
    asked = {"id": "c0ffeec0ffee", "hash": bytes(32), "name": "n", "scopes": ["read"], "queues": None}

    with pytest.raises(InputError, match=sentence):
        store.run(calls.create_key(**{**asked, **wrong}))

    assert contents(database) == before


def test_a_key_that_has_expired_before_it_was_made_is_refused(made, clock):
    with pytest.raises(InputError, match="expired before"):
        made(expires_at=clock.now() - DAY)


def test_a_name_has_one_live_key(made, store):
    first = made("ops")

    with pytest.raises(WrongState, match="Rotate it"):
        made("ops")

    store.run(calls.revoke_key(first.id))
    made("ops")


def test_two_sessions_that_make_the_same_name_at_once_make_one_key(store):
    def make(number):
        key = mint()
        try:
            return store.run(calls.create_key(key.id, key.hash, "ops", ["read"])).id
        except WrongState:
            return None

    assert sum(id is not None for id in all_at_once(6, make)) == 1


@pytest.fixture
def impatient(database):
    """A store whose statements end after five seconds, where they would wait without end."""
    store = Store(make_conninfo(database, options="-c statement_timeout=5s"))
    yield store
    store.close()


def make_in(conn, name):
    """Make a key within a transaction that stays open."""
    key = mint()
    conn.execute("select faultline.create_key(%s, %s, %s, '{read}')", [key.id, key.hash, name])


def test_no_lock_that_a_client_can_hold_holds_up_a_new_key(impatient, database):
    """Advisory locks have no owner: any login can take any of them, for as long as it likes."""
    with psycopg.connect(database) as stranger, psycopg.connect(database) as conn:
        stranger.execute("select pg_advisory_lock(hashtextextended('faultline key ops', 0))")
        key = mint()
        impatient.run(calls.create_key(key.id, key.hash, "ops", ["read"]))
        rotated(impatient, key.id)

        make_in(conn, "mailer")
        held = "select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()"
        assert conn.execute(held).fetchone() == (0,)


def test_a_key_that_is_being_made_holds_up_neither_logins_nor_revocations(made, impatient, database):
    lost, kept = made("lost"), made("kept")
    with psycopg.connect(database) as conn:
        make_in(conn, "ops")

        assert kept.id in impatient.run(calls.find_keys([kept.id]))
        impatient.run(calls.key_used(kept.id))
        assert impatient.run(calls.revoke_key(lost.id)) is not None


def rotated(store, id, overlap=DAY):
    key = mint()
    return key, store.run(calls.rotate_key(id, key.id, key.hash, overlap))


def test_a_rotated_key_and_its_successor_both_open_until_the_overlap_ends(who, made, store, clock, ticking):
    old = made("ops", ["read", "operate"], ["mail"])
    new, info = rotated(store, old.id)

    first, second = who(old.text), who(new.text)
    clock.advance(DAY)
    ticking.seconds += 10
    third = who(new.text)

    assert (info.name, info.scopes, info.queues, info.live) == ("ops", ["read", "operate"], ["mail"], True)
    assert (first.scopes, first.queues) == (second.scopes, second.queues) == (third.scopes, third.queues)
    assert [key.id for key in store.run(calls.list_keys())] == [new.id]


def test_never_more_than_two_of_a_name_are_live(made, store):
    old = made("ops")
    new, _ = rotated(store, old.id)

    for id in (old.id, new.id):
        with pytest.raises(WrongState, match="two API keys"):
            rotated(store, id)
    with pytest.raises(WrongState):
        made("ops")

    store.run(calls.revoke_key(old.id))
    rotated(store, new.id)
    assert sum(key.live for key in store.run(calls.list_keys(gone=True))) == 2


def test_a_key_that_opens_nothing_is_not_rotated(made, store, clock):
    revoked, expired = made("a"), made("b", expires_at=clock.now() + DAY)
    store.run(calls.revoke_key(revoked.id))
    clock.advance(DAY)

    for key in (revoked, expired):
        with pytest.raises(WrongState, match="nothing to rotate"):
            rotated(store, key.id)
    with pytest.raises(JobNotFound, match="no API key"):
        rotated(store, "0" * 12)


def test_an_overlap_cannot_lengthen_a_key_and_has_an_end(made, store, clock):
    end = clock.now() + timedelta(hours=1)
    old = made("ops", expires_at=end)

    for overlap in (-DAY, timedelta(days=91)):
        with pytest.raises(InputError, match="0 to 90 days"):
            rotated(store, old.id, overlap)
    rotated(store, old.id, DAY)

    assert [key.expires_at for key in store.run(calls.list_keys()) if key.id == old.id] == [end]


def test_a_key_without_overlap_ends_at_once(who, made, store):
    old = made("ops")
    rotated(store, old.id, NOW)

    assert [key.live for key in store.run(calls.list_keys(gone=True)) if key.id == old.id] == [False]


def test_revoking_twice_is_once_and_an_unknown_key_is_told(made, store):
    key = made()
    first = store.run(calls.revoke_key(key.id, "leaked"))
    again = store.run(calls.revoke_key(key.id))

    assert first.revoked_at == again.revoked_at
    assert [(act.verb, act.reason) for act in store.run(calls.acts(verb="revoke_key"))] == [
        ("revoke_key", "leaked")
    ]
    with pytest.raises(JobNotFound, match="no API key"):
        store.run(calls.revoke_key("0" * 12))
