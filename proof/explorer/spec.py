"""An order as a spec of PostgreSQL's isolationtester: that program can play it again."""

import re
from collections import defaultdict
from collections.abc import Iterator
from textwrap import indent

from proof.explorer.order import Interleaving, SessionTurn
from proof.explorer.scenario import Scenario
from proof.explorer.telling import told

PREPARE = "python -m proof.explorer --stage 'host=... dbname=...'"


def spec(scenario: Scenario, order: Interleaving, *, title: str = "", functions: tuple[str, ...] = ()) -> str:
    """The text of a .spec; `functions` are those of the shipped ones that it plays in another form."""
    return "\n".join(_lines(scenario, order, title or scenario.story, functions)) + "\n"


def file_name(title: str) -> str:
    """A name for its file, without an ending."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def _lines(scenario: Scenario, order: Interleaving, title: str, functions: tuple[str, ...]) -> Iterator[str]:
    yield f"# {title}"
    yield "#"
    yield from (f"# {line}" for line in told(order))
    yield "#"
    yield f"# In a database of its own, made ready with: {PREPARE}"
    yield ""
    for function in functions:
        yield from _block("setup", function)
    yield from _block("setup", ";\n".join(("select explorer.reset()", *scenario.setup)))
    named = _Names()
    permutation = [name for turn in order.turns for name in named.steps_of(turn)]
    if named.lets_go:
        yield from _conductor(named.lets_go)
    for who in scenario.sessions:
        yield f"session {_word(who)}"
        yield from _block("setup", f"set explorer.who = '{who}'")
        for name, text in named.texts[who]:
            yield from _block(f"step {name}", text)
    yield from _judge()
    yield "permutation " + " ".join([*permutation, "drain", "check"])


class _Names:
    """The names of the steps, and what each sends."""

    def __init__(self) -> None:
        self.texts: dict[str, list[tuple[str, str]]] = defaultdict(list)
        self.lets_go: list[int] = []

    def steps_of(self, turn: SessionTurn) -> Iterator[str]:
        if turn.stop:
            self.lets_go.append(turn.stop)
            yield f"go{turn.stop}"
        # A step each: of several in one message, the program takes the first result for the whole answer.
        for statement in turn.statements:
            label = statement if statement in ("begin", "rollback") else turn.label
            name = f"{_word(turn.who)}_{len(self.texts[turn.who]) + 1}_{_word(label)}"
            self.texts[turn.who].append((name, statement))
            yield name


def _conductor(stops: list[int]) -> Iterator[str]:
    """The session that holds another one half way, and lets it go."""
    yield "session conductor"
    yield from _block("setup", f"select count(pg_advisory_lock(n)) from generate_series(1, {max(stops)}) n")
    for stop in stops:
        yield from _block(f"step go{stop}", f"select pg_advisory_unlock({stop})")


def _judge() -> Iterator[str]:
    yield "session judge"
    yield from _block("step drain", "select explorer.drain() > 0 as drained")
    yield from _block("step check", "select * from explorer.check()")


def _block(opening: str, text: str) -> Iterator[str]:
    # The program takes the first closing brace for the end of the block.
    bare = text.rstrip().replace("'{}'", r"E'\x7b\x7d'")
    if "{" in bare or "}" in bare:
        raise ValueError(f"a brace in a spec: {bare[:80]}")
    yield f"{opening}\n{{\n{indent(bare, '  ')};\n}}"


def _word(label: str) -> str:
    return re.sub(r"\W+", "_", label).strip("_")
