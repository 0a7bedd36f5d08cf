"""`faultline roles`: the database's own group roles, each with what its duty needs and no more."""

import click

from faultline.cli.options import CommandGroup, told
from faultline.cli.tables import draw, toned, wide, word
from faultline.cli.terminal import Terminal
from faultline.store import calls
from faultline.store.rows import GroupRole

COLUMNS = (word("duty"), wide("role"), word("state"), wide("logins"))


@click.group(cls=CommandGroup)
def command() -> None:
    """Make group roles with least privilege: create; see who has them: show."""


@command.command()
@click.option("--prefix", default="faultline_", show_default=True, help="What their names begin with.")
@click.option(
    "--own",
    is_flag=True,
    help="Give the tables and functions to a role of their own, which has no login.",
)
@told
def create(terminal: Terminal, prefix: str, own: bool) -> None:
    """Make a role for each duty and grant it the verbs it needs; safe to repeat, and kept up by `migrate`.

    Run it as the owner of the schema with the right to make roles, or as a superuser. Then
    `grant faultline_worker to LOGIN`, and so on, in psql.
    """
    with terminal.database() as session:
        made = session.run(calls.make_roles(prefix, own))
        found = session.run(calls.list_groups())
    terminal.remark(
        f"made {', '.join(made)}" if made else "all of them were there; their grants were renewed"
    )
    _show(terminal, found)


@command.command()
@told
def show(terminal: Terminal) -> None:
    """List the group roles, and which logins can reach each of them."""
    with terminal.database() as session:
        found = session.run(calls.list_groups())
    _show(terminal, found)


def _show(terminal: Terminal, found: list[GroupRole]) -> None:
    terminal.show(
        [group._asdict() for group in found],
        lambda: draw(COLUMNS, (_row(group) for group in found), "no role was made: faultline roles create"),
    )


def _row(group: GroupRole) -> tuple[object, ...]:
    state = toned("ok") if group.is_there else toned("gone", "bad")
    return group.duty, group.role, state, ", ".join(group.logins) or "-"
