"""`faultline enqueue`: a producer without an app, and with one."""

import pytest

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
