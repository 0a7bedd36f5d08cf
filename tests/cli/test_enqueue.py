"""`faultline enqueue`: a producer without an app, and with one."""

import secrets

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from faultline.store import calls
from tests.support import row_counts


def test_a_job_is_enqueued_without_any_app(on, store):
    done = on(
        "enqueue",
        "charge",
        '{"order_id": 7}',
        "--queue",
        "billing",
        "--priority",
        "-5",
        "--max-attempts",
        "2",
    )

    assert done.stdout == "job 1 enqueued in billing\n"
    job = store.run(calls.get(1))
    assert (job.task, job.args, job.queue, job.priority, job.max_attempts) == (
        "charge",
        {"order_id": 7},
        "billing",
        -5,
        2,
    )


def test_quiet_prints_the_id_alone_and_json_an_object(on):
    assert on("enqueue", "charge", "--quiet").stdout == "1\n"
    assert '"id": 2' in on("enqueue", "charge", "--output", "json").stdout


def test_args_come_from_standard_input_with_every_digit(on, store, database):
    on("enqueue", "charge", "-", input='{"big": 12345678901234567890.123456789}')

    with store.connection() as conn:
        (text,) = conn.execute("select args::text from faultline.jobs").fetchone()
    assert text == '{"big": 12345678901234567890.123456789}'


def test_one_key_is_one_job_and_another_request_under_it_a_conflict(on, store):
    first = on("enqueue", "charge", '{"order_id": 7}', "--key", "order-7", "--quiet")
    again = on("enqueue", "charge", '{"order_id": 7}', "--key", "order-7", "--quiet")
    other = on("enqueue", "charge", '{"order_id": 8}', "--key", "order-7")

    assert first.stdout == again.stdout
    assert other.exit_code == 1
    assert "already names job" in other.stderr


def test_a_key_that_names_an_older_job_is_not_told_as_a_job_that_was_enqueued(on, ask):
    words = ("enqueue", "charge", '{"order_id": 7}', "--key", "order-7")
    assert on(*words, "-q", "billing").stdout == "job 1 enqueued in billing\n"

    again = on(*words, "-q", "billing")

    assert again.exit_code == 0
    assert again.stdout == "job 1 was there already: the key names it in billing, and nothing was added\n"
    assert "is new" not in again.stderr
    assert ask(*words, "-q", "billing")["new"] is False
    assert ask("enqueue", "charge", "--key", "order-8")["new"] is True


def test_a_queue_that_nothing_has_used_or_that_no_worker_serves_is_told(on, shop, store):
    on("enqueue", "mail", "-q", "billing")

    typed = on("enqueue", "mail", "-q", "biling")
    assert (typed.exit_code, typed.stdout) == (0, "job 2 enqueued in biling\n")
    assert "queue biling is new: it has had neither a job nor a worker; did you mean billing?" in typed.stderr
    again = on("enqueue", "mail", "-q", "biling").stderr
    assert "no worker serves queue biling now. The job waits there" in again
    store.run(calls.worker_started("w", "host", 1, ["billing"], 1, "0"))
    assert "serves queue biling now; did you mean billing?" in on("enqueue", "mail", "-q", "biling").stderr
    assert on("enqueue", "mail", "-q", "billing").stderr == ""
    assert on("enqueue", "mail", "-q", "mial", "--quiet").stderr == ""
    app = ("--app", "shop_under_test:app")
    greeting = '{"name": "Ada"}'
    assert "queue defualt is new" in on("enqueue", "greet", greeting, "-q", "defualt", *app).stderr
    assert on("enqueue", "greet", greeting, "-q", "default", *app).stderr == ""


def test_a_login_that_may_only_enqueue_is_told_of_its_job_and_of_no_failure(run, producer):
    done = run("--dsn", producer, "enqueue", "charge", "-q", "billing")

    assert (done.exit_code, done.stdout, done.stderr) == (0, "job 1 enqueued in billing\n", "")


