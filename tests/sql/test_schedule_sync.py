"""Schedules in code, by release: a lower one changes nothing, and what the newest lacks is paused in time."""

import secrets
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from psycopg.types.json import Jsonb

from faultline.store import calls
from tests.support import worker_named

TICK = {"name": "tick", "task": "report", "args": "{}", "every": "5 minutes"}
TOCK = {"name": "tock", "task": "report", "args": "{}", "cron": "0 3 * * *", "time_zone": "Europe/Berlin"}


def sync(store, release, *specs, app="shop", worker=None):
    found = store.run(calls.sync_schedules(app, release, specs, worker))
    return {one.name: one.state for one in found}


def states(store):
    return {one.name: (one.state, one.release) for one in store.run(calls.list_schedules())}


def test_schedules_are_made_changed_and_left_alone(store, clock):
    assert sync(store, [1], TICK, TOCK) == {"tick": "new", "tock": "new"}
    assert sync(store, [1], TICK, TOCK) == {"tick": "same", "tock": "same"}
    assert sync(store, [1], {**TICK, "missed": "all"}) == {"tick": "changed"}
    assert states(store) == {"tick": ("active", "1"), "tock": ("active", "1")}


def test_a_lower_release_changes_nothing(store, clock):
    sync(store, [1, 10], TICK)
    assert sync(store, [1, 9], {**TICK, "every": "1 minute"}, TOCK) == {None: "older"}
    assert sync(store, [], TOCK) == {None: "older"}
    assert states(store) == {"tick": ("active", "1.10")}


def test_what_the_newest_release_lacks_goes_on_while_an_older_one_runs(store, clock, db):
    """A rolling deploy: both releases run, and start again in any order."""
    old, new = worker_named(store, "old"), worker_named(store, "new")
    sync(store, [1], TICK, TOCK, worker=old)
    for _ in range(3):
        sync(store, [2], TICK, worker=new)
        sync(store, [1], TICK, TOCK, worker=old)
        clock.advance(minutes=4)
        store.run(calls.heartbeat([], timedelta(seconds=15), old))
        assert store.run(calls.pause_absent()) == []
    clock.advance(minutes=9)
    assert store.run(calls.pause_absent()) == []
    clock.advance(minutes=2)
    assert store.run(calls.pause_absent()) == [("tock", "shop")]
    assert store.run(calls.pause_absent()) == []
    assert states(store) == {"tick": ("active", "2"), "tock": ("paused", "1")}

    assert sync(store, [1], TICK, TOCK, worker=old) == {None: "older"}
    assert states(store)["tock"] == ("paused", "1")


def test_what_a_release_paused_goes_on_with_the_next_that_has_it(store, clock):
    sync(store, [1], TICK, {**TICK, "name": "tack"})
    sync(store, [2])
    assert sorted(store.run(calls.pause_absent())) == [("tack", "shop"), ("tick", "shop")]
    store.run(calls.pause_schedule("tack"))
    clock.advance(hours=1)
    assert sync(store, [3], TICK, {**TICK, "name": "tack"}) == {"tack": "changed", "tick": "changed"}
    assert states(store) == {"tick": ("active", "3"), "tack": ("paused", "3")}
    (tick,) = store.run(calls.list_schedules("tick"))
    assert tick.next_at > tick.moment  # what fell into the pause is not made up for


def test_without_releases_nothing_is_ever_paused(store, clock):
    sync(store, [], TICK, TOCK)
    sync(store, [], TOCK)
    clock.advance(days=1)
    assert store.run(calls.pause_absent()) == []
    assert states(store) == {"tick": ("active", None), "tock": ("active", None)}


def test_apps_do_not_take_each_others_schedules(store, clock):
    sync(store, [1], TICK)
    store.run(calls.set_schedule({"name": "by-hand", "task": "report", "every": "1 hour"}))
    assert sync(store, [5], {**TICK, "every": "1 minute"}, {**TICK, "name": "by-hand"}, app="other") == {
        "tick": "foreign", "by-hand": "foreign",
    }  # fmt: skip
    assert store.run(calls.pause_absent()) == []
    assert states(store) == {"tick": ("active", "1"), "by-hand": ("active", None)}


def test_one_that_cannot_be_written_does_not_stop_the_others(store, clock):
    specs: list[Any] = [
        {**TICK, "name": "a b"},
        {**TICK, "name": "far", "every": "9 years"},
        {"name": "bare"},
        [],
        TICK,
    ]
    specs += [{**TICK, "name": "odd", "owner": "me"}]
    found = store.run(calls.sync_schedules("shop", [1], specs))
    assert {one.state for one in found if one.name != "tick"} == {"refused"}
    assert "has no field 'owner'" in next(one.said for one in found if one.name == "odd")
    assert list(states(store)) == ["tick"]


@pytest.mark.parametrize(("release", "app"), [([1] * 9, "shop"), ([1], "a b"), ([1], None)])
def test_bad_names_and_releases_are_refused(store, release, app):
    from faultline.errors import FaultlineError

    with pytest.raises(FaultlineError):
        sync(store, release, TICK, app=app)


@pytest.fixture
def logins(database, db):
    """Two roles that may sync and no more."""
    names = [f"sync_{secrets.token_hex(4)}" for _ in range(2)]
    for name in names:
        db.execute(f"create role {name} login")
        db.execute(f"grant usage on schema faultline to {name}")
        db.execute(f"grant execute on function faultline.sync_schedules to {name}")
    yield names
    for name in names:
        db.execute(f"drop owned by {name}")
        db.execute(f"drop role {name}")


def test_an_app_belongs_to_the_first_role_that_syncs_it(database, store, db, logins):
    def sync_as(login, release):
        with psycopg.connect(make_conninfo(database, user=login)) as conn:
            found = conn.execute(
                "select state from faultline.sync_schedules('shop', %s, %s)", [release, Jsonb([TICK])]
            )
            return [state for (state,) in found]

    first, other = logins
    sync(store, [1], TICK)  # an operator takes nothing
    assert sync_as(first, [1]) == ["same"]
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="nothing was changed"):
        sync_as(other, [999999999])
    assert sync_as(first, [2]) == ["changed"]
    assert sync(store, [3], TICK) == {"tick": "changed"}
    db.execute(f"grant {first} to {other}")
    assert sync_as(other, [4]) == ["changed"]
