"""Each group role can do its duty with the verbs alone, and no way around them leads further (S8, S9)."""

import secrets
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from faultline.errors import LeaseLost, OutOfBounds, PermissionDenied
from faultline.store import calls
from faultline.store.pool import Store
from tests.support import LEASE, NOW, SECOND, claim_one, enqueue, new_job, state_of, worker_named

DUTIES = ("producer", "worker", "watchdog", "operator", "reader", "server", "migrator")

CARD = "card 4711"
"""No number: one of those may stand in any moment's microseconds."""


@pytest.fixture(scope="module")
def database(shared):
    """Roles come and go, so one database serves all."""
    return shared


@pytest.fixture(scope="module")
def logins(shared):
    """A login for each duty, in its group and in no other: their names, by duty."""
    prefix = f"g{secrets.token_hex(5)}_"
    with psycopg.connect(shared, autocommit=True) as conn:
        conn.execute("select faultline.make_roles(%s, own => true)", [prefix])
        for duty in DUTIES:
            conn.execute(f"create role {prefix}{duty}_login login")
            conn.execute(f"grant {prefix}{duty} to {prefix}{duty}_login")
        yield {duty: f"{prefix}{duty}_login" for duty in DUTIES}
        conn.execute("reset role")
        for duty in (*DUTIES, "owner"):
            for role in (f"{prefix}{duty}_login", f"{prefix}{duty}"):
                if conn.execute("select 1 from pg_roles where rolname = %s", [role]).fetchone():
                    conn.execute(f"reassign owned by {role} to current_user")
                    conn.execute(f"drop owned by {role}")
        for duty in (*DUTIES, "owner"):
            conn.execute(f"drop role if exists {prefix}{duty}_login")
            conn.execute(f"drop role {prefix}{duty}")


def dsn_of(database, logins, duty, **more):
    return make_conninfo(database, user=logins[duty], **more)


@pytest.fixture
def as_duty(database, logins):
    """A store that speaks as the login with this duty."""
    opened = []

    def open_(duty, **more):
        opened.append(Store(dsn_of(database, logins, duty, **more)))
        return opened[-1]

    yield open_
    for store in opened:
        store.close()


def a_queue():
    return f"q{secrets.token_hex(4)}"


# What each may do.


def test_a_producer_syncs_schedules_a_watchdog_fires_them_and_a_worker_may_do_neither(as_duty, store):
    spec = {"name": a_queue(), "task": "report", "every": "1 hour"}
    for duty in ("worker", "watchdog", "reader"):
        with pytest.raises(PermissionDenied):
            as_duty(duty).run(calls.sync_schedules("shop", [], [spec]))
    (made,) = as_duty("producer").run(calls.sync_schedules("shop", [], [spec]))
    assert made.state == "new"
    as_duty("watchdog").run(calls.fire([]))
    for duty in ("worker", "producer", "operator"):
        with pytest.raises(PermissionDenied):
            as_duty(duty).run(calls.fire([]))
    as_duty("operator").run(calls.delete_schedule(spec["name"]))


def test_a_producer_enqueues_and_sees_what_became_of_it(as_duty, store):
    producer, queue = as_duty("producer"), a_queue()

    job_id = enqueue(producer, queue=queue, key="once", args=f'{{"card": "{CARD}"}}')
    many = producer.run(calls.enqueue_many([new_job(queue=queue)]))
    each = producer.run(calls.enqueue_each([new_job(queue=queue), new_job(queue=queue, key="twice")]))
    producer.run(calls.wake(queue))
    producer.run(calls.wake_each([queue, "other"]))
    seen = producer.run(calls.outline(job_id))

    assert (seen.state, seen.queue, len(many), len(each)) == ("queued", queue, 1, 2)
    assert CARD not in repr(seen)
    assert producer.run(calls.outline(1 << 60)) is None


def test_a_worker_does_all_of_a_workers_work(as_duty, store):
    worker, queue = as_duty("worker"), a_queue()
    number = worker_named(worker, "w")

    def lease():
        enqueue(store, queue=queue)
        return claim_one(worker, queues=(queue,), worker=number)

    first = lease()
    worker.run(calls.heartbeat([first], LEASE, number))
    worker.run(calls.fence(first))
    worker.run(calls.complete(first, "null"))
    assert worker.run(calls.outcome(first)) == "succeeded"
    assert worker.run(calls.complete_many([lease()], ["1"], number)) == []
    worker.run(calls.fail(lease(), "boom", SECOND * 3600))
    assert worker.run(calls.fail_many([lease()], ["boom"], [SECOND * 3600], number)) == []
    worker.run(calls.crash(lease(), "died", "SIGSEGV", alone=True, delay=SECOND * 3600))
    worker.run(calls.bury(lease(), "no use"))
    worker.run(calls.snooze(lease(), SECOND * 3600))
    worker.run(calls.cancel_claimed(lease()))
    worker.run(calls.release(lease(), delay=SECOND * 3600))
    with pytest.raises(LeaseLost):
        worker.run(calls.complete(first, "null"))
    worker.run(calls.refused(first, number))
    worker.run(calls.history(first.job_id))
    worker.run(calls.outline(first.job_id))
    worker.run(calls.worker_stopped(number))


