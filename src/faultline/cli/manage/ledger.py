"""`faultline ledger`: the newest leases and how they ended, and the writes that were refused."""

import click

from faultline.cli.documents import entry_document, refusal_document
from faultline.cli.format import clock, first_line, span
from faultline.cli.options import LIMIT, CliCommand, told
from faultline.cli.tables import draw, number, toned, wide, word
from faultline.cli.terminal import Terminal
from faultline.job import LedgerEntry, Refusal
from faultline.store import calls

LEASES = (
    number("job"), wide("task"), number("token"), wide("worker"), number("try"), word("settled"),
    number("held"), word("outcome"), wide("error"),
)  # fmt: skip
REFUSED = (
    number("job"), number("token"), wide("worker"), word("refused at"), number("times"), word("why"),
    number("newest"),
)  # fmt: skip


@click.command(cls=CliCommand)
@click.option("--refusals", is_flag=True, help="The late writes that were refused, instead of the leases.")
@click.option("--limit", type=LIMIT, default=20, show_default=True, help="At most so many.")
@told
def command(terminal: Terminal, refusals: bool, limit: int) -> None:
    """Read the ledger: one line for each lease that ended, those of the newest jobs first."""
    with terminal.database() as session:
        if refusals:
            refused = session.run(calls.refusals(most=limit))
            terminal.show(
                [refusal_document(refusal) for refusal in refused],
                lambda: draw(
                    REFUSED, (_refusal(refusal) for refusal in refused), "no write was ever refused"
                ),
            )
        else:
            entries = session.run(calls.ledger(limit))
            terminal.show(
                [entry_document(entry) for entry in entries],
                lambda: draw(LEASES, (_entry(entry) for entry in entries), "no lease has ended yet"),
            )


def _entry(entry: LedgerEntry) -> tuple[object, ...]:
    held = (entry.settled_at - entry.claimed_at).total_seconds() if entry.claimed_at else None
    return (
        entry.job_id, entry.task, entry.token, entry.worker, entry.attempt, clock(entry.settled_at),
        span(held), toned(entry.outcome), first_line(entry.error),
    )  # fmt: skip


def _refusal(refusal: Refusal) -> tuple[object, ...]:
    return (
        refusal.job_id, refusal.token, refusal.worker, clock(refusal.last_at), refusal.times,
        toned(refusal.reason, like="refused"), refusal.current_token,
    )  # fmt: skip
