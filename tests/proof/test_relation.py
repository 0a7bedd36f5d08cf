"""The next-state relation in Python: what a job's history may be, and what each lie about it breaks."""

import doctest
from dataclasses import replace

import pytest

from proof.model import configs, relation
from proof.model.forgeries import FORGERIES, fits
from proof.model.history import Effect, Entry, JobHistory, Row
from proof.model.ledger import histories
from proof.model.relation import check
from proof.model.walks import made_up
from tests.promises.verbs import retaken
from tests.support import claim_one, enqueue

LOST = Entry("expired", token=3, claim="a", attempt=1, crashes=1, claimed_at=0, settled_at=1)
WON = Entry("succeeded", token=7, claim="b", attempt=2, crashes=1, claimed_at=2, settled_at=3)
TRUE = JobHistory(
    job_id=1, max_attempts=5, entries=(LOST, WON), effects=(Effect("debit", 7), Effect("credit", 7))
)


def test_the_examples_in_its_docstrings_run():
    assert doctest.testmod(relation).failed == 0


def test_a_job_that_was_lost_once_and_then_succeeded_is_legal():
    assert fits(TRUE)
    assert check(TRUE) == ()


@pytest.mark.parametrize("forgery", FORGERIES, ids=lambda forgery: forgery.says)
def test_it_is_found_out_when(forgery):
    names = [breach.invariant for breach in check(forgery.forge(TRUE))]

    assert forgery.expects in names


@pytest.mark.parametrize(
    ("row", "legal"),
    [
        (Row("later", 3, None, 1, 1), True),
        (Row("queued", 3, None, 1, 1), True),
        (Row("running", 4, "c", 2, 1), True),
        (Row("running", 3, "c", 2, 1), False),
        (Row("running", 4, "a", 2, 1), False),
        (Row("queued", 3, None, 0, 1), False),
        (Row("dead", 3, None, 1, 1), False),
    ],
)
def test_a_row_must_be_where_the_ledger_leads_to(row, legal):
    history = replace(TRUE, entries=(LOST,), rows=(row,), effects=None)

    assert (check(history) == ()) is legal


def test_made_up_histories_are_the_same_for_the_same_seed_and_of_both_kinds():
    told = made_up(1, 200)

    assert told == made_up(1, 200)
    assert all(check(walk) == () for walk in told[1::2])
    assert 20 < sum(check(walk) != () for walk in told[::2]) < 100


def test_a_real_ledger_is_told_as_a_legal_history(store, db, clock):
    asleep, awake = retaken(store, clock)
    enqueue(store)
    claim_one(store)

    first, second = histories(db)

    assert check(first) == check(second) == ()
    assert [entry.outcome for entry in first.entries] == ["expired"]
    assert [entry.token for entry in first.entries] == [asleep.token]
    assert [(row.state, row.token) for row in first.rows] == [("running", awake.token)]
    assert second.entries == ()


def test_every_promise_has_a_configuration_that_must_break_it():
    told = configs.every()
    broken = {config.expects for config in told if config.kind == "mutant"}

    assert broken >= {
        "NoZombie", "OneEffect", "OwnerIsOne", "TerminalStays", "TokenGrows", "NothingLost", "Drains",
    }  # fmt: skip
    assert all(config.says for config in told)
    assert all(
        config.expects in config.path.read_text().splitlines()[-1]
        for config in told
        if config.kind != "model"
    )