def test_a_watchdog_does_every_chore(as_duty):
    watchdog = as_duty("watchdog")
    number = worker_named(watchdog, "dog")

    for chore in (
        calls.round_(SECOND), calls.lead(number), calls.reap(), calls.promote(), calls.rescue(),
        calls.quarantine(), calls.floors(), calls.partitions(), calls.drop_partitions(), calls.prune(),
        calls.next_due(),
        calls.first_free(), calls.wake("default"), calls.worker_stopped(number),
    ):  # fmt: skip
        watchdog.run(chore)


def test_an_operator_looks_and_acts(as_duty, store, database, logins):
    operator, queue = as_duty("operator"), a_queue()
    waiting = enqueue(store, queue=queue)
    dead = enqueue(store, queue=queue, priority=-1)
    store.run(calls.bury(claim_one(store, queues=(queue,)), "no use"))

    operator.run(calls.replay(dead))
    operator.run(calls.retry_now(waiting))
    operator.run(calls.cancel(waiting))
    operator.run(calls.pause(queue))
    operator.run(calls.resume(queue))
    operator.run(calls.set_retention(queue, "outline"))
    operator.run(calls.replay_many(queue=queue))
    operator.run(calls.configure(dead_retention=SECOND * 86_400))
    acts = operator.run(calls.acts(queue=queue))
    for look in (
        calls.get(dead), calls.list_jobs(), calls.history(dead), calls.ledger(), calls.refusals(),
        calls.list_queues(), calls.list_workers(), calls.count_dead(), calls.list_keys(), calls.health(),
        calls.doctor(), calls.list_groups(),
    ):  # fmt: skip
        operator.run(look)
    with psycopg.connect(dsn_of(database, logins, "operator")) as conn:
        for view in ("jobs", "entries", "key_list", "outlines", "queue_depth", "queue_lag", "worker_list"):
            conn.execute(f"select * from faultline.{view}")

    assert {act.role for act in acts} == {logins["operator"]}
    assert [act.verb for act in acts] == ["set_retention", "resume", "pause", "cancel", "replay"]


