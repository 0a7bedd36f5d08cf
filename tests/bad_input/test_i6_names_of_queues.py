"""I6: a queue's name is letters, digits and `_ . -`; it is a parameter everywhere and a pattern nowhere."""

import psycopg
import pytest

from faultline import errors
from faultline.store import calls
from tests.bad_input.entry_points import words
from tests.support import claim_many, enqueue, new_job

NAMES = {
    "an injection": "'; drop table jobs;--",
    "a percent sign": "%",
    "two dots": "..",
    "a path": "a/b",
    "64 characters": "a" * 64,
    "10,000 characters": "a" * 10_000,
    "right to left": "\u202etluafed",
    "another script": "очередь",
    "an emoji": "🦀",
    "nothing": "",
    "a star": "*",
    "a space": " ",
    "a newline at its end": "default\n",
    "a letter of full width": "ａ",
    "a zero-width space": "a\u200bb",
}


@pytest.mark.parametrize("case", NAMES)
def test_i6_a_name_outside_the_rules_is_refused_at_every_door(entries, nothing_changes, case):
    with nothing_changes():
        told = entries.refusals(queue=NAMES[case])

    assert type(told["store"]) is errors.BadName
    assert "a queue name is 1 to 63 letters digits underscores dots dashes" in str(told["store"])
    assert type(told["sql"]) is psycopg.errors.CheckViolation
    assert "a_queue_name_is_1_to_63_letters" in words(told["sql"])
    assert type(told["python"]) is errors.BadName
    assert "Use 1 to 63 of A-Z a-z 0-9 _ . -" in str(told["python"])
    assert all(len(str(refusal)) < 400 and "\u202e" not in str(refusal) for refusal in told.values())


@pytest.mark.parametrize("verb", ["pause", "resume", "set_retention"])
def test_i6_the_other_verbs_that_name_a_queue_refuse_it_too(store, nothing_changes, verb):
    call = calls.set_retention("a b", "full") if verb == "set_retention" else getattr(calls, verb)("a b")

    with nothing_changes(), pytest.raises(errors.BadName, match="a queue name is"):
        store.run(call)


def test_i6_an_injection_is_only_a_text_to_a_claim(store, nothing_changes):
    """A claim may ask for any queue; one that cannot exist has no jobs."""
    enqueue(store)

    with nothing_changes():
        assert claim_many(store, queues=tuple(NAMES.values())) == []
        assert store.run(calls.list_jobs(queue=NAMES["an injection"])) == []
        assert store.run(calls.list_jobs(task="%", state="_")) == []
        assert store.run(calls.replay_many(queue="%", task="_")) == []


@pytest.mark.parametrize("name", ["_", "a.b", "a-b", "a_b"])
def test_i6_an_underscore_or_a_dot_stands_for_itself(store, name):
    """No LIKE and no regular expression: `a_b` is not `axb`."""
    for queue in ("a.b", "a-b", "a_b", "axb", "_", "x"):
        enqueue(store, queue=queue)

    store.run(calls.pause(name))

    assert len(claim_many(store, queues=(name,))) == 0
    assert [job.queue for job in store.run(calls.list_jobs(queue=name))] == [name]
    assert len(claim_many(store, queues=("a.b", "a-b", "a_b", "axb", "_", "x"))) == 5


def test_i6_names_that_differ_in_case_are_different_queues(store):
    enqueue(store, queue="Mail")

    assert claim_many(store, queues=("mail",)) == []


def test_i6_a_batch_for_a_bad_queue_leaves_no_job_and_no_queue(store, nothing_changes):
    with nothing_changes(), pytest.raises(errors.BadName):
        store.run(calls.enqueue_many([new_job(queue="a b")] * 3))
