"""`faultline keys`: make, list, rotate and revoke the API keys of a server's clients."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from faultline import bounds
from faultline.cli.documents import plain
from faultline.cli.format import ago
from faultline.cli.known_names import remark_queue
from faultline.cli.options import DURATION, CommandGroup, parsed, told
from faultline.cli.tables import draw, toned, wide, word
from faultline.cli.terminal import Terminal
from faultline.errors import BadName
from faultline.server.auth import SCOPES, NewKey, mint
from faultline.store import calls
from faultline.store.rows import KeyInfo

COLUMNS = (
    word("id"), wide("name"), word("state"), wide("scopes"), wide("queues"), word("created"), word("expires"),
    word("last used"),
)  # fmt: skip


def _id(text: str) -> str:
    """A key's id; for a whole key, the error asks for the id and does not repeat the key."""
    if text.startswith("flk_"):
        raise BadName(
            "that is a whole key, or part of one: name it by its id, the 12 digits between the underscores"
        )
    if not re.fullmatch("[0-9a-f]{12}", text):
        raise BadName(
            f"{text[:40]!a} is not the id of a key: 12 digits from 0 to f, as `faultline keys list` shows"
        )
    return text


def _expiry(text: str) -> timedelta | None:
    from faultline.text.durations import parse_duration

    return None if text.strip() == "never" else parse_duration(text)


KEY_ID = parsed("id", _id)
EXPIRY = parsed("duration", _expiry)
QUEUE = parsed("queue", bounds.check_queue_name)


@click.group(cls=CommandGroup)
def command() -> None:
    """Make API keys for the server's clients: create, list, rotate, revoke."""


@command.command()
@click.argument("name")
@click.option(
    "--scope", "scopes", type=click.Choice(SCOPES), multiple=True, required=True,
    help="What it may do; repeat it for more. admin implies the others.",
)  # fmt: skip
@click.option(
    "--queue", "queues", type=QUEUE, multiple=True, help="Only on this queue; repeat it. [default: all]"
)
@click.option(
    "--expires",
    type=EXPIRY,
    default="90d",
    show_default=True,
    help="After how long it opens nothing; or never.",
)
@told
def create(
    terminal: Terminal, name: str, scopes: tuple[str, ...], queues: tuple[str, ...], expires: timedelta | None
) -> None:
    """Make an API key and print it, this once: only its hash is kept."""
    key = mint()
    with terminal.database() as session:
        made = session.run(calls.create_key(
            key.id, key.hash, name, _once(scopes), _once(queues) or None, _moment(expires)))  # fmt: skip
        for queue in _once(queues):
            remark_queue(terminal, session, queue)
    _hand_over(terminal, key, made)


@command.command("list")
@click.option("--all", "gone", is_flag=True, help="Those that are expired or revoked, too.")
@told
def list_(terminal: Terminal, gone: bool) -> None:
    """List API keys, newest first; never their secrets, which are not known here."""
    with terminal.database() as session:
        found = session.run(calls.list_keys(gone))
    terminal.show(
        [_document(key) for key in found],
        lambda: draw(
            COLUMNS, (_row(key) for key in found), "no key yet: faultline keys create NAME --scope read"
        ),
    )


@command.command()
@click.argument("id", type=KEY_ID, metavar="ID")
@click.option(
    "--overlap", type=DURATION, default="1d", show_default=True, help="For how long the old one goes on."
)
@click.option(
    "--expires",
    type=EXPIRY,
    default="90d",
    show_default=True,
    help="After how long the new one opens nothing; or never.",
)
@told
def rotate(terminal: Terminal, id: str, overlap: timedelta, expires: timedelta | None) -> None:
    """Make the next key of a name, with the same rights, and print it; the old one goes on for a while."""
    key = mint()
    with terminal.database() as session:
        made = session.run(calls.rotate_key(id, key.id, key.hash, overlap, _moment(expires)))
    _hand_over(terminal, key, made)


@command.command()
@click.argument("id", type=KEY_ID, metavar="ID")
@click.option("--reason", help="Why; it is noted with who and when.")
@told
def revoke(terminal: Terminal, id: str, reason: str | None) -> None:
    """Take an API key back: within five seconds no server accepts it."""
    with terminal.database() as session:
        gone = session.run(calls.revoke_key(id, reason))
    terminal.say(f"key {gone.id} ({gone.name}) is revoked")
    if terminal.json:
        terminal.give(_document(gone))


def _hand_over(terminal: Terminal, key: NewKey, made: KeyInfo) -> None:
    """Print a key, this one time: alone on stdout, so that a pipe can take it."""
    if terminal.json:
        terminal.give({**_document(made), "key": key.text})
        return
    click.echo(key.text)
    terminal.remark(f"key {made.id} ({made.name}), {_until(made)}: keep it now, it is not shown again")


def _until(key: KeyInfo) -> str:
    return "without an end" if key.expires_at is None else f"until {key.expires_at:%Y-%m-%d %H:%M %Z}"


def _moment(expires: timedelta | None) -> datetime | None:
    return None if expires is None else datetime.now(UTC) + expires


def _once(words: tuple[str, ...]) -> list[str]:
    return list(dict.fromkeys(words))


def _state(key: KeyInfo) -> str:
    if key.live:
        return "live"
    return "revoked" if key.revoked_at is not None else "expired"


def _document(key: KeyInfo) -> dict[str, Any]:
    return {**plain(key._asdict()), "state": _state(key)}


def _row(key: KeyInfo) -> tuple[object, ...]:
    return (
        key.id, key.name, toned(_state(key), "ok" if key.live else "stopped"), ",".join(key.scopes),
        "all" if key.queues is None else ",".join(key.queues), ago(key.created_at), ago(key.expires_at),
        ago(key.last_used_at),
    )  # fmt: skip
