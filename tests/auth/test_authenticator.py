"""The authenticator admits a live key, as what that key says, and refuses every other key."""

import asyncio
from datetime import timedelta

import pytest

from faultline.errors import CannotConnect, NotAllowed, NotAuthenticated
from faultline.server.auth import CACHE_SECONDS_MAX, LOOPBACK, Caller, mint
from faultline.store import calls


def test_a_key_opens_the_door_as_what_it_says(who, made):
    key = made("mailer", ["enqueue", "read"], ["mail"])

    caller = who(key.text)

    assert caller == Caller("mailer", frozenset({"enqueue", "read"}), frozenset({"mail"}), key.id)


def test_without_a_key_only_the_machine_itself_may_look(who):
    assert who(None, loopback=True) == LOOPBACK
    assert LOOPBACK.scopes == {"read"}

    for nothing in (None, ""):
        with pytest.raises(NotAuthenticated):
            who(nothing)


def test_a_wrong_key_is_no_key_even_on_the_machine_itself(who):
    with pytest.raises(NotAuthenticated):
        who(mint().text, loopback=True)


def mangled(text):
    """Keys that are nearly this one."""
    head, secret = text[:17], text[17:]
    yield head + ("B" if secret[0] == "A" else "A") + secret[1:]
    yield text[:-1] + ("B" if text[-1] == "A" else "A")
    yield text[:-1]
    yield text + "A"
    yield text.upper()
    yield " " + text
    yield head + mint().text[17:]
    yield mint().text[:17] + secret
    yield head
    yield "flk__"
    yield "Bearer " + text
    yield "' or true --"
    yield "\ud800\x00" * 10_000


def test_a_key_that_is_nearly_right_is_wrong(who, made):
    key = made()

    for wrong in mangled(key.text):
        with pytest.raises(NotAuthenticated):
            who(wrong)


def test_what_is_wrong_with_a_key_is_not_said(who, made, store, clock):
    expired = made("expired", expires_at=clock.now() + timedelta(hours=1))
    clock.advance(hours=2)
    revoked = made("revoked")
    store.run(calls.revoke_key(revoked.id))

    said = []
    for text in (expired.text, revoked.text, mint().text, "nonsense"):
        with pytest.raises(NotAuthenticated) as refusal:
            who(text)
        said.append(str(refusal.value))

    assert len(set(said)) == 1


def test_a_key_opens_nothing_after_its_last_moment(who, made, clock, ticking):
    key = made(expires_at=clock.now() + timedelta(hours=1))
    who(key.text)

    clock.advance(hours=1)
    ticking.seconds += CACHE_SECONDS_MAX

    with pytest.raises(NotAuthenticated):
        who(key.text)


def test_a_revoked_key_opens_nothing_within_five_seconds(who, made, store, ticking):
    key = made()
    who(key.text)
    store.run(calls.revoke_key(key.id))

    ticking.seconds += CACHE_SECONDS_MAX

    assert CACHE_SECONDS_MAX <= 5
    with pytest.raises(NotAuthenticated):
        who(key.text)


def test_between_two_looks_the_database_is_not_asked(who, made, db, ticking):
    key = made()
    who(key.text)
    db.execute("delete from faultline.api_keys")

    ticking.seconds += CACHE_SECONDS_MAX - 0.1

    assert (who(key.text)).name == "ops"


def test_what_an_authenticator_remembers_is_bounded_and_opens_nothing(who, authenticator, made, monkeypatch):
    monkeypatch.setattr("faultline.server.auth.authenticator.CACHED_MAX", 20)
    key = made()
    who(key.text)
    for number in range(30):
        for wrong in (f"no key {number}", mint().text):
            with pytest.raises(NotAuthenticated):
                who(wrong)

    assert len(authenticator._wrong) == 20
    assert key.text not in repr(vars(authenticator))


def test_a_flood_of_wrong_keys_makes_no_good_one_be_looked_up_again(who, made, db, monkeypatch):
    monkeypatch.setattr("faultline.server.auth.authenticator.CACHED_MAX", 5)
    key = made()
    who(key.text)
    for _ in range(20):
        with pytest.raises(NotAuthenticated):
            who(mint().text)
    db.execute("delete from faultline.api_keys")

    assert who(key.text).name == "ops"


