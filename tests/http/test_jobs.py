"""Over HTTP jobs are submitted, found, awaited and looked at."""

import threading
import time

import pytest

from faultline.store import calls
from tests.http.serving import code_of
from tests.support import NOW, claim_one, row_counts, state_of

JOBS = "/api/v1/jobs"


def test_a_submitted_job_is_there_when_the_answer_comes(admin, store):
    answer = admin.post(
        JOBS, json={"task": "charge", "args": {"order": 7}, "queue": "billing", "priority": -5}
    )

    assert answer.status_code == 201
    job = store.run(calls.get(answer.json()["id"]))
    assert (job.task, job.queue, job.priority, job.args) == ("charge", "billing", -5, {"order": 7})
    assert answer.headers["location"] == f"{JOBS}/{job.id}"


def test_a_payload_is_passed_on_as_it_is_kept(admin, store, queue):
    """The server does not parse it: parsing holds up other calls and loses the last digits."""
    digits = "12345678901234567890.12345678901234567890"
    asked = '{"task": "t", "queue": "' + queue + '", "args": {"n": ' + digits + ', "t": "\u00e9 \\" "}}'
    job_id = admin.post(JOBS, content=asked, headers={"content-type": "application/json"}).json()["id"]
    found = admin.get(f"{JOBS}/{job_id}")
    store.run(calls.complete(claim_one(store, queues=(queue,)), '["' + "x" * 10 + '", ' + digits + "]"))
    ended = admin.get(f"{JOBS}/{job_id}/wait?seconds=0")

    assert found.json()["args"]["t"] == 'é " '
    assert found.json()["result"] is None
    assert f'"n": {digits}' in found.text
    assert ended.json()["state"] == "succeeded"
    assert f'["xxxxxxxxxx", {digits}]' in ended.text
    assert set(ended.json()) == set(found.json()) >= {"id", "token", "error", "key", "damage", "args"}


def test_the_same_idempotency_key_is_the_same_job(admin, store, queue):
    asked = {"task": "charge", "args": {"order": 7}, "queue": queue}
    first = admin.post(JOBS, json=asked, headers={"idempotency-key": "order-7"})
    by_field = admin.post(JOBS, json={**asked, "key": "order-7"})
    other = admin.post(JOBS, json={**asked, "args": {"order": 8}}, headers={"idempotency-key": "order-7"})

    assert (first.status_code, by_field.status_code) == (201, 200)
    assert by_field.json() == {"id": first.json()["id"], "new": False}
    assert (other.status_code, code_of(other)) == (409, "key_conflict")
    assert store.run(calls.count_jobs(queues=[queue])) == 1


@pytest.mark.parametrize("key", ["größe-7", "注文-7", "\N{ROCKET}"])
def test_a_key_beyond_ascii_is_the_same_in_the_header_and_in_the_field(admin, queue, key):
    """In a header it is UTF-8, as curl and most clients send it."""
    asked = {"task": "charge", "queue": queue}
    by_header = admin.post(JOBS, json=asked, headers={b"idempotency-key": key.encode()})
    by_field = admin.post(JOBS, json={**asked, "key": key})
    by_both = admin.post(JOBS, json={**asked, "key": key}, headers={b"idempotency-key": key.encode()})

    assert [said.status_code for said in (by_header, by_field, by_both)] == [201, 200, 200]
    assert by_header.json()["id"] == by_field.json()["id"] == by_both.json()["id"]
    assert admin.get(f"{JOBS}/{by_field.json()['id']}").json()["key"] == key


@pytest.mark.parametrize("raw", ["größe-7".encode("latin-1"), b"order-7\xff", b"\xed\xa0\x80"])
def test_a_key_in_the_header_that_is_no_utf_8_is_refused(admin, store, queue, raw):
    answer = admin.post(JOBS, json={"task": "charge", "queue": queue}, headers={b"idempotency-key": raw})

    assert (answer.status_code, code_of(answer)) == (400, "malformed")
    assert "Idempotency-Key" in answer.json()["detail"]
    assert "UTF-8" in answer.json()["detail"]
    assert store.run(calls.count_jobs(queues=[queue])) == 0


