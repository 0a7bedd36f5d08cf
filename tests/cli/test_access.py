"""`keys`, `roles`, `acts` and `doctor --strict`: who may come in, and what they did."""

import json
import re
import secrets
from datetime import timedelta

import pytest
from psycopg.conninfo import make_conninfo

from faultline.server.auth import mint
from faultline.store import calls
from tests.support import claim_one, enqueue

WHOLE = re.compile(r"flk_[0-9a-f]{12}_[A-Za-z0-9_-]{43}")


def test_a_key_is_printed_alone_and_once(on, store):
    made = on("keys", "create", "ops", "--scope", "read", "--scope", "operate", "--queue", "mail")
    key = made.stdout.strip()

    listed = on("keys", "list")

    assert (made.exit_code, bool(WHOLE.fullmatch(key))) == (0, True)
    assert "not shown again" in made.stderr
    assert key not in made.stderr
    assert key.split("_")[1] in listed.stdout
    assert key[17:] not in listed.output
    (info,) = store.run(calls.list_keys())
    assert (info.name, info.scopes, info.queues) == ("ops", ["read", "operate"], ["mail"])
    assert 89 < (info.expires_at - info.created_at).days + 1 < 92


def test_keys_speak_json(ask):
    made = ask("keys", "create", "ops", "--scope", "admin", "--expires", "never")
    listed = ask("keys", "list")

    assert WHOLE.fullmatch(made.pop("key"))
    assert [{**listed[0]}] == [made]
    assert (made["queues"], made["expires_at"], made["state"]) == (None, None, "live")
    assert "hash" not in made


def test_a_key_is_rotated_and_revoked(ask, on):
    first = ask("keys", "create", "ops", "--scope", "work")
    second = ask("keys", "rotate", first["id"], "--overlap", "1h")

    revoked = on("keys", "revoke", first["id"], "--reason", "leaked")
    states = {key["id"]: key["state"] for key in ask("keys", "list", "--all")}

    assert second["scopes"] == ["work"]
    assert revoked.stdout == f"key {first['id']} (ops) is revoked\n"
    assert states == {first["id"]: "revoked", second["id"]: "live"}
    assert [key["id"] for key in ask("keys", "list")] == [second["id"]]


@pytest.mark.parametrize(
    "words",
    [
        ("create", "ops"),
        ("create", "ops", "--scope", "root"),
        ("create", "ops", "--scope", "read", "--queue", "no queue"),
        ("create", "ops", "--scope", "read", "--expires", "soon"),
        ("revoke", "ops"),
        ("revoke", "C0FFEEC0FFEE"),
    ],
)
def test_what_is_not_understood_is_told_before_anything_is_made(on, store, words):
    told = on("keys", *words)

    assert told.exit_code == 2
    assert store.run(calls.list_keys(gone=True)) == []


def test_a_whole_key_that_was_pasted_is_shown_nowhere(on):
    key = mint().text

    for words in (("revoke", key), ("rotate", key), ("revoke", key[:40])):
        told = on("keys", *words)

        assert told.exit_code == 2
        assert "by its id" in told.output
        assert key[17:30] not in told.output


def test_an_unknown_key_and_a_taken_name_are_told_in_a_line(on):
    on("keys", "create", "ops", "--scope", "read")
    again = on("keys", "create", "ops", "--scope", "read")
    unknown = on("keys", "revoke", "0" * 12)

    assert (again.exit_code, unknown.exit_code) == (1, 1)
    assert "there is a live API key named 'ops'. Rotate it" in again.stderr
    assert "there is no API key" in unknown.stderr
    assert not WHOLE.search(again.output)


@pytest.fixture
def prefix(db):
    """What the names of a test's roles begin with; they are gone after it."""
    name = f"c{secrets.token_hex(5)}_"
    yield name
    roles = db.execute("select rolname from pg_roles where starts_with(rolname, %s)", [name]).fetchall()
    for (role,) in roles:
        db.execute(f"drop owned by {role} cascade")
    for (role,) in roles:
        db.execute(f"drop role {role}")


