"""`unique`: the rule of a task or of a call, keys that are made of arguments, and whether a job is new."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from faultline import BadName, Faultline, KeyConflict, OutOfBounds, QueueFull, Unique
from faultline.errors import ConfigError, InputError
from faultline.integrations.text_call import text_call
from faultline.store import calls

MINUTE = timedelta(minutes=1)


@pytest.fixture
def app(database):
    with Faultline(database) as app:
        yield app


@pytest.fixture
def sync(app):
    @app.task(unique=Unique.while_queued(by=["tenant"]))
    def sync(tenant: int, note: str = "", full: bool = False) -> None: ...

    return sync


def test_jobs_of_the_same_named_arguments_are_one_job(sync):
    first, again = sync.enqueue(7, note="a"), sync.enqueue(tenant=7, note="b")
    other = sync.enqueue(8)

    assert (first.is_new, again.is_new, other.is_new) == (True, False, True)
    assert again == first != other
    assert sync.handle(first.id).is_new is None


def test_an_argument_that_is_left_out_counts_as_its_default(sync):
    task = sync.using(unique=Unique.while_queued(by=("tenant", "full")))

    assert task.new(7).key == task.new(7, full=False, note="x").key != task.new(7, full=True).key


def test_without_names_all_arguments_make_the_key_in_any_order(sync):
    task = sync.using(unique=Unique.while_unfinished())

    assert task.new(tenant=7, note="a").key == task.new(note="a", tenant=7).key
    assert task.new(tenant=7, note="a").key != task.new(tenant=7).key


def test_a_long_key_or_one_of_any_script_is_hashed(sync):
    task = sync.using(unique=Unique.replace())
    keys = {task.new(7, note=note).key for note in ("x" * 500, "x" * 501, "größe", "\x7f")}

    assert len(keys) == 4
    assert all(len(key) <= 255 and key.isascii() and key.isprintable() for key in keys)


def test_a_key_of_ones_own_comes_before_the_arguments(sync):
    new = sync.using(key="mine").new(7)

    assert (new.key, new.key_rule) == ("mine", "while_queued")
    assert sync.using(key="other", unique=Unique.replace()).new(7).key_rule == "replace"


def test_another_rule_takes_the_place_of_the_tasks_own(sync):
    debounced = sync.using(unique=Unique.debounce(MINUTE / 2, at_most=MINUTE, by="tenant"))

    assert (debounced.new(7).delay, debounced.new(7).key_for) == (MINUTE / 2, MINUTE)
    assert debounced.using(unique=Unique.while_queued(by="tenant")).new(7) == sync.new(7)


def test_callers_at_the_same_time_are_told_which_job_is_new(sync):
    async def main():
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(sync.aenqueue(number % 3)) for number in range(60)]
        return [task.result() for task in asked]

    handles = asyncio.run(main())

    assert len(set(handles)) == 3
    assert [handle.is_new for handle in handles].count(True) == 3


def test_many_and_mixed_rules_go_in_one_call(app, sync):
    replaced = sync.using(key="r", unique=Unique.replace())
    ids = app.enqueue_many([sync.new(1), sync.new(1), replaced.new(2), replaced.new(3), sync.new(4)])

    assert ids[0] == ids[1]
    assert ids[2] == ids[3]
    assert len(set(ids)) == 3
    assert app.get(ids[2]).args == {"tenant": 3}


def test_the_rule_travels_as_text_on_connections_of_other_libraries(sync):
    sql, args = text_call(calls.enqueue_one(sync.new(7)), "pyformat")

    assert "key_rule => %(key_rule)s::text::text" in sql
    assert args["key_rule"] == "while_queued"


def test_in_a_transaction_of_ones_own(sync, database):
    import psycopg

    with psycopg.connect(database) as conn:
        first = sync.enqueue_in(conn, 7)
        again = sync.enqueue_in(conn, 7)

    assert (first.is_new, again.is_new) == (True, False)


def test_a_key_without_a_rule_and_one_with_a_rule_do_not_mix(app, sync):
    sync.using(key="k", unique=Unique.while_unfinished()).enqueue(7)

    @app.task
    def plain(tenant: int) -> None: ...

    with pytest.raises(KeyConflict):
        plain.using(key="k").enqueue(7)


@pytest.mark.parametrize(
    ("act", "error", "says"),
    [
        (lambda task: task.using(unique="while_queued"), InputError, "a Unique, such as"),
        (lambda task: task.using(unique=Unique.replace(by="tenent")), BadName, "did you mean tenant"),
        (lambda task: task.using(key="k", unique=Unique.replace(by="tenant")), InputError, "one of them"),
        (lambda task: task.using(key_for=MINUTE, unique=Unique.replace()), InputError, "leave key_for out"),
        (
            lambda task: task.using(run_at=datetime.now(UTC), unique=Unique.debounce(MINUTE)),
            InputError,
            "when the job is due",
        ),
        (lambda _: Unique.replace(by=[]), ConfigError, "names arguments"),
        (lambda _: Unique.per_period(MINUTE / 100), OutOfBounds, "a second or longer"),
        (lambda _: Unique.throttle(cast("timedelta", 5)), OutOfBounds, "timedelta"),
        (lambda _: Unique.debounce(timedelta(0)), OutOfBounds, "above zero"),
        (lambda _: Unique.debounce(MINUTE, at_most=MINUTE / 2), OutOfBounds, "no shorter"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_sent(sync, act, error, says):
    with pytest.raises(error, match=says):
        act(sync)


def test_a_job_says_how_long_it_may_wait(app):
    @app.task(expires_in=MINUTE)
    def remind(name: str) -> None: ...

    moment = datetime.now(UTC) + MINUTE
    assert remind.new("Ada").expires_in == MINUTE
    assert remind.using(expires_in=MINUTE / 2).new("Ada").expires_in == MINUTE / 2
    later = remind.using(expires_at=moment).new("Ada")
    assert (later.expires_at, later.expires_in) == (moment, None)
    with pytest.raises(InputError, match="one of them"):
        remind.using(expires_at=moment, expires_in=MINUTE)
    with pytest.raises(OutOfBounds, match="time zone"):
        remind.using(expires_at=moment.replace(tzinfo=None))
    with pytest.raises(OutOfBounds, match="expires_in goes from"):
        app.task(name="never", expires_in=MINUTE * 0)(lambda name: None)


def test_a_task_whose_rule_names_no_argument_of_it_is_refused_where_it_is_defined(app):
    with pytest.raises(BadName, match="no argument 'order'"):

        @app.task(unique=Unique.replace(by="order"))
        def sync(tenant: int) -> None: ...


def test_a_full_queue_refuses_by_name_in_every_form(app, sync):
    sync.enqueue(1)
    app.configure_queue("default", max_depth=1)

    async def together():
        asked = (sync.aenqueue(tenant) for tenant in (1, 2, 3))
        return await asyncio.gather(*asked, return_exceptions=True)

    found, *refused = asyncio.run(together())
    assert (found.is_new, [type(error) for error in refused]) == (False, [QueueFull, QueueFull])
    with pytest.raises(QueueFull, match="queue default is full"):
        app.enqueue_many([sync.new(4)])
    with pytest.raises(InputError, match="max_depth or age_after"):
        app.configure_queue("default")
    with pytest.raises(OutOfBounds, match="max_depth"):
        app.configure_queue("default", max_depth=-1)
    asyncio.run(app.aconfigure_queue("default", max_depth=0, age_after=MINUTE))
    assert sync.enqueue(4).is_new