def test_many_requests_with_one_key_at_once_ask_the_database_once(authenticator, made, aio, monkeypatch):
    key, asked = made(), []
    judge = authenticator._judge

    async def counted(presented, lookups):
        asked.append(presented)
        return await judge(presented, lookups)

    async def crowd():
        monkeypatch.setattr(authenticator, "_judge", counted)
        return await asyncio.gather(*(authenticator.who(key.text, loopback=False) for _ in range(200)))

    callers = aio(crowd())

    assert len(asked) == 1
    assert {caller.name for caller in callers} == {"ops"}


def test_the_last_use_is_written_at_most_once_a_minute(who, made, store, clock, ticking):
    key = made()

    def used_after(seconds):
        clock.advance(seconds=seconds)
        ticking.seconds += CACHE_SECONDS_MAX
        who(key.text)
        return store.run(calls.list_keys())[0].last_used_at

    first, again, later = [used_after(seconds) for seconds in (0, 30, 60)]

    assert first is not None
    assert again == first
    assert later > first + timedelta(seconds=60)


def test_a_wrong_key_with_a_right_id_is_no_use_of_it(who, made, store):
    key = made()

    with pytest.raises(NotAuthenticated):
        who(f"flk_{key.id}_{mint().text[17:]}")

    assert store.run(calls.list_keys())[0].last_used_at is None


@pytest.mark.parametrize("scope", ["enqueue", "read", "work", "operate", "admin"])
def test_a_caller_may_what_its_scopes_say(scope):
    caller = Caller("c", frozenset({scope}), None)
    others = {"enqueue", "read", "work", "operate", "admin"} - {scope}

    caller.require(scope)
    caller.require(scope, "any")
    for other in others:
        if scope == "admin":
            caller.require(other, "any")
        else:
            with pytest.raises(NotAllowed, match=other):
                caller.require(other)


def test_a_caller_may_it_on_its_queues_alone():
    caller = Caller("c", frozenset({"admin"}), frozenset({"mail", "sms"}))

    caller.require("operate", "mail")
    for queue in ("billing", "Mail", "mail.", "*", ""):
        with pytest.raises(NotAllowed, match="queue"):
            caller.require("operate", queue)
    with pytest.raises(NotAllowed):
        caller.require_everywhere("admin")


def test_a_scope_that_is_none_is_a_mistake_of_ours():
    with pytest.raises(ValueError, match="no scope"):
        Caller("c", frozenset({"admin"}), None).require("opperate")


def test_a_key_that_was_good_is_looked_up_again_during_a_flood_of_wrong_ones(
    authenticator, made, aio, ticking, monkeypatch
):
    """Guesses may take every place there is for lookups, and each may take long."""
    monkeypatch.setattr("faultline.server.auth.authenticator.ASKING_MAX", 50)
    key, judge, never = made(), authenticator._judge, asyncio.Event()

    async def slow_for_guesses(presented, lookups):
        if presented != key.text:
            await never.wait()
        return await judge(presented, lookups)

    async def flooded():
        await authenticator.who(key.text, loopback=False)
        monkeypatch.setattr(authenticator, "_judge", slow_for_guesses)
        guesses = [asyncio.create_task(authenticator.who(mint().text, loopback=False)) for _ in range(60)]
        await asyncio.sleep(0)
        ticking.seconds += CACHE_SECONDS_MAX + 0.1
        try:
            return await authenticator.who(key.text, loopback=False)
        finally:
            never.set()
            await asyncio.gather(*guesses, return_exceptions=True)

    assert aio(flooded()).name == "ops"


def test_a_key_not_seen_before_waits_for_a_few_queries_behind_thousands_of_guesses(
    authenticator, astore, made, aio, monkeypatch
):
    """After a restart of the server all keys are like that."""
    key, run, queries = made(), astore.run, []

    async def counted(call):
        queries.append(call.name)
        return await run(call)

    async def flooded():
        monkeypatch.setattr(astore, "run", counted)
        guesses = [asyncio.create_task(authenticator.who(mint().text, loopback=False)) for _ in range(3_000)]
        await asyncio.sleep(0)
        caller = await authenticator.who(key.text, loopback=False)
        await asyncio.gather(*guesses, return_exceptions=True)
        return caller

    assert aio(flooded()).name == "ops"
    assert queries.count("find_keys") <= 4


def test_a_database_that_fails_during_lookups_is_told_to_all_that_wait(
    authenticator, astore, aio, monkeypatch
):
    async def fails(call):
        raise CannotConnect("gone")

    async def asked():
        monkeypatch.setattr(astore, "run", fails)
        keys = [authenticator.who(mint().text, loopback=False) for _ in range(3)]
        return await asyncio.gather(*keys, return_exceptions=True)

    assert [type(told) for told in aio(asked())] == [CannotConnect] * 3