@pytest.mark.parametrize(
    ("where", "said"),
    [
        (f"{JOBS}?sate=dead", "there is no parameter 'sate' here; did you mean state?"),
        (f"{JOBS}?state=dead&frobnicate=1", "it takes state, queue, task, key, cursor, most"),
        ("/api/v1/stats?queue=mail", "there is no parameter 'queue' here"),
    ],
)
def test_a_parameter_that_nothing_reads_is_refused(admin, where, said):
    """A filter that is mistyped would fit every job."""
    answer = admin.get(where)

    assert (answer.status_code, code_of(answer)) == (422, "bad_input")
    assert said in answer.json()["detail"]


def test_a_header_and_a_field_that_name_two_keys_are_refused(admin):
    answer = admin.post(JOBS, json={"task": "charge", "key": "a"}, headers={"idempotency-key": "b"})

    assert (answer.status_code, code_of(answer)) == (422, "bad_name")


def test_many_jobs_are_submitted_together_or_not_at_all(admin, database):
    good = [{"task": "charge", "args": {"order": n}, "queue": f"q{n % 3}"} for n in range(1200)]
    before = row_counts(database)["active"]
    made = admin.post(f"{JOBS}/batch", json={"jobs": good})
    refused = admin.post(f"{JOBS}/batch", json={"jobs": [*good, {"task": "charge", "args": {"bad": "\0"}}]})

    assert made.status_code == 201
    assert len(set(made.json()["ids"])) == 1200
    assert refused.status_code == 422
    assert "jobs[1200].args" in refused.json()["detail"]
    assert row_counts(database)["active"] == before + 1200


def test_a_job_for_later_is_queued_with_its_moment(admin, store):
    answer = admin.post(JOBS, json={"task": "charge", "delay_seconds": 3600})

    job = store.run(calls.get(answer.json()["id"]))
    assert (job.run_at - job.created_at).total_seconds() == pytest.approx(3600, abs=1)


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({}, "task"),
        ({"task": "no good"}, "task"),
        ({"task": "t", "queue": "'; drop table jobs;--"}, "queue"),
        ({"task": "t", "priority": 101}, "priority"),
        ({"task": "t", "priority": 1.5}, "priority"),
        ({"task": "t", "max_attempts": 0}, "max_attempts"),
        ({"task": "t", "delay_seconds": -1}, "delay_seconds"),
        ({"task": "t", "lease_seconds": 0.001}, "lease_seconds"),
        ({"task": "t", "run_at": "2030-01-01T00:00:00"}, "run_at"),
        ({"task": "t", "run_at": "1999-01-01T00:00:00Z"}, "run_at"),
        ({"task": "t", "run_at": "2030-01-01T00:00:00Z", "delay_seconds": 1}, "delay_seconds"),
        ({"task": "t", "args": [1]}, "args"),
        ({"task": "t", "args": {"a": "x\0"}}, "args"),
        ({"task": "t", "key": ""}, "key"),
        ({"task": "t", "key": "a\nb"}, "key"),
        ({"task": "t", "import": "os"}, "import"),
    ],
)
def test_bad_input_is_refused_at_the_door_with_its_name(admin, asked, named):
    answer = admin.post(JOBS, json=asked)

    assert answer.status_code == 422, answer.text
    assert named in answer.json()["detail"]
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    "args",
    ['{"n": 1e400}', '{"a": "\\ud800"}', '{"a": ' + "[" * 100 + "]" * 100 + "}", '{"n": NaN}', '{"a":'],
)
def test_args_that_json_in_postgresql_cannot_hold_are_refused(admin, args):
    body = f'{{"task": "t", "args": {args}}}'
    answer = admin.post(JOBS, content=body.encode(), headers={"content-type": "application/json"})

    assert answer.status_code in (400, 422), answer.text
    assert code_of(answer) in ("malformed", "bad_document", "bad_input")