def test_a_reader_sees_figures_and_no_payload(as_duty, store, database, logins):
    reader = as_duty("reader")
    job_id = enqueue(store, queue=a_queue(), args=f'{{"card": "{CARD}"}}')

    for look in (
        calls.outline(job_id), calls.list_queues(), calls.list_workers(), calls.refusals(),
        calls.health(), calls.doctor(),
    ):  # fmt: skip
        assert CARD not in repr(reader.run(look))
    with psycopg.connect(dsn_of(database, logins, "reader"), autocommit=True) as conn:
        for view in ("outlines", "queue_depth", "queue_lag", "refused_writes", "worker_list"):
            assert CARD not in repr(conn.execute(f"select * from faultline.{view}").fetchall())
        for view in ("jobs", "entries", "key_list"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                conn.execute(f"select * from faultline.{view}")


def test_a_server_may_do_what_any_of_them_may_and_judge_keys(as_duty, db):
    server = as_duty("server")
    key = secrets.token_hex(6)

    server.run(calls.create_key(key, bytes(32), f"n{key}", ["read"]))
    server.run(calls.key_used(key))
    assert server.run(calls.find_keys([key]))[key].live
    server.run(calls.revoke_key(key))
    job_id = enqueue(server, queue=(queue := a_queue()))
    server.run(calls.complete(claim_one(server, queues=(queue,)), None))
    server.run(calls.reap())
    assert server.run(calls.get(job_id)).state == "succeeded"


# What none of them may.

ALLOWED = """
select list.duty, list.object from faultline.role_grants() as list where list.kind = 'function'
"""


@pytest.mark.parametrize("duty", DUTIES)
def test_a_group_may_call_what_its_duty_lists_and_nothing_else(db, logins, duty):
    listed = {name for of, name in db.execute(ALLOWED) if of == duty}

    may = {
        name
        for (name,) in db.execute(
            "select proname from pg_proc where pronamespace = 'faultline'::regnamespace"
            " and has_function_privilege(%s, oid, 'execute')",
            [logins[duty]],
        )
    }

    assert may == listed
    assert duty == "migrator" or listed


@pytest.mark.parametrize("duty", DUTIES)
def test_no_group_has_a_privilege_on_a_table_a_sequence_or_the_schema(db, logins, duty):
    touched = db.execute(
        "select relname from pg_class where relnamespace = 'faultline'::regnamespace"
        " and case when relkind in ('r', 'p') then"
        " has_any_column_privilege(%(role)s, oid, 'select, insert, update')"
        " or has_table_privilege(%(role)s, oid, 'select, insert, update, delete, truncate, trigger')"
        " when relkind = 'S' then has_sequence_privilege(%(role)s, oid, 'usage, select, update') end",
        {"role": logins[duty]},
    ).fetchall()
    (creates,) = db.execute(
        "select has_schema_privilege(%s, 'faultline', 'create')", [logins[duty]]
    ).fetchone()

    assert touched == []
    assert not creates


WORKERS_TRICKS = [
    "update faultline.active set claim = null",
    "update faultline.jobs set state = 'succeeded'",
    "delete from faultline.jobs",
    "insert into faultline.ledger select * from faultline.ledger",
    "select claim from faultline.active",
    "select claim from faultline.ledger",
    "table faultline.ledger_default",
    "select * from faultline.jobs",
    "select * from faultline.api_keys",
    "select * from faultline.acts",
    "delete from faultline.acts",
    "select * from faultline.claimed_again(gen_random_uuid())",
    "select faultline.put_back(array[1], 'dead', 'x', now())",
    "select faultline.note_act('cancel', 1)",
    "select faultline.enqueue('t')",
    "select faultline.cancel(1)",
    "select faultline.get_job(1)",
    "select faultline.list_jobs()",
    "select faultline.replay(1)",
    "select faultline.pause('default')",
    "select faultline.reap()",
    "select faultline.create_key('c0ffeec0ffee', ''::bytea, 'n', array['admin'])",
    "select faultline.find_keys('{c0ffeec0ffee}')",
    "select faultline.make_roles()",
    "select faultline.grant_duties()",
    "select setval('faultline.tokens', 1)",
    "create function faultline.now() returns timestamptz language sql return now()",
    "create or replace view faultline.jobs as select 1",
    "create table faultline.mine ()",
    "alter function faultline.claim security invoker",
    "alter table faultline.active disable trigger all",
    "grant execute on function faultline.cancel to public",
    "lock table faultline.active in access exclusive mode",
    "create trigger mine before insert on faultline.active execute function tsvector_update_trigger()",
    "create rule mine as on insert to faultline.active do nothing",
    "create policy mine on faultline.active using (true)",
    "copy faultline.ledger to stdout",
]


@pytest.mark.parametrize("trick", WORKERS_TRICKS)
def test_a_worker_cannot_go_around_the_verbs(database, logins, trick):
    """S8: no table, no other verb, no helper, no DDL; a view over tables takes no writes from any role."""
    with (
        psycopg.connect(dsn_of(database, logins, "worker")) as conn,
        pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.ObjectNotInPrerequisiteState)),
    ):
        conn.execute(trick)


