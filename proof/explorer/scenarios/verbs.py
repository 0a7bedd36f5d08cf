"""The steps of sessions: each calls a shipped function, and writes down the answer.

A lease lives in `explorer.hands`, as in a worker's memory. A verb's answer goes to `explorer.told` in the
same transaction, so it is there exactly if the session received it.
"""

from dataclasses import replace
from inspect import cleandoc

from proof.explorer.step import COMMIT, LEASE_LOST, WRONG_STATE, Play, Step

LEASE = "15 s"
EXPIRY = 20
"""Seconds of a tick that a lease does not outlast."""

NOT_IN_THAT_STATE = frozenset({WRONG_STATE})


def claim_id(hand: str) -> str:
    """The identity of a claim, the same in every order: deterministic orders end in comparable rows."""
    return f"{hand.encode().hex():0<32.32}"


def _step(
    label: str, sql: str, *, tolerates: frozenset[str] = frozenset({LEASE_LOST}), afterwards: str = ""
) -> Step:
    return Step(label, cleandoc(sql), tolerates=tolerates, afterwards=cleandoc(afterwards))


def claim(hand: str, room: int = 1) -> Step:
    """Take what is due; no rows when there is nothing. A second job of one claim is in the hand `A+`."""
    return _step(
        "claims",
        f"""
        insert into explorer.hands (hand, who, job_id, token, claim, until)
        select '{hand}' || repeat('+', row_number() over ()::int - 1), '{hand[0]}', got.id, got.token,
               '{claim_id(hand)}', faultline.now() + interval '{LEASE}'
        from faultline.claim(array['default'], {room}, '{LEASE}', '{claim_id(hand)}') as got
        returning job_id, token""",
    )


def rows(hand: str, kind: str = "work") -> Step:
    """The user's own rows, in the user's own table."""
    return _step(
        "writes its rows",
        f"""
        insert into explorer.effects (who, kind, job_id, token, claim)
        select who, '{kind}', job_id, token, claim from explorer.hands where hand = '{hand}'""",
    )


def _refused(hand: str, verb: str) -> str:
    """What our worker does after LS001: it tells the database which write was refused."""
    return f"""
        insert into explorer.told (who, verb, job_id, token, claim, answer)
        select who, '{verb}', job_id, token, claim, 'refused'
        from explorer.hands, faultline.refused(job_id, token)
        where hand = '{hand}'"""


def _settled(label: str, hand: str, verb: str, args: str = "") -> Step:
    """A verb that ends a lease, or raises LS001."""
    return _step(
        label,
        f"""
        insert into explorer.told (who, verb, job_id, token, claim, answer)
        select who, '{verb}', job_id, token, claim,
               left(faultline.{verb}(job_id, token, claim{args})::text, 0) || 'done'
        from explorer.hands
        where hand = '{hand}'
        returning answer""",
        afterwards=_refused(hand, verb),
    )


def complete(hand: str) -> Step:
    return _settled("completes", hand, "complete", f", '\"{hand}\"'")


def complete_at_once(hand: str) -> Step:
    """Rows and completion in one statement."""
    step = complete(hand)
    return replace(
        step, label="writes and completes", sql=f"with written as (\n{rows(hand).sql})\n{step.sql}"
    )


def fail(hand: str, delay: str = "0 s") -> Step:
    return _settled("fails", hand, "fail", f", 'boom', '{delay}'")


def snooze(hand: str, delay: str = "5 s") -> Step:
    return _settled("snoozes", hand, "snooze", f", '{delay}'")


def release(hand: str) -> Step:
    return _settled("releases", hand, "release")


def bury(hand: str) -> Step:
    return _settled("buries", hand, "bury", ", 'no good'")


def cancel_claimed(hand: str) -> Step:
    return _settled("drops", hand, "cancel_claimed")


def fence(hand: str) -> Step:
    return _step(
        "fences",
        f"select faultline.fence(job_id, token, claim) from explorer.hands where hand = '{hand}'",
        afterwards=_refused(hand, "fence"),
    )


def _of_all(hand: str) -> str:
    """For batch verbs: all leases of a hand, `A` and `A+`."""
    return f"rtrim(hand, '+') = '{hand}'"


def _batch(hand: str, call: str) -> str:
    return f"""
        with held as materialized (
          select array_agg(job_id) as ids, array_agg(token) as tokens, array_agg(claim) as claims
          from explorer.hands where {_of_all(hand)}),
        answers as materialized (
          select got.* from held, faultline.{call} as got)"""


def _settled_many(label: str, hand: str, verb: str, args: str, effects: str = "") -> Step:
    """Answers for those that did not get through."""
    return _step(
        label,
        f"""{_batch(hand, f"{verb}(held.ids, held.tokens, held.claims{args})")},
        told as (
          insert into explorer.told (who, verb, job_id, token, claim, answer)
          select hand.who, '{verb}', hand.job_id, hand.token, hand.claim, coalesce(answers.answer, 'done')
          from explorer.hands as hand
          left join answers on answers.id = hand.job_id and answers.token = hand.token
          where {_of_all(hand)}
          returning *){effects}
        select told.answer from told""",
    )


def complete_many(hand: str) -> Step:
    """The rows of those that got through are in the same transaction."""
    effects = """,
        written as (
          insert into explorer.effects (who, job_id, token, claim)
          select told.who, told.job_id, told.token, told.claim from told where told.answer = 'done')"""
    return _settled_many("completes its batch", hand, "complete_many", ", null", effects)


def fail_many(hand: str) -> Step:
    args = ", array['boom', 'boom'], array['0 s', '0 s']::interval[]"
    return _settled_many("fails its batch", hand, "fail_many", args)


