"""`faultline enqueue`: put one job in its queue."""

import json
import sys
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import click

from faultline import bounds
from faultline.args.document import check_document
from faultline.cli.app_loading import load_app
from faultline.cli.known_names import (
    NEWEST,
    queues_in,
    queues_served_in,
    remark_task,
    remark_unserved_queue,
)
from faultline.cli.options import DURATION, MOMENT, CliCommand, parsed, told, whole
from faultline.cli.terminal import CommandSession, Terminal
from faultline.client.bulk import is_due
from faultline.client.unanswered import unknown_when_unanswered
from faultline.errors import BadDocument, FaultlineError, InputError
from faultline.job import NewJob
from faultline.store import calls
from faultline.task import MAX_ATTEMPTS
from faultline.unique import KEY_RULES, check_key_rule


@click.command(cls=CliCommand)
@click.argument("task", type=parsed("task", bounds.check_task_name))
@click.argument("args", default="{}", metavar="[JSON]")
@click.option("--app", "app_path", metavar="MODULE:APP", help="Check the args against the task in this app.")
@click.option(
    "-q", "--queue", type=parsed("queue", bounds.check_queue_name), help="[default: default, or the task's]"
)
@click.option(
    "--priority",
    type=whole(bounds.PRIORITY_MIN, bounds.PRIORITY_MAX),
    help="-100 first, 100 last. [default: 0]",
)
@click.option("--delay", type=DURATION, help="Due so long from now: 90s, 1h30m.")
@click.option("--run-at", type=MOMENT, help="Due at this moment: 2030-01-31T09:00+01:00.")
@click.option(
    "--max-attempts",
    type=whole(1, bounds.ATTEMPTS_MAX),
    help=f"Tries before the job is dead. [default: {MAX_ATTEMPTS}]",
)
@click.option("--expires-in", type=DURATION, help="Cancelled unless a worker begins it within this time.")
@click.option("--key", help="Two enqueues with one key are one job.")
@click.option(
    "--key-rule",
    type=parsed("rule", check_key_rule),
    help=f"When the key names a job: {', '.join(KEY_RULES)}.",
)
@click.option("--key-for", type=DURATION, help="How long the key is kept, or the period of its rule.")
@click.option("--lease", type=DURATION, help="Lease for this job, other than its worker's.")
@click.option("--timeout", type=DURATION, help="The hard end of an attempt. [default: 1h]")
@told
def command(terminal: Terminal, /, task: str, args: str, app_path: str | None, **asked: Any) -> None:
    """Put a job in its queue and print its id.

    JSON is an object with the task's arguments by name, or - to read it from standard input:

        faultline enqueue charge '{"order_id": 7}' --queue billing --key order-7

    No app is needed; with --app the args are checked against the task's signature first.
    """
    text = sys.stdin.read() if args == "-" else args
    options = _checked(**asked)
    new = _by_signature(app_path, task, text, options) if app_path else _as_given(task, text, options)
    with terminal.database() as session:
        known = served = [new.queue]
        if "queue" in options and not terminal.quiet:
            with suppress(FaultlineError):  # a producer's login may lack the right to read
                known, served = queues_in(session), queues_served_in(session)
        job_id, is_new = _sent(session, new)
        _tell(terminal, new, job_id, is_new)
        if is_new:
            remark_unserved_queue(terminal, new.queue, known, served, _queues_of(app_path))
        if not app_path and not terminal.quiet:
            with suppress(FaultlineError):
                lately = session.run(calls.list_jobs(None, None, None, job_id, NEWEST))
                remark_task(terminal, task, (job.task for job in lately))


def _sent(session: CommandSession, new: NewJob) -> tuple[int, bool]:
    """Put it in its queue and wake a worker; answers whether it is new, or its key names an older one."""
    with unknown_when_unanswered(new.key is None):
        ((job_id, is_new),) = session.run(calls.telling_which_are_new(calls.enqueue_many([new])))
    if is_new and is_due(new):
        with suppress(FaultlineError):  # a hint: a watchdog finds the job without it
            session.run(calls.wake(new.queue))
    return job_id, is_new


def _tell(terminal: Terminal, new: NewJob, job_id: int, is_new: bool) -> None:
    if terminal.json:
        terminal.give({"id": job_id, "task": new.task, "queue": new.queue, "new": is_new})
    elif terminal.quiet:
        click.echo(job_id)
    elif is_new:
        click.echo(f"job {job_id} enqueued in {new.queue}")
    else:
        click.echo(f"job {job_id} was there already: the key names it in {new.queue}, and nothing was added")


def _queues_of(app_path: str | None) -> list[str]:
    return [spec.queue for spec in load_app(app_path).registry] if app_path else []


def _checked(
    queue: str | None,
    priority: int | None,
    delay: timedelta | None,
    run_at: datetime | None,
    max_attempts: int | None,
    expires_in: timedelta | None,
    key: str | None,
    key_rule: str | None,
    key_for: timedelta | None,
    lease: timedelta | None,
    timeout: timedelta | None,
) -> dict[str, Any]:
    """The given options alone, each within its bounds; an error names the option."""
    if key is None and (key_rule is not None or key_for is not None):
        raise InputError("--key-rule and --key-for are about a key: give one by --key")
    if delay is not None and run_at is not None:
        raise InputError("--delay and --run-at both say when the job is due; give one of them")
    asked = {
        "queue": queue,
        "priority": priority,
        "delay": None if delay is None else bounds.check_delay(delay),
        "run_at": None if run_at is None else bounds.check_run_at(run_at),
        "max_attempts": max_attempts,
        "key": None if key is None else bounds.check_key(key),
        "key_rule": key_rule,
        "expires_in": None if expires_in is None else bounds.check_expires_in(expires_in),
        "key_for": None if key_for is None else bounds.check_delay(key_for, "key_for"),
        "lease_for": None if lease is None else bounds.check_lease_for(lease),
        "timeout": None if timeout is None else bounds.check_timeout(timeout),
    }
    return {name: value for name, value in asked.items() if value is not None}


def _as_given(task: str, text: str, options: dict[str, Any]) -> NewJob:
    read_object(text)
    check_document(text.encode(errors="surrogatepass"), "the args", dict)
    # The text itself goes to the database: it keeps every digit of a number, which Python's floats would not.
    return NewJob(task=task, args=text, **{"max_attempts": MAX_ATTEMPTS, **options})


def _by_signature(app_path: str, task: str, text: str, options: dict[str, Any]) -> NewJob:
    spec = load_app(app_path).registry.find(task)
    defaults = {
        "queue": spec.queue, "priority": spec.priority, "max_attempts": spec.max_attempts,
        "timeout": spec.timeout, "lease_for": spec.lease_for,
    }  # fmt: skip
    return NewJob(task=task, args=spec.codec.encode((), read_object(text)), **{**defaults, **options})


def read_object(text: str) -> dict[str, Any]:
    """A JSON object on the command line: the arguments by name."""
    try:
        read = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadDocument(
            f"the args are not JSON: {error}; write an object such as '{{\"order_id\": 7}}'"
        ) from None
    if not isinstance(read, dict):
        raise BadDocument(
            f"the args are a JSON {type(read).__name__}; write an object with the arguments by name, "
            "such as '{\"order_id\": 7}'"
        )
    return read
