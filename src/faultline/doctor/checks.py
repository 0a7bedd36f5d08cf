"""Doctor's judgement of its facts: a grade, a sentence and a remedy for each. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from faultline.cli.format import span
from faultline.store.migrate import SchemaState
from faultline.store.rows import DoctorFacts, QueueInfo, WorkerInfo
from faultline.store.sql_files import LATEST

Grade = Literal["ok", "warn", "bad"]

CLOCK_SECONDS_MAX: Final = 2.0
TRANSACTION_SECONDS_MAX: Final = 600.0
ROUND_SECONDS_MAX: Final = 30.0
NAMED_MAX: Final = 5
CHORES_SECONDS_MAX: Final = 120.0


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """One check."""

    name: str
    grade: Grade
    said: str
    remedy: str = ""


def schema(standing: SchemaState) -> DoctorCheck:
    if standing.pending:
        said = f"at {standing.number}, this program needs {LATEST}"
        return DoctorCheck("schema", "bad", said, "run `faultline migrate`")
    if standing.functions_differ:
        said = f"at {standing.number}, but its functions are not this version's"
        return DoctorCheck("schema", "bad", said, "run `faultline migrate`")
    return DoctorCheck("schema", "ok", f"at {standing.number}, functions as shipped")


def server(vitals: DoctorFacts) -> DoctorCheck:
    return DoctorCheck("server", "ok", f"PostgreSQL {vitals.version}")


def durability(vitals: DoctorFacts) -> Iterator[DoctorCheck]:
    for name, value in (("fsync", vitals.fsync), ("full_page_writes", vitals.full_page_writes)):
        if value == "on":
            yield DoctorCheck(name, "ok", "on")
        else:
            yield DoctorCheck(
                name,
                "bad",
                f"{value}: a crash of the machine can lose or spoil committed jobs",
                f"set {name} = on",
            )
    raised = (
        ""
        if vitals.synchronous_commit in ("on", "remote_apply")
        else "; our verbs raise it to on for themselves"
    )
    yield DoctorCheck("synchronous_commit", "ok", f"{vitals.synchronous_commit}{raised}")


def pooler(setting: str, told_pid: int, pids: tuple[int, int]) -> DoctorCheck:
    """A pooler makes up its process id; one that pools transactions also changes the backend."""
    changes = pids[0] != pids[1]
    if not changes and told_pid == pids[0]:
        if setting != "transaction":
            return DoctorCheck("pooler", "ok", "none: connections go straight to the server")
        return DoctorCheck(
            "pooler",
            "warn",
            "none, though FAULTLINE_POOLER is transaction",
            "unset it: it costs prepared statements",
        )
    if setting == "transaction":
        return DoctorCheck("pooler", "ok", "a pooler, as FAULTLINE_POOLER says; wake-ups come by polling")
    if setting == "auto":
        said = "a pooler stands in between: no prepared statements, no LISTEN, wake-ups come by polling"
        return DoctorCheck("pooler", "ok", said)
    grade: Grade = "bad" if changes else "warn"
    said = "a pooler that changes backends between transactions" if changes else "a pooler stands in between"
    return DoctorCheck(
        "pooler", grade, said, "set FAULTLINE_POOLER=transaction, or connect to the server itself"
    )


def clock(difference: float) -> DoctorCheck:
    said = f"the server's is {span(abs(difference))} {'ahead of' if difference >= 0 else 'behind'} ours"
    if abs(difference) <= CLOCK_SECONDS_MAX:
        return DoctorCheck("clock", "ok", said)
    return DoctorCheck(
        "clock", "warn", f"{said}; the server's alone counts", "synchronise both, or log lines will not agree"
    )


def driver(implementation: str) -> DoctorCheck:
    if implementation == "python":
        return DoctorCheck(
            "psycopg", "warn", "pure Python: several times slower", "pip install 'psycopg[binary]'"
        )
    return DoctorCheck("psycopg", "ok", implementation)


def rows(vitals: DoctorFacts) -> Iterator[DoctorCheck]:
    if vitals.ledger_strays:
        said = f"{vitals.ledger_strays} entries outside every range"
        yield DoctorCheck(
            "ledger", "bad", said, "let a worker run: its watchdog makes the ranges and moves them"
        )
    else:
        yield DoctorCheck("ledger", "ok", "every entry lies in its range")
    if vitals.jobs_in_two_places:
        said = f"{vitals.jobs_in_two_places} jobs stand in two tables at once"
        yield DoctorCheck(
            "jobs", "bad", said, "rows were changed by hand, or restored in part: restore the whole database"
        )
    elif vitals.jobs_behind_the_floor:
        said = f"{vitals.jobs_behind_the_floor} jobs behind their lane's floor"
        yield DoctorCheck("jobs", "warn", said, "a worker's next rounds give them a new place; look again")
    else:
        yield DoctorCheck("jobs", "ok", "each in one place")


def transactions(vitals: DoctorFacts, owner: str = "OWNER") -> DoctorCheck:
    """The age of the oldest transaction, as far as the owner of our functions may see."""
    age = vitals.oldest_transaction_seconds
    if age is None:
        said = f"cannot see them: {owner}, which owns the schema, may not look at those of other roles"
        return DoctorCheck("transactions", "warn", said, f"grant pg_read_all_stats to {owner}")
    if age <= TRANSACTION_SECONDS_MAX:
        return DoctorCheck("transactions", "ok", f"the oldest is {span(age)} old" if age else "none is open")
    said = f"one has been open for {span(age)}: dead rows cannot be vacuumed"
    return DoctorCheck("transactions", "warn", said, "find it in pg_stat_activity (xact_start) and end it")


def watchdog(vitals: DoctorFacts) -> DoctorCheck:
    age = vitals.round_age_seconds
    if age is None:
        return DoctorCheck("watchdog", "warn", "no round was ever made", "start a worker")
    if age > ROUND_SECONDS_MAX:
        return DoctorCheck(
            "watchdog",
            "warn",
            f"the last round was {span(age)} ago",
            "start a worker: no process takes lost jobs back",
        )
    chores = vitals.chores_age_seconds
    if chores is not None and chores > CHORES_SECONDS_MAX:
        leader = f"its leader, {vitals.leader}," if vitals.leader else "its last leader"
        said = f"rounds are made, but {leader} did the chores {span(chores)} ago"
        return DoctorCheck(
            "watchdog",
            "bad",
            said,
            "end that worker or session: its lead ends within a minute, and another takes over",
        )
    return DoctorCheck("watchdog", "ok", f"the last round was {span(age)} ago")


def queues(found: Sequence[QueueInfo], known: Sequence[WorkerInfo]) -> DoctorCheck:
    """Whether a worker serves each due job; a paused queue waits on purpose."""
    served = {queue for worker in known if not worker.silent for queue in worker.queues}
    left = [queue for queue in found if queue.due and not queue.paused and queue.queue not in served]
    if not left:
        return DoctorCheck("queues", "ok", "each with due jobs is served by a worker, or paused")
    said = ", ".join(f"{queue.due:,} due in {queue.queue}" for queue in left[:NAMED_MAX])
    more = f" and {len(left) - NAMED_MAX} queues more" if len(left) > NAMED_MAX else ""
    names = ",".join(queue.queue for queue in left[:NAMED_MAX])
    return DoctorCheck(
        "queues", "warn", f"jobs wait where no worker serves: {said}{more}",
        f"start a worker with --queues {names}, or look for a typo in the queue's name",
    )  # fmt: skip


def tasks(vitals: DoctorFacts) -> DoctorCheck:
    """Whether some running worker of its queue knows the task of each due job."""
    if not vitals.unknown_jobs:
        return DoctorCheck("tasks", "ok", "each due job is of a task that a running worker may know")
    named = ", ".join(vitals.unknown_tasks[:NAMED_MAX])
    more = " and more" if len(vitals.unknown_tasks) > NAMED_MAX else ""
    return DoctorCheck(
        "tasks", "warn",
        f"{vitals.unknown_jobs:,} due jobs of tasks that no running worker knows: {named}{more}",
        "start the worker of their app, correct the name where they are enqueued, or cancel them; after a "
        "day they are dead",
    )  # fmt: skip


def schedules(vitals: DoctorFacts) -> DoctorCheck:
    """Whether each schedule has a next time, and is fired when it is due."""
    if vitals.failing_schedules:
        said = f"{vitals.failing_schedules:,} failing: {', '.join(vitals.failing_names[:NAMED_MAX])}"
        return DoctorCheck("schedules", "warn", said, "`faultline schedules show NAME` says why")
    if vitals.late_schedules:
        said = f"{vitals.late_schedules:,} due for over a minute: {', '.join(vitals.late_names[:NAMED_MAX])}"
        return DoctorCheck("schedules", "warn", said, "start a worker: no watchdog fires them")
    return DoctorCheck("schedules", "ok", "none is late or failing")


def workers(vitals: DoctorFacts) -> DoctorCheck:
    if vitals.silent_workers:
        said = f"{vitals.silent_workers} fell silent without a goodbye"
        return DoctorCheck(
            "workers", "warn", said, "see `faultline workers`; their jobs are taken back when leases run out"
        )
    return DoctorCheck("workers", "ok", "none fell silent")