def beat(hand: str) -> Step:
    """Renew: held, busy, lost or cancel."""
    return _step(
        "beats",
        f"""{_batch(hand, f"heartbeat(held.ids, held.tokens, held.claims, '{LEASE}')")}
        insert into explorer.told (who, verb, job_id, token, claim, answer, until)
        select hand.who, 'beat', hand.job_id, hand.token, hand.claim, answers.answer,
               faultline.now() + interval '{LEASE}'
        from explorer.hands as hand
        join answers on answers.id = hand.job_id and answers.token = hand.token
        where {_of_all(hand)}
        returning answer""",
    )


def outcome(hand: str, who: str) -> Step:
    """The reply to a completion was lost: ask for its outcome."""
    return _step(
        "asks what became of it",
        f"""
        insert into explorer.told (who, verb, job_id, token, claim, answer)
        select '{who}', 'outcome', job_id, token, claim, faultline.outcome(job_id, token, claim)
        from explorer.hands
        where hand = '{hand}'
        returning answer""",
    )


def tick(seconds: int = EXPIRY) -> Step:
    return _step(f"{seconds} seconds pass", f"select explorer.tick({seconds})")


def reap() -> Step:
    return _step("reaps", "select id, token, died from faultline.reap()")


def promote() -> Step:
    return _step("promotes", "select * from faultline.promote()")


def rescue() -> Step:
    return _step("rescues", "select id from faultline.rescue()")


def _asked_for(label: str, who: str, verb: str, job: int) -> Step:
    """What an operator asks of a job, without its lease."""
    return _step(
        label,
        f"""
        insert into explorer.told (who, verb, job_id, answer)
        values ('{who}', '{verb}', {job}, left(coalesce(faultline.{verb}({job})::text, ''), 0) || 'done')""",
        tolerates=NOT_IN_THAT_STATE,
    )


def cancel(who: str, job: int = 1) -> Step:
    return _asked_for("cancels", who, "cancel", job)


def retry_now(who: str, job: int = 1) -> Step:
    return _asked_for("retries now", who, "retry_now", job)


def replay(who: str, job: int = 1) -> Step:
    return _asked_for("replays", who, "replay", job)


def enqueue(who: str, key: str, keep_for: str = "10 s") -> Step:
    """Ask for a job under a key: a new one, or the one that has the key."""
    return _step(
        f"enqueues {key}",
        f"""
        insert into explorer.told (who, verb, job_id, answer, key, keep_for)
        select '{who}', 'enqueue', made.id, case when made.is_new then 'done' else 'same' end,
               '{key}', '{keep_for}'
        from faultline.enqueue_many(
          'task', array['null'], keys => array['{key}'], key_for => '{keep_for}') as made
        returning job_id, answer""",
    )


def enqueue_queued(who: str, key: str) -> Step:
    """Ask for a job that is unique while queued: one that begins after this commit."""
    return _step(
        f"enqueues {key}",
        f"""
        insert into explorer.told (who, verb, job_id, answer)
        select '{who}', 'enqueue_queued', made.id, case when made.is_new then 'done' else 'same' end
        from faultline.enqueue_many(
          'task', array['null'], keys => array['{key}'], key_rule => 'while_queued') as made
        returning job_id, answer""",
    )


def enqueued(jobs: int = 1, options: str = "") -> tuple[str, ...]:
    """For a setup: so many jobs, each written down as asked for."""
    return (
        cleandoc(f"""
        insert into explorer.told (who, verb, job_id, answer)
        select 'setup', 'enqueue', faultline.enqueue('task'{options}), 'done'
        from generate_series(1, {jobs})"""),
    )


def in_hand(hand: str, room: int = 1) -> tuple[str, ...]:
    """For a setup: this session has claimed already."""
    return (claim(hand, room).sql,)


def look_for_schedules(who: str) -> Step:
    """What a watchdog sees to be due, and computes: each time up to now, and the one after it."""
    return _step(
        "looks for schedules",
        f"""
        insert into explorer.firings (who, firings)
        select '{who}', coalesce(jsonb_agg(jsonb_build_object(
          'name', due.name, 'revision', due.revision, 'due', due.next_at, 'late', '[]'::jsonb, 'ended', false,
          'on_time', (select jsonb_agg(at) from generate_series(due.next_at, due.moment, due.every) as at),
          'next', faultline.next_period(due.starts_at, due.every, due.moment))), '[]')
        from faultline.due_schedules() as due
        where due.next_at <= due.moment""",
    )


def fire(who: str) -> Step:
    return _step(
        "fires",
        f"""
        select fired.name, fired.jobs
        from explorer.firings as seen, faultline.fire(seen.firings) as fired
        where seen.who = '{who}'""",
    )


def sync(who: str, release: int, every: str) -> Step:
    """A worker of this release starts."""
    return _step(
        f"syncs release {release}",
        f"""
        insert into explorer.told (who, verb, token, answer)
        select '{who}', 'sync', {release}, case when one.state = 'older' then 'older' else 'done' end
        from faultline.sync_schedules('app', array[{release}::bigint], jsonb_build_array(jsonb_build_object(
          'name', 'tick', 'task', 'scheduled', 'every', '{every}'))) as one""",
    )


def scheduled(name: str = "tick", every: str = "5 s") -> tuple[str, ...]:
    """For a setup: a schedule, made by hand."""
    return (f"select faultline.set_schedule('{name}', 'scheduled', every => '{every}')",)


def as_transaction(*steps: Step) -> Play:
    """Steps with one BEGIN before them and one COMMIT after; an error ends it there."""
    for number, step in enumerate(steps):
        answer = yield Step(step.label, step.sql, number == 0, step.tolerates, step.afterwards)
        if answer.error:
            return
    yield COMMIT
