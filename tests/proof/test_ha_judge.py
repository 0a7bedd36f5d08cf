"""The judge of `make ha`: each thing it looks at, kept and broken; a fault that did not happen is void."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from faultline.store import calls
from proof.ha.facts import Ack, HaFacts, LogLine, Note, Rows, read_acks, read_log, read_notes, read_rows
from proof.ha.faults import stands_unreplicated
from proof.ha.ground import EFFECTS
from proof.ha.judge import Expected, judge, noise, tokens_backwards
from proof.ha.watch import Moment, PrimaryTerm, promotions
from tests.support import claim_one, enqueue

BEGAN, PROMOTED = 100.0, 120.0
ASYNC = Expected(may_lose=True)
LOSSY = Expected(may_lose=True, must_lose=True)


def ack(n: int, t: float = 110.0, **changed) -> Ack:
    return Ack(**{"t": t, "who": "p-multi", "n": n, "call": 0.01, "id": n, **changed})


def start(n: int, t: float, token: int, **changed) -> Note:
    known = {"what": "start", "who": "multi", "id": n, "key": f"seed:{n}"}
    return Note(t=t, n=n, token=token, **{**known, **changed})


def sound() -> HaFacts:
    """A failover of twenty seconds in which everything was right."""
    return HaFacts(
        began=BEGAN,
        promotions=[PROMOTED],
        acks=[ack(1), ack(2, 121.0)],
        notes=[start(1, 111.0, 5), start(2, 121.0, 6), start(2, 121.5, 6, what="committed")],
        rows=Rows(
            {1: (1, "succeeded"), 2: (2, "succeeded")}, {1: 1, 2: 1}, {"succeeded": 2}, {}, {(1, 5), (2, 6)}
        ),
        logs={"multi": [LogLine(105.0, True, False)]},
        exits={"multi": 0},
        workers=["multi", "only-a"],
        producers=["p-multi"],
        pinned=["only-a"],
        lossy=(BEGAN, 130.0),
        audit_lost=0,
    )


def broken(facts: HaFacts, expected: Expected = Expected()) -> list[str]:  # noqa: B008
    return [finding.name for finding in judge(facts, expected).findings if not finding.kept]


def test_a_sound_run_is_kept():
    judgement = judge(sound(), Expected())

    assert (broken(sound()), judgement.void, judgement.verdict) == ([], (), "kept")


WRONG: dict[str, dict[str, Any]] = {
    "lost": {"acks": [*sound().acks, ack(3)], "audit_lost": 1},
    "commits lost": {"rows": sound().rows._replace(written={(1, 5), (2, 9)})},
    "double effects": {"rows": sound().rows._replace(effects={1: 2})},
    "ids twice": {"acks": [*sound().acks, ack(2, id=1)]},
    "keys twice": {"notes": [*sound().notes, start(1, 122.0, 7, key="seed:2")]},
    "tokens backwards": {"notes": [*sound().notes, start(1, 127.0, 4)]},
    "stuck": {"rows": sound().rows._replace(jobs={1: (1, "succeeded"), 2: (2, "running")})},
    "dead": {"rows": sound().rows._replace(jobs={1: (1, "dead"), 2: (2, "succeeded")})},
    "failed": {"rows": sound().rows._replace(outcomes={"failed": 1})},
    "multi s": {"notes": [*sound().notes[:2], start(2, 128.5, 6, what="committed")]},
    "p-multi s": {"acks": [ack(1), ack(2, 128.5)]},
    "slowest call s": {"acks": [*sound().acks, ack(9, id=None, error="CannotConnect", call=15.1)]},
    "log lines/5 s": {"logs": {"multi": [LogLine(105.0, True, False)] * 9}},
    "tracebacks": {"logs": {"multi": [LogLine(90.0, True, True)]}},
    "processes": {"exits": {"multi": "would not stop in 45 s"}},
    "drained": {"drained": False},
    "audit": {"audit": 1},
    "audit --ids": {"audit_lost": 2},
}


@pytest.mark.parametrize("name", WRONG)
def test_each_wrong_is_found_alone(name: str):
    facts = replace(sound(), **WRONG[name])

    assert broken(facts) == [name]
    assert judge(facts, Expected()).verdict == "broken"


def test_a_way_that_never_works_again_is_broken():
    assert broken(replace(sound(), notes=[start(1, 111.0, 5, what="committed")])) == ["multi s"]
    assert broken(replace(sound(), workers=["multi", "only-a", "remote"])) == ["remote s"]


def test_a_process_that_fails_is_broken_unless_it_has_no_way_to_the_database():
    assert broken(replace(sound(), exits={"multi": 0, "only-a": 1})) == []
    assert broken(replace(sound(), exits={"remote": 1})) == ["processes"]


def test_losses_are_allowed_in_the_lossy_window_of_an_asynchronous_scenario_only():
    inside = replace(sound(), acks=[*sound().acks, ack(3, 125.0)], audit_lost=1)
    before = replace(sound(), acks=[*sound().acks, ack(3, 97.0)], audit_lost=1)
    after = replace(sound(), acks=[*sound().acks, ack(3, 133.0)], audit_lost=1)

    assert broken(inside, ASYNC) == []
    assert broken(inside) == ["lost"]
    assert broken(before, ASYNC) == broken(after, ASYNC) == ["lost"]
    assert broken(replace(inside, lossy=None), ASYNC) == ["lost"]


def test_a_commit_that_was_answered_may_be_lost_as_a_job_may():
    done_again = replace(sound(), rows=sound().rows._replace(written={(1, 5), (2, 9)}))

    assert broken(done_again) == ["commits lost"]
    assert broken(done_again, ASYNC) == []
    assert broken(replace(done_again, lossy=(140.0, 150.0)), ASYNC) == ["commits lost"]


def test_an_audit_that_could_not_look_found_nothing_out():
    assert broken(replace(sound(), audit_lost=None)) == ["audit --ids"]


def test_a_job_that_was_answered_twice_is_lost_once():
    facts = replace(sound(), acks=[*sound().acks, ack(3), ack(3, 140.0)], audit_lost=1)

    (lost, *_) = judge(facts, ASYNC).findings

    assert (lost.found, lost.kept) == (1, True)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"promotions": []}, Expected()),
        ({}, Expected(promotions=2)),
        ({}, Expected(promotions=0)),
        ({}, LOSSY),
        ({"timelines": [2, 3]}, Expected(one_timeline=True)),
        ({"void": ["not within 90 s: another leads"]}, Expected()),
    ],
)
def test_a_fault_that_did_not_happen_is_void(changed, expected):
    judgement = judge(replace(sound(), **changed), expected)

    assert judgement.verdict == "void"
    assert len(judgement.void) == 1


def test_standbys_that_took_one_timeline_are_what_was_wanted():
    assert judge(replace(sound(), timelines=[2, 2]), Expected(one_timeline=True)).verdict == "kept"


@pytest.mark.parametrize(
    ("tries", "seen", "happened"),
    [
        (["try 1 given up", "try 2 given up"], True, True),
        (["try 1 given up", "try 2 acknowledged job 7 after 16 ms"], True, True),
        (["try 1 given up", "try 2 given up"], False, False),
        (["try 1 acknowledged job 7 after 16 ms", "try 2 acknowledged job 7 after 1 ms"], True, False),
        (["try 1 given up", ""], True, False),
        (["", ""], True, False),
    ],
)
def test_a_keyed_retry_happened_where_a_row_that_no_standby_has_was_asked_for_again(tries, seen, happened):
    assert stands_unreplicated(tries, seen) is happened


def test_what_is_broken_is_broken_also_where_the_fault_did_not_happen():
    assert judge(replace(sound(), audit=1, promotions=[]), Expected()).verdict == "broken"


def test_tokens_of_other_jobs_count_after_five_seconds_and_a_promotion():
    first = start(1, 119.0, 50)

    def found(*notes: Note, **changed) -> int:
        return len(tokens_backwards(replace(sound(), notes=[first, *notes], **changed)))

    assert found(start(2, 123.0, 40)) == 0  # it was claimed before, and waited in its worker
    assert found(start(2, 125.0, 40)) == 1
    assert found(start(2, 125.0, 50, who="haproxy")) == 1  # given twice
    assert found(start(2, 125.0, 50)) == 0  # the jobs of one claim share its token
    assert found(start(2, 125.0, 51)) == 0
    assert found(start(2, 125.0, 40), promotions=[]) == 0
    assert found(start(2, 125.0, 40), promotions=[126.0]) == 0
    assert found(start(2, 125.0, 40, who="only-a")) == 0  # it has no way to the newer primary


def test_where_the_ledger_knows_the_claim_its_moment_counts():
    late, quick = start(2, 129.0, 40), start(2, 121.0, 40)

    def found(note: Note, claimed: float) -> int:
        rows = sound().rows._replace(claims={(2, 40): claimed})
        return len(tokens_backwards(replace(sound(), notes=[start(1, 119.0, 50), note], rows=rows)))

    assert found(late, 118.9) == 0  # claimed before the other was seen, and kept waiting for ten seconds
    assert found(late, 119.1) == 1
    assert found(quick, 120.5) == 1  # no need to wait five seconds to be sure


def test_tokens_of_one_job_never_go_back():
    again = [start(1, 101.0, 50), start(1, 102.0, 50)]
    assert tokens_backwards(replace(sound(), notes=again)) == [("multi", 50, 50)]

    by_a_pinned_worker = [start(1, 101.0, 50), start(1, 102.0, 49, who="only-a")]
    assert tokens_backwards(replace(sound(), notes=by_a_pinned_worker)) == []
    after_one = [start(1, 119.0, 50, who="only-a"), start(2, 125.0, 50)]
    assert tokens_backwards(replace(sound(), notes=after_one)) == [("multi", 50, 50)]

    of_another_history = [start(1, 101.0, 50), start(2, 102.0, 49, id=1)]
    assert tokens_backwards(replace(sound(), notes=of_another_history)) == []


def test_noise_is_counted_in_the_outage_alone():
    log = [LogLine(t, True, False) for t in (99.0, 101.0, 102.0, 121.0)] + [LogLine(103.0, False, False)]

    assert noise(log, 100.0, 120.0) == 0.5
    assert noise(log, 100.0, 100.0) == 0.0


def test_a_promotion_is_a_server_that_takes_writes_on_another_history():
    first, second = PrimaryTerm(1, 7, 10.0), PrimaryTerm(2, 7, 10.0)
    restarted = PrimaryTerm(2, 7, 150.0)
    moments = [
        Moment(90.0, "a", "primary", first), Moment(90.0, "b", "standby"), Moment(101.0, "a", "away"),
        Moment(120.0, "b", "primary", second), Moment(130.0, "a", "primary", first),  # it woke, as it was
        Moment(140.0, "b", "away"), Moment(151.0, "b", "primary", restarted),
    ]  # fmt: skip

    assert [(each.t, each.server) for each in promotions(moments, 100.0)] == [(120.0, "b"), (151.0, "b")]


def test_what_a_run_left_behind_is_read(tmp_path: Path):
    acks, notes = tmp_path / "acks", tmp_path / "notes"
    acks.write_text(
        json.dumps({"t": 1.0, "who": "p", "n": 2, "call": 0.1, "error": "X", "said": "no"}) + "\n"
    )
    notes.write_text(json.dumps({**start(1, 2.0, 3)._asdict(), "attempt": 1}) + "\n")
    log = (
        '{"at": "1970-01-01T00:00:09+00:00", "level": "warning"}\n'
        '{"at": "1970-01-01T00:00:10Z", "level": "info"}\n'
    )

    assert read_acks(acks) == [Ack(1.0, "p", 2, 0.1, None, "X")]
    assert read_notes(notes) == [start(1, 2.0, 3)]
    assert read_acks(tmp_path / "nothing") == []
    assert read_log(log + "Traceback (most recent call last):\n") == [
        LogLine(9.0, True, False), LogLine(10.0, False, False), LogLine(10.0, True, True)
    ]  # fmt: skip


def test_the_rows_of_a_run_are_read(store, db):
    """By their n: the jobs of an earlier run are left out."""
    enqueue(store, args='{"n": 6, "ms": 0}')
    job = enqueue(store, args='{"n": 7, "ms": 0}', queue="this-run")
    lease = claim_one(store, queues=("this-run",))
    store.run(calls.complete(lease, "null"))
    db.execute(EFFECTS)
    db.execute("insert into effects (n, job_id, token) values (6, 1, 1), (7, %s, %s)", [job, lease.token])

    found = read_rows(db, 7, 0.0)

    assert (found.jobs, found.effects) == ({7: (job, "succeeded")}, {7: 1})
    assert found.written == {(6, 1), (7, lease.token)}  # a worker may have been told of one of those, too
    assert found.outcomes == {"succeeded": 1}
    assert list(found.claims) == [(job, lease.token)]