@pytest.mark.parametrize("duty", ["owner", "operator", "producer", "server", "migrator"])
def test_a_worker_cannot_become_another(database, logins, duty):
    role = logins["worker"].replace("worker_login", duty)

    with (
        psycopg.connect(dsn_of(database, logins, "worker")) as conn,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        conn.execute(f"set role {role}")


def test_a_worker_cannot_finish_anothers_job(as_duty, store):
    """S8: the token is no secret; the claim id is one, and without it every verb is refused."""
    worker, queue = as_duty("worker"), a_queue()
    enqueue(store, queue=queue)
    held = claim_one(store, queues=(queue,))
    forged = held._replace(claim=uuid4())

    for verb in (
        calls.complete(forged, None), calls.fail(forged, "x", NOW), calls.bury(forged, "x"),
        calls.snooze(forged, NOW), calls.release(forged), calls.cancel_claimed(forged), calls.fence(forged),
        calls.crash(forged, "x", "y", alone=True),
    ):  # fmt: skip
        with pytest.raises(LeaseLost):
            worker.run(verb)
    assert [beat.answer for beat in worker.run(calls.heartbeat([forged], LEASE))] == ["lost"]
    assert [answer.answer for answer in worker.run(calls.complete_many([forged], [None]))] == ["refused"]

    assert state_of(store, held.job_id) == "running"
    store.run(calls.complete(held, None))


def test_the_claim_of_anothers_job_is_never_told(as_duty, store, database, logins):
    """S8: whatever a role may read, and whatever it is told when it is refused, the claim is not in it."""
    queue = a_queue()
    ended = enqueue(store, queue=queue)
    first = claim_one(store, queues=(queue,))
    store.run(calls.complete(first, None))
    enqueue(store, queue=queue)
    held = claim_one(store, queues=(queue,))
    secret = {str(first.claim), str(held.claim)}
    said = []

    for duty in ("worker", "operator", "reader", "server"):
        with psycopg.connect(dsn_of(database, logins, duty), autocommit=True) as conn:
            views = conn.execute(
                "select relname from pg_class where relnamespace = 'faultline'::regnamespace"
                " and relkind = 'v' and has_table_privilege(oid, 'select')"
            ).fetchall()
            said += [
                repr(conn.execute(f"select view::text from faultline.{name} as view").fetchall())
                for (name,) in views
            ]
            try:
                conn.execute(
                    "select faultline.complete(%s, %s, gen_random_uuid(), null)", [held.job_id, held.token]
                )
            except psycopg.Error as error:
                said.append(
                    f"{error} {error.diag.message_detail} {error.diag.message_hint} {error.diag.context}"
                )
    operator = as_duty("operator")
    for look in (
        calls.get(held.job_id),
        calls.history(ended),
        calls.list_jobs(),
        calls.ledger(),
        calls.acts(),
    ):
        said.append(repr(operator.run(look)))

    assert len(said) > 15
    assert not [text for text in said if any(claim in text for claim in secret)]


DECOYS = """
create temp table active (id bigint, pos bigint, token bigint, claim uuid, lane int);
create temp table lanes (id int, queue text, priority int, paused boolean, floor bigint, top bigint);
create temp table settings (base bigint, timeline int);
create function pg_temp.now() returns timestamptz language sql return 'infinity'::timestamptz;
create function pg_temp.be_durable() returns void language plpgsql as $$ begin raise 'evil'; end $$;
create function pg_temp.clock_timestamp() returns timestamptz language plpgsql as
  $$ begin raise 'evil'; end $$;
create function pg_temp.gen(uuid, uuid) returns boolean language sql return true;
create operator pg_temp.= (leftarg = uuid, rightarg = uuid, function = pg_temp.gen);
"""


def test_temporary_things_of_the_same_name_change_nothing(as_duty, store, database, logins):
    """S8: pg_temp is looked at last, and only for tables; what a verb names, it names in full."""
    queue = a_queue()
    enqueue(store, queue=queue)
    enqueue(store, queue=queue)
    held = claim_one(store, queues=(queue,))

    with psycopg.connect(
        dsn_of(database, logins, "worker", options="-c search_path=pg_temp,faultline,pg_catalog"),
        autocommit=True,
    ) as conn:
        conn.execute(DECOYS)
        taken = conn.execute(
            "select id, queue from faultline.claim(array[%s], 5, '15 s', gen_random_uuid())", [queue]
        ).fetchall()
        with pytest.raises(psycopg.DatabaseError, match="lease lost"):
            conn.execute(
                "select faultline.complete(%s, %s, gen_random_uuid(), null)", [held.job_id, held.token]
            )

    assert [row[1] for row in taken] == [queue]
    assert taken[0][0] != held.job_id
    assert state_of(store, held.job_id) == "running"


PRODUCERS_TRICKS = [
    "select * from faultline.claim(array['default'], 1, '15 s', gen_random_uuid())",
    "select faultline.complete(1, 1, gen_random_uuid(), null)",
    "select faultline.heartbeat(array[1]::bigint[], array[1]::bigint[], array[gen_random_uuid()], '15 s')",
    "select faultline.get_job(1)",
    "select faultline.list_jobs()",
    "select faultline.history(1)",
    "select faultline.list_entries()",
    "select args from faultline.jobs",
    "select args from faultline.active",
    "select args, result from faultline.ledger",
    "select faultline.cancel(1)",
    "select faultline.pause('default')",
    "select faultline.reap()",
    "insert into faultline.active select * from faultline.active",
    "select nextval('faultline.places')",
    "select faultline.act_as('another')",
]


@pytest.mark.parametrize("trick", PRODUCERS_TRICKS)
def test_a_producer_can_neither_claim_nor_complete_nor_read_payloads(database, logins, trick):
    """S9."""
    with (
        psycopg.connect(dsn_of(database, logins, "producer")) as conn,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        conn.execute(trick)


def test_an_operator_cannot_make_keys(as_duty):
    """A key lets one in at the server with more than an operator has."""
    with pytest.raises(PermissionDenied):
        as_duty("operator").run(calls.create_key("c0ffeec0ffee", bytes(32), "mine", ["admin"]))


def test_a_migrator_has_the_owners_rights_only_when_it_asks(database, logins):
    with psycopg.connect(dsn_of(database, logins, "migrator"), autocommit=True) as conn:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            conn.execute("select claim from faultline.active")

        conn.execute(f"set role {logins['migrator'].replace('migrator_login', 'owner')}")
        conn.execute("select claim from faultline.active")


@pytest.mark.parametrize("prefix", ["", "Upper_", "a-b", "1x", "x" * 41, "pg\n", "pg_", 'x"; drop'])
def test_a_prefix_that_is_none_is_refused(store, prefix):
    with pytest.raises(OutOfBounds, match="prefix"):
        store.run(calls.make_roles(prefix))
