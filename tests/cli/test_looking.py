"""`queues`, `workers` and `ledger`: what is there, and nothing of it reaches the terminal raw."""

import pytest

from faultline.store import calls
from tests.support import claim_one, enqueue, worker_named

NASTY = "\x1b[31mred\x07\u202ebidi\nnew"


def test_queues_show_depth_lag_and_what_is_paused(on, ask, store, clock):
    enqueue(store, queue="billing")
    enqueue(store, queue="billing")
    store.run(calls.bury(claim_one(store, queues=("billing",)), "no"))
    clock.advance(minutes=2)

    (billing,) = ask("queues", "list")
    assert (billing["queue"], billing["due"], billing["dead"], billing["paused"]) == ("billing", 1, 1, False)
    assert billing["lag_seconds"] == pytest.approx(120, abs=5)
    assert "2m0" in on("queues", "list").stdout


def test_a_paused_queue_gives_no_job_until_it_is_resumed(on, store):
    enqueue(store, queue="billing")

    assert on("queues", "pause", "billing").stdout == "queue billing paused\n"
    assert "paused" in on("queues", "list").stdout
    assert store.run(calls.list_queues())[0].paused

    on("queues", "resume", "billing")
    assert claim_one(store, queues=("billing",))


@pytest.mark.parametrize("what", ["outline", "nothing", "full"])
def test_what_a_queue_keeps_is_chosen_here(on, ask, store, what):
    enqueue(store, queue="billing")

    assert on("queues", "keep", what, "billing").stdout == f"queue billing keeps {what} of its successes\n"

    (billing,) = ask("queues", "list")
    assert billing["keep"] == what


def test_a_queue_keeps_one_of_three_things(on):
    assert on("queues", "keep", "everything", "billing").exit_code == 2


def test_an_unknown_queue_cannot_be_resumed(on):
    refused = on("queues", "resume", "nope")

    assert refused.exit_code == 2
    assert "no queue is called nope. Nothing was done." in refused.stderr


def test_workers_are_working_then_silent_then_stopped(ask, store, clock):
    worker = worker_named(store, "w1")
    enqueue(store)
    claim_one(store, worker=worker)

    assert [(known["state"], known["running"]) for known in ask("workers")] == [("working", 1)]
    clock.advance(minutes=1)
    assert [known["state"] for known in ask("workers")] == ["silent"]
    store.run(calls.worker_stopped(worker))
    assert ask("workers") == []
    assert [known["state"] for known in ask("workers", "--all")] == ["stopped"]


def test_the_ledger_shows_leases_and_apart_from_them_refusals(on, ask, store):
    enqueue(store)
    lease = claim_one(store, worker=worker_named(store, "w1"))
    store.run(calls.complete(lease, "null"))
    store.run(calls.refused(lease))

    (entry,) = ask("ledger")
    (refusal,) = ask("ledger", "--refusals")
    assert (entry["outcome"], entry["token"], entry["worker"]) == ("succeeded", "1", "w1")
    assert (refusal["reason"], refusal["token"]) == ("settled", "1")
    assert "settled" in on("ledger", "--refusals").stdout


def test_empty_tables_say_so_in_words(on):
    assert on("queues", "list").stdout == "no queue yet: the first job makes it\n"
    assert "no worker is there" in on("workers").stdout
    assert on("ledger").stdout == "no lease has ended yet\n"
    assert on("ledger", "--refusals").stdout == "no write was ever refused\n"


@pytest.mark.parametrize(
    "words", [["jobs", "list"], ["jobs", "show", "1", "--full"], ["ledger"], ["workers"]]
)
def test_i11_codes_for_the_terminal_are_spelled_out(on, store, words):
    enqueue(store, args='{"note": "\\u001b[31mred\\u202e"}', max_attempts=1)
    worker = worker_named(store, NASTY)
    store.run(calls.bury(claim_one(store, worker=worker), NASTY, NASTY))

    for output in ("table", "json"):
        shown = on(*words, "--output", output).stdout
        assert "\x1b" not in shown
        assert "\x07" not in shown
        assert "\u202e" not in shown


def test_nothing_printed_holds_a_claim(on, store):
    enqueue(store)
    lease = claim_one(store)

    for words in (["jobs", "list"], ["jobs", "show", "1"], ["ledger"], ["workers"], ["queues", "list"]):
        assert str(lease.claim) not in on(*words, "--output", "json").stdout


def test_queues_that_were_removed_are_counted(on, store):
    for name in ("old", "older"):
        store.run(calls.pause(name))
    told = on("queues", "remove", "--unused").stdout.splitlines()
    assert told[-1] == "removed 2 queues, kept 0"
    store.run(calls.pause("old"))
    enqueue(store, queue="used")

    assert on("queues", "remove", "--unused").stdout.splitlines()[-1] == "removed 1 queue, kept 1"


def test_queues_that_nothing_needs_are_removed(on, ask, store):
    for name in ("old", "older"):
        store.run(calls.pause(name))
    enqueue(store, queue="used")

    told = on("queues", "remove", "old", "used", "nosuch")

    assert told.exit_code == 1
    assert told.stdout == (
        "queue nosuch stays: there is no such queue\nqueue old removed\n"
        "queue used stays: it holds jobs: waiting, running or dead\n"
    )
    assert ask("queues", "remove", "--unused") == [
        {"queue": "older", "removed": True, "said": None},
        {"queue": "used", "removed": False, "said": "it holds jobs: waiting, running or dead"},
    ]
    assert on("queues", "remove").exit_code == on("queues", "remove", "used", "--unused").exit_code == 2