def test_args_keep_every_digit_of_a_number(admin, db):
    body = b'{"task": "t", "args": {"n": 9007199254740993, "x": 0.1234567890123456789}}'
    made = admin.post(JOBS, content=body, headers={"content-type": "application/json"}).json()

    kept = db.execute("select args::text from faultline.active where id = %s", [made["id"]]).fetchone()[0]
    assert kept == '{"n": 9007199254740993, "x": 0.1234567890123456789}'


def test_a_job_is_shown_with_its_token_as_a_string(admin, submit, store, queue):
    job_id = submit()
    lease = claim_one(store, queues=(queue,))

    shown = admin.get(f"{JOBS}/{job_id}").json()
    assert (shown["state"], shown["token"], shown["args"]) == ("running", str(lease.token), {})


def test_a_list_goes_page_by_page_newest_first(admin, submit, queue):
    made = [submit() for _ in range(7)]

    first = admin.get(JOBS, params={"queue": queue, "most": 3}).json()
    second = admin.get(JOBS, params={"queue": queue, "most": 3, "cursor": first["next"]}).json()
    last = admin.get(JOBS, params={"queue": queue, "most": 3, "cursor": second["next"]}).json()

    pages = [[job["id"] for job in page["jobs"]] for page in (first, second, last)]
    assert [*pages[0], *pages[1], *pages[2]] == made[::-1]
    assert last["next"] is None
    assert "args" not in first["jobs"][0]


def test_a_list_is_filtered_by_state_queue_task_and_key(admin, submit, store, queue):
    running = submit()
    claim_one(store, queues=(queue,))
    waiting, keyed = submit(), submit(task="mail", key="k")
    elsewhere = submit(queue="elsewhere", task="mail")

    def ids(**filters):
        return {job["id"] for job in admin.get(JOBS, params=filters).json()["jobs"]}

    assert ids(queue=queue, state="running") == {running}
    assert ids(queue=queue, state=["running", "queued"]) == {running, waiting, keyed}
    assert ids(queue=queue) == {running, waiting, keyed}
    assert ids(task="mail") == {keyed, elsewhere}
    assert ids(key="k") == {keyed}


def test_a_wait_ends_with_the_job(admin, submit, store, queue):
    job_id = submit()
    lease = claim_one(store, queues=(queue,))
    answers = []
    waiting = threading.Thread(
        target=lambda: answers.append(admin.get(f"{JOBS}/{job_id}/wait", params={"seconds": 20}).json())
    )
    waiting.start()
    time.sleep(0.2)

    assert answers == []
    store.run(calls.complete(lease, '{"paid": true}'))
    waiting.join(60)

    assert (answers[0]["state"], answers[0]["result"]) == ("succeeded", {"paid": True})


def test_a_wait_that_is_up_answers_with_the_job_as_it_is(admin, submit):
    job_id = submit()

    answer = admin.get(f"{JOBS}/{job_id}/wait", params={"seconds": 0.05})

    assert (answer.status_code, answer.json()["state"]) == (200, "queued")


def test_ledger_timeline_and_refusals_tell_what_happened(admin, submit, store, queue):
    job_id = submit()
    first = claim_one(store, queues=(queue,))
    store.run(calls.fail(first, "boom", NOW))
    store.run(calls.retry_now(job_id))
    second = claim_one(store, queues=(queue,))
    refused = store.run(calls.complete_many([first], [None]))
    store.run(calls.complete(second, None))

    assert [answer.answer for answer in refused] == ["refused"]
    ledger = admin.get(f"{JOBS}/{job_id}/ledger").json()
    moments = admin.get(f"{JOBS}/{job_id}/timeline").json()
    assert [entry["outcome"] for entry in ledger] == ["failed", "succeeded"]
    assert [moment["kind"] for moment in moments] == ["lease", "lease", "refused"]
    assert admin.get(f"{JOBS}/{job_id}/refusals").json()[0]["token"] == str(first.token)
    assert admin.get("/api/v1/refusals").json()[0]["current_token"] == str(second.token)
    assert state_of(store, job_id) == "succeeded"


