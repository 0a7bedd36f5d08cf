"""Histories as a TLA+ module, for TLC to walk along the same relation.

TLC counts to 2^31 and knows no uuids or dates. Only the order of tokens and moments and the identity of
claims matter to the relation, so each is told by its rank.
"""

from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from proof.model import tlc
from proof.model.history import Entry, JobHistory, Row

MODULE: Final = "Histories"
CONFIG: Final = "\\* expects: holds\nSPECIFICATION Spec\nCONSTANT NoClaim = 0\n"
WALKED: Final = ("Job.tla", "Trace.tla")


def legal(command: list[str], walked: Sequence[JobHistory], folder: Path) -> tuple[set[int], tlc.Found]:
    """Which of these histories TLC can walk to their end, by their place; and what it said."""
    for name in WALKED:
        (folder / name).write_text((tlc.HERE / name).read_text())
    (folder / f"{MODULE}.tla").write_text(module(walked))
    config = folder / "Trace.cfg"
    config.write_text(CONFIG)
    found = tlc.run(command, "Trace.tla", config, folder=folder, brief=True)
    said = [line for line in found.output.splitlines() if line.startswith('<<"legal", ')]
    return {int(line.removeprefix('<<"legal", ').removesuffix(">>")) - 1 for line in said}, found


def module(walked: Sequence[JobHistory]) -> str:
    """The text of Histories.tla."""
    told = ",\n".join(f"  {_history(one)}" for one in walked)
    return f"---- MODULE {MODULE} ----\nHistories == <<\n{told}\n>>\n====\n"


def _history(history: JobHistory) -> str:
    numbers = [one.token for one in history.entries] + [one.token for one in history.rows]
    tokens = _ranks([0, *numbers, *(one.token for one in history.effects or ())])
    moments = _ranks([moment for one in history.entries for moment in (one.claimed_at, one.settled_at)])
    claims: dict[Hashable | None, int] = {None: 0}
    for claim in [one.claim for one in history.entries] + [one.claim for one in history.rows]:
        claims.setdefault(claim, len(claims))
    entries = (_entry(one, tokens[one.token], claims[one.claim], moments) for one in history.entries)
    rows = (_row(one, tokens[one.token], claims[one.claim]) for one in history.rows)
    effects = (
        _record({"name": _text(one.name), "token": tokens[one.token]}) for one in history.effects or ()
    )
    return _record(
        {
            "most": history.max_attempts,
            "kept": _truth(history.success_kept),
            "watched": _truth(history.effects is not None),
            "entries": _sequence(entries),
            "rows": _sequence(rows),
            "effects": _sequence(effects),
        }
    )


def _entry(entry: Entry, token: int, claim: int, moments: dict[Any, int]) -> str:
    facts = {"outcome": _text(entry.outcome), "token": token, "claim": claim, "attempt": entry.attempt}
    times = {
        "claimed_at": moments.get(entry.claimed_at, 0),
        "settled_at": moments.get(entry.settled_at, 0),
    }
    return _record({**facts, "crashes": entry.crashes, **times})


def _row(row: Row, token: int, claim: int) -> str:
    facts = {"state": _text(row.state), "token": token, "claim": claim}
    return _record({**facts, "attempt": row.attempt, "crashes": row.crashes})


def _ranks(values: Iterable[Any]) -> dict[Any, int]:
    """Each value's place among all of them, from 0."""
    known = sorted({value for value in values if value is not None})
    return {value: rank for rank, value in enumerate(known)}


def _record(fields: dict[str, Any]) -> str:
    return "[" + ", ".join(f"{name} |-> {value}" for name, value in fields.items()) + "]"


def _sequence(values: Iterable[str]) -> str:
    return "<<" + ", ".join(values) + ">>"


def _text(value: str) -> str:
    return '"' + "".join(letter for letter in value if letter.isalnum() or letter in " _-") + '"'


def _truth(value: bool) -> str:
    return "TRUE" if value else "FALSE"