def test_roles_are_made_once_and_shown_with_their_logins(on, ask, db, prefix):
    first = on("roles", "create", "--prefix", prefix)
    again = on("roles", "create", "--prefix", prefix)
    db.execute(f"create role {prefix}joe login; grant {prefix}worker to {prefix}joe")
    shown = {group["duty"]: group for group in ask("roles", "show")}

    assert f"made {prefix}producer" in first.stderr
    assert "all of them were there" in again.stderr
    assert shown.keys() == {"producer", "worker", "watchdog", "operator", "reader", "server", "migrator"}
    assert shown["worker"] == {
        "duty": "worker", "role": f"{prefix}worker", "is_there": True, "logins": [f"{prefix}joe"],
    }  # fmt: skip


def test_an_owner_without_createrole_is_told_what_is_missing(run, db, database, prefix):
    db.execute(f"create role {prefix}boss login")
    db.execute("select faultline.transfer_ownership(%s)", [f"{prefix}boss"])

    told = run("--dsn", make_conninfo(database, user=f"{prefix}boss"), "roles", "create", "--prefix", prefix)

    db.execute("select faultline.transfer_ownership(current_user::text)")
    assert told.exit_code == 1
    assert "CREATEROLE" in told.stderr
    assert "alter role" in told.stderr


def test_a_prefix_that_is_none_is_told(on):
    told = on("roles", "create", "--prefix", "Bad-")

    assert told.exit_code == 2
    assert "prefix" in told.stderr


def strict(on):
    told = on("--output", "json", "doctor", "--strict")
    return [check for check in json.loads(told.stdout)["checks"] if check["name"] == "access"]


def test_strict_finds_drift_and_ends_with_3(on, db, prefix):
    on("roles", "create", "--prefix", prefix, "--own")
    well = strict(on)
    db.execute("grant execute on function faultline.claim to public")
    ill = strict(on)

    assert [check["grade"] for check in well] == ["ok"]
    assert [(check["grade"], check["remedy"]) for check in ill] == [
        ("bad", "revoke all on function faultline.claim from public")
    ]
    assert on("doctor", "--strict").exit_code == 3


@pytest.mark.parametrize("duty", ["operator", "reader"])
def test_doctor_is_there_for_roles_that_may_read_no_table(run, on, db, database, prefix, duty):
    on("roles", "create", "--prefix", prefix, "--own")
    db.execute(f"create role {prefix}joe login; grant {prefix}{duty} to {prefix}joe")

    told = run(
        "--dsn", make_conninfo(database, user=f"{prefix}joe"), "--output", "json", "doctor", "--strict"
    )
    grades = {check["name"]: check["grade"] for check in json.loads(told.stdout)["checks"]}

    assert (grades["connection"], grades["schema"], grades["access"]) == ("ok", "ok", "ok")


def test_acts_are_listed_with_their_actor_and_reason(on, ask, store):
    job_id = enqueue(store, queue="mail")
    store.run(calls.cancel(job_id, "not wanted"))
    on("queues", "pause", "sms", "--new")

    told = on("acts").stdout.splitlines()
    of_the_job = ask("acts", "--job", str(job_id))
    of_the_queue = ask("acts", "--queue", "sms")

    assert re.search(rf"cancel +job {job_id}, queue mail +not wanted", told[2])
    assert [act["verb"] for act in of_the_job] == ["cancel"]
    assert [act["verb"] for act in of_the_queue] == ["pause"]


def test_whatever_an_operator_does_by_hand_can_be_told_why(on, ask, store):
    later = enqueue(store, delay=timedelta(hours=1))
    dead = [enqueue(store, max_attempts=1) for _ in range(3)]
    for lease in [claim_one(store) for _ in dead]:
        store.run(calls.fail(lease, "boom", timedelta(0)))

    for number, words in enumerate((
        ("queues", "pause", "sms", "--new"), ("queues", "resume", "sms"),
        ("queues", "keep", "outline", "sms"),
        ("jobs", "retry", str(later)), ("jobs", "replay", str(dead[0])), ("jobs", "replay", "--all", "--yes"),
    )):  # fmt: skip
        on(*words, "--reason", f"reason {number}")

    told = {(act["verb"], act["reason"]) for act in ask("acts")}
    assert told == {
        ("pause", "reason 0"), ("resume", "reason 1"), ("set_retention", "reason 2"),
        ("retry_now", "reason 3"), ("replay", "reason 4"), ("replay_many", "reason 5"),
    }  # fmt: skip