def test_a_job_that_is_not_there_is_a_problem(admin):
    for path in ("", "/wait", "/ledger", "/timeline", "/refusals"):
        answer = admin.get(f"{JOBS}/4711{path}")

        assert (answer.status_code, code_of(answer)) == (404, "not_found")


def test_one_damaged_row_fails_no_list_and_is_told(admin, submit, db, queue):
    """As a dump that was changed brings it: no client can hold its moment."""
    well, hurt = submit(), submit()
    db.execute("update faultline.active set created_at = 'infinity' where id = %s", [hurt])

    listed = admin.get(JOBS, params={"queue": queue})
    shown = admin.get(f"{JOBS}/{hurt}")
    db.execute("delete from faultline.active where id = %s", [hurt])

    assert [(job["id"], job["damage"]) for job in listed.json()["jobs"]] == [
        (hurt, "a moment of it is none"),
        (well, None),
    ]
    assert (shown.status_code, shown.json()["damage"]) == (200, "a moment of it is none")


@pytest.mark.parametrize("form", ["{}.0", "+{}", "%20{}", "{}%0a", "0{}", "1_{}", "%D9%A1{}", "{}e0"])
@pytest.mark.parametrize("end", ["", "/wait?seconds=0", "/ledger"])
def test_a_job_has_one_path(admin, submit, form, end):
    """The budget of a request follows from its path: a second form of a wait's path was counted as a call."""
    job_id = submit()

    answer = admin.get(f"{JOBS}/{form.format(job_id)}{end}")

    assert answer.status_code == 422, answer.text
    assert admin.get(f"{JOBS}/{job_id}{end}").status_code == 200


def test_a_key_rule_says_what_a_second_submit_changes(admin, queue, store):
    asked = {"task": "sync", "queue": queue, "key": "tenant-7", "key_rule": "replace"}
    first = admin.post(JOBS, json={**asked, "args": {"n": 1}})
    second = admin.post(JOBS, json={**asked, "args": {"n": 2}})
    wrong = admin.post(JOBS, json={**asked, "key_rule": "sometimes"})
    without = admin.post(JOBS, json={"task": "sync", "queue": queue, "key_rule": "replace"})

    assert (first.status_code, second.status_code) == (201, 200)
    assert second.json() == {"id": first.json()["id"], "new": False}
    assert store.run(calls.get(first.json()["id"])).args == {"n": 2}
    assert (wrong.status_code, without.status_code) == (422, 422)


def test_a_job_that_expires_is_submitted_and_one_that_never_could_start_is_refused(
    admin, queue, store, clock
):
    asked = {"task": "remind", "queue": queue}
    job_id = admin.post(JOBS, json={**asked, "expires_seconds": 60}).json()["id"]
    never = admin.post(JOBS, json={**asked, "expires_seconds": 60, "delay_seconds": 60})
    both = admin.post(JOBS, json={**asked, "expires_seconds": 60, "expires_at": "2090-01-01T00:00:00Z"})
    clock.advance(seconds=61)
    store.run(calls.expire())

    assert (never.status_code, both.status_code) == (422, 422)
    assert store.run(calls.get(job_id)).error == "expired before it started"


def test_a_full_queue_refuses_a_submit_by_name(admin, queue, store):
    admin.post(JOBS, json={"task": "t", "queue": queue})
    view = admin.patch(f"/api/v1/queues/{queue}", json={"max_depth": 1, "age_after_seconds": 60}).json()
    refused = admin.post(JOBS, json={"task": "t", "queue": queue})
    nothing = admin.patch(f"/api/v1/queues/{queue}", json={})
    wrong = admin.patch(f"/api/v1/queues/{queue}", json={"max_depth": -1})
    admin.patch(f"/api/v1/queues/{queue}", json={"max_depth": 0, "keep": "outline"})

    assert (view["max_depth"], view["full"], view["age_after_seconds"]) == (1, True, 60.0)
    assert (refused.status_code, code_of(refused)) == (429, "queue_full")
    assert (nothing.status_code, wrong.status_code) == (422, 422)
    assert admin.post(JOBS, json={"task": "t", "queue": queue}).status_code == 201
