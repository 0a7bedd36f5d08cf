"""`faultline jobs`: list, show, cancel, retry, replay."""

from datetime import timedelta

import pytest

from faultline.errors import LeaseLost
from faultline.store import calls
from tests.support import claim_one, enqueue, state_of, worker_named


@pytest.fixture
def raced(store):
    """A job that one worker lost, another finished, and the first tried to finish as well."""
    job = enqueue(store, task="transfer", args='{"amount": 100}')
    late, good = worker_named(store, "late"), worker_named(store, "good")
    asleep = claim_one(store, worker=late)
    store.run(calls.release(asleep, "given back"))
    awake = claim_one(store, worker=good)
    with pytest.raises(LeaseLost):
        store.run(calls.complete(asleep, '"late"'))
    store.run(calls.refused(asleep, late))
    store.run(calls.complete(awake, '"on time"'))
    return job


def bury(store, **options):
    job = enqueue(store, **options)
    store.run(calls.bury(claim_one(store), "no good"))
    return job


def test_a_list_shows_the_newest_first_and_how_to_go_on(on, store):
    for _ in range(3):
        enqueue(store, task="charge")

    page = on("jobs", "list", "--limit", "2")
    rest = on("jobs", "list", "--limit", "2", "--before", "2")

    assert [line.split()[0] for line in page.stdout.splitlines()] == ["id", "3", "2"]
    assert "--before 2" in page.stderr
    assert [line.split()[0] for line in rest.stdout.splitlines()] == ["id", "1"]


def test_a_list_is_filtered_by_state_queue_and_task(ask, store):
    enqueue(store, task="charge", queue="billing")
    enqueue(store, task="greet", delay=timedelta(hours=1))
    dead = bury(store, task="greet")

    assert [job["id"] for job in ask("jobs", "list", "--state", "dead")] == [dead]
    assert [job["task"] for job in ask("jobs", "list", "--queue", "billing")] == ["charge"]
    assert len(ask("jobs", "list", "--task", "greet")) == 2
    assert ask("jobs", "list", "--queue", "%") == []


def test_output_that_is_piped_is_plain_and_never_cut(on, store):
    enqueue(store, task="a" * 128, queue="q" * 63)

    shown = on("jobs", "list").stdout

    assert "a" * 128 in shown
    assert "q" * 63 in shown
    assert "\x1b" not in shown
    assert all(line == line.rstrip() for line in shown.splitlines())


def test_show_tells_each_lease_and_the_refused_write(on, raced):
    shown = on("jobs", "show", raced).stdout

    assert "transfer  succeeded" in shown
    lines = [line.split() for line in shown.splitlines()]
    released, succeeded, refused = [line for line in lines if line and line[0] in ("1", "2")]
    assert released[:2] == ["1", "late"]
    assert "released" in released
    assert refused[:2] == ["1", "late"]
    assert "refused a late write, token_mismatch: token 2 is newer" in " ".join(refused)
    assert succeeded[:2] == ["2", "good"]
    assert '{"amount": 100}' in shown
    assert '"on time"' in shown


def test_json_has_ids_as_numbers_and_tokens_as_strings(ask, raced):
    job = ask("jobs", "show", raced)

    assert job["id"] == raced
    assert job["token"] == "2"
    assert [lease["token"] for lease in job["leases"]] == ["1", "2"]
    assert (job["refusals"][0]["token"], job["refusals"][0]["current_token"]) == ("1", "2")


def test_long_args_are_folded_unless_all_of_them_are_asked_for(on, store):
    job = enqueue(store, args='{"text": "' + "x" * 5000 + '"}')

    assert "--full shows them" in on("jobs", "show", job).stdout
    assert "x" * 5000 in on("jobs", "show", job, "--full").stdout


def test_a_job_that_is_not_there_exits_with_1(on):
    refused = on("jobs", "show", "999")

    assert refused.exit_code == 1
    assert "there is no trace of job 999" in refused.stderr


def test_cancel_refuses_where_it_cannot_ask(on, store):
    job = enqueue(store)

    refused = on("jobs", "cancel", job)

    assert refused.exit_code == 2
    assert "add --yes to confirm" in refused.stderr
    assert state_of(store, job) == "queued"


def test_cancel_with_yes_ends_the_jobs_it_can_and_tells_of_the_others(on, store):
    first, second = enqueue(store), enqueue(store)

    done = on("jobs", "cancel", first, 999, second, "--yes", "--reason", "withdrawn")

    assert done.exit_code == 1
    assert done.stdout == f"job {first} cancelled\njob {second} cancelled\n"
    assert "there is no job 999" in done.stderr
    assert store.run(calls.get(first)).error == "withdrawn"


def test_retry_makes_a_scheduled_job_due(on, store):
    job = enqueue(store, delay=timedelta(hours=1))

    # Scripts say --yes to whatever decides about jobs, as the README tells them.
    assert on("jobs", "retry", job, "--yes").stdout == f"job {job} is due now\n"
    assert claim_one(store).job_id == job


def test_replay_of_one_dead_job_needs_no_question(on, store):
    job = bury(store)

    assert on("jobs", "replay", job).exit_code == 0
    assert state_of(store, job) == "queued"
    assert on("jobs", "replay", job).exit_code == 1


def test_replay_of_all_asks_first_and_keeps_to_its_filters(on, store):
    mine, other = bury(store, task="charge"), bury(store, task="greet")

    refused = on("jobs", "replay", "--all", "--task", "charge")
    done = on("jobs", "replay", "--all", "--task", "charge", "--yes")

    assert refused.exit_code == 2
    assert "Replay 1 dead job?" in refused.stderr
    assert done.stdout == "1 of 1 queued again\n"
    assert (state_of(store, mine), state_of(store, other)) == ("queued", "dead")


def test_replay_wants_ids_or_all_and_not_both(on):
    assert on("jobs", "replay").exit_code == 2
    assert on("jobs", "replay", 1, "--all").exit_code == 2
    assert on("jobs", "replay", 1, "--queue", "x").exit_code == 2