@pytest.fixture
def producer(database):
    """The DSN of a login that has a producer's duty and no other."""
    prefix = f"p{secrets.token_hex(5)}_"
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute("select faultline.make_roles(%s, own => false)", [prefix])
        conn.execute(f"create role {prefix}login login")
        conn.execute(f"grant {prefix}producer to {prefix}login")
        yield make_conninfo(database, user=f"{prefix}login")
        roles = conn.execute("select rolname from pg_roles where starts_with(rolname, %s)", [prefix])
        for (role,) in roles.fetchall():
            conn.execute(f"drop owned by {role}")
            conn.execute(f"drop role {role}")


def test_a_delay_or_a_moment_puts_it_off(on, store):
    on("enqueue", "charge", "--delay", "1h30m")
    on("enqueue", "charge", "--run-at", "2100-01-31T09:00+01:00")

    soon, late = store.run(calls.get(1)), store.run(calls.get(2))
    assert (soon.run_at - soon.created_at).total_seconds() == pytest.approx(5400, abs=1)
    assert late.run_at.isoformat() == "2100-01-31T08:00:00+00:00"


def test_with_an_app_the_args_are_held_to_the_signature(on, shop, store):
    refused = on("enqueue", "charge", '{"order_id": "seven"}', "--app", "shop_under_test:app")
    unknown = on("enqueue", "chrage", "--app", "shop_under_test:app")
    done = on("enqueue", "charge", '{"order_id": 7}', "--app", "shop_under_test:app")

    assert refused.exit_code == 2
    assert "argument order_id: expected `int`, got `str`" in refused.stderr
    assert "did you mean charge" in unknown.stderr
    assert done.stdout == "job 1 enqueued in billing\n"
    assert store.run(calls.get(1)).max_attempts == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["bad name"], "cannot be a task name"),
        (["charge", "[1]"], "a JSON list; write an object"),
        (["charge", "{"], "the args are not JSON"),
        (["charge", '{"a": "\\u0000"}'], "contains a NUL character"),
        (["charge", "-q", "'; drop table jobs;--"], "cannot be a queue name"),
        (["charge", "--priority", "101"], "from -100 to 100"),
        (["charge", "--max-attempts", "0"], "from 1 to 10000"),
        (["charge", "--delay", "-5s"], "is not a duration"),
        (["charge", "--delay", "99999d"], "delay"),
        (["charge", "--run-at", "infinity"], "is not a moment"),
        (["charge", "--run-at", "0001-01-01T00:00Z"], "2000"),
        (["charge", "--lease", "1ms"], "lease"),
        (["charge", "--timeout", "1us"], "timeout"),
        (["charge", "--key", ""], "key"),
        (["charge", "--delay", "1s", "--run-at", "2100-01-01T00:00Z"], "give one of them"),
    ],
)
def test_bad_input_exits_with_2_says_what_is_wrong_and_changes_no_row(on, database, words, said):
    before = row_counts(database)

    refused = on("enqueue", *words)

    assert refused.exit_code == 2, refused.output
    assert said in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    assert row_counts(database) == before


def test_a_key_rule_is_told_by_name(on):
    asked = ("enqueue", "sync", "--key", "tenant-7", "--key-rule")
    on(*asked, "while_queued")

    assert "was there already" in on(*asked, "while_queued").stdout
    assert "is no key rule" in on(*asked, "sometimes").stderr


def test_a_job_may_expire(on, db):
    on("enqueue", "remind", "--expires-in", "5m")

    (left,) = db.execute("select expires_at - created_at from faultline.active").fetchone()
    assert str(left) == "0:05:00"


def test_a_queue_is_bounded_and_the_bound_taken_away(on):
    on("enqueue", "t", "--queue", "mail")
    told = on("queues", "set", "mail", "--max-depth", "1", "--age-after", "10m")
    full = on("enqueue", "t", "--queue", "mail")
    listed = on("queues", "list").stdout
    off = on("queues", "set", "mail", "--max-depth", "none", "--age-after", "none")

    assert told.stdout == "queue mail holds at most 1 due job, which move ahead by one priority each 10m00s\n"
    assert full.exit_code == 1
    assert "queue mail is full" in full.stderr
    assert "full" in listed.split()
    assert off.stdout == "queue mail holds any number of jobs\n"
    assert on("queues", "set", "mail").exit_code == 2
    assert on("queues", "set", "mail", "--max-depth", "0").exit_code == 2
